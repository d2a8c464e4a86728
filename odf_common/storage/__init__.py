"""Where the bytes of a dataset lie: objects and refs, on a local folder or an S3 bucket."""
