"""Read steps: from raw messages to rows (ODF 0.36, ReadStep)."""
