from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text

from odf_common.catalog.catalog import Catalog
from odf_common.catalog.engine import make_engine
from odf_common.catalog.errors import CatalogTooNewError
from odf_common.catalog.tables import METADATA, REVISION
from tests.unit.odf_common.catalog.builders import add_dataset, an_id

OPEN = "import sys; from odf_common.catalog.catalog import Catalog; Catalog.open(sys.argv[1]).close()"
OPEN_WITHOUT_ALEMBIC = f"{OPEN}; assert 'alembic' not in sys.modules"


def test_migrations_make_the_tables_that_the_code_uses(catalog_url: str) -> None:
    Catalog.open(catalog_url).close()
    engine = make_engine(catalog_url)
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []
    engine.dispose()


def test_the_newest_migration_is_the_one_that_the_code_expects() -> None:
    import odf_common.catalog.migrations as migrations

    assert ScriptDirectory(migrations.__path__[0]).get_heads() == [REVISION]


def test_opening_again_keeps_everything(catalog_url: str) -> None:
    with Catalog.open(catalog_url) as catalog:
        add_dataset(catalog, 1)
    with Catalog.open(catalog_url) as catalog:
        assert catalog.dataset(an_id(1)).id == an_id(1)


def test_a_catalog_of_a_later_program_is_refused_and_left_alone(catalog_url: str) -> None:
    Catalog.open(catalog_url).close()
    engine = make_engine(catalog_url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(CatalogTooNewError, match="'9999', which is newer than '0002'"):
        Catalog.open(catalog_url)
    with engine.connect() as connection:
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one() == "9999"
    engine.dispose()


@pytest.mark.slow
def test_processes_that_open_a_new_catalog_at_once_do_not_clash(catalog_url: str) -> None:
    with ThreadPoolExecutor(6) as pool:
        outcomes = list(pool.map(lambda _: run(OPEN, catalog_url), range(6)))
    assert outcomes == [""] * 6
    with Catalog.open(catalog_url) as catalog:
        assert list(catalog.datasets()) == []


@pytest.mark.slow
def test_an_up_to_date_catalog_opens_without_the_migration_library(catalog_url: str) -> None:
    assert run(OPEN, catalog_url) == ""
    assert run(OPEN_WITHOUT_ALEMBIC, catalog_url) == ""


def run(code: str, catalog_url: str) -> str:
    """What a process of its own says on standard error."""
    command = [sys.executable, "-W", "error", "-c", code, catalog_url]
    return subprocess.run(command, check=False, capture_output=True, text=True).stderr
