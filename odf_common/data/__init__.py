"""Tabular data: schemas, system columns, slices and their logical hash."""
