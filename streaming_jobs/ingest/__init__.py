"""The ingest job: messages of push topics in, staged slices and completions out. One streaming query per source."""
