"""From raw messages to the rows of a slice: the pure part of ingestion (ODF 0.36, Merge Strategies)."""
