"""Runs migrations on the connection that the catalog hands over, inside its transaction."""

from __future__ import annotations

from alembic import context

from odf_common.catalog.tables import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA)
context.run_migrations()
