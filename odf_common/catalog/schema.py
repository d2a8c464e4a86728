"""Bringing the tables of a catalog up to date."""

from __future__ import annotations

from sqlalchemy import Connection, Engine, inspect, text

from odf_common.catalog.engine import reading, writing
from odf_common.catalog.errors import CatalogTooNewError
from odf_common.catalog.tables import REVISION

_MIGRATIONS = "odf_common.catalog:migrations"


def bring_up_to_date(engine: Engine) -> None:
    """Apply what is missing; CatalogTooNewError if a later program wrote the catalog. Any number may do it at once."""
    with reading(engine) as connection:
        if _revision(connection) == REVISION:
            return
    with writing(engine) as connection:
        # Another process may have been faster while this one waited for the lock.
        if _revision(connection) != REVISION:
            _migrate(connection)


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    found: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one_or_none()
    return found


def _migrate(connection: Connection) -> None:
    # Imported here: alembic takes longer to import than an up-to-date catalog takes to open.
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", _MIGRATIONS)
    config.attributes["connection"] = connection
    found = _revision(connection)
    try:
        ScriptDirectory.from_config(config).get_revision(found or "base")
    except CommandError as error:
        raise CatalogTooNewError(str(found), known=REVISION) from error
    command.upgrade(config, "head")
