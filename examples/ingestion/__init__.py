"""Snapshots, upserts and a polled archive: how changing sources become datasets."""
