"""HTTP at the edge: events in, receipts and server-sent events out."""
