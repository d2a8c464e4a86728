"""The only writer of data to chains: finished micro-batches in, blocks and notifications out."""
