"""Alembic's environment of the catalog; applied when a catalog that is behind is opened."""
