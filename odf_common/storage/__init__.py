"""Where the bytes of a dataset lie: objects, refs and repositories, on a local folder or an S3 bucket."""
