"""The poller: fetches what polling sources name, prepares it and sends it to their topics."""
