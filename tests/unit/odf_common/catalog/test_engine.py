from __future__ import annotations

import socket
from pathlib import Path

import pytest
from sqlalchemy import text

from odf_common.catalog import engine as engine_module
from odf_common.catalog.catalog import Catalog
from odf_common.catalog.engine import make_engine, place
from odf_common.errors import CorruptedError, InvalidTextError, StoreUnavailableError
from tests.unit.odf_common.catalog.builders import add_dataset, an_id


@pytest.mark.parametrize(
    "url",
    [
        "mysql://user:hunter2@host/db",
        "postgresql://user:hunter2@host:port/db",
        "user:hunter2@host",
        "hunter2",
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:////tmp/a\0b",
        "sqlite:////tmp/x?timeout=hunter2",
        "postgresql://user:hunter2@host/db?bogus=1",
        "postgresql://user:hunter2@host/db?plugin=bogus",
        "postgresql://user:hunter2@host/d%00b",
        "",
    ],
)
def test_another_url_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(InvalidTextError, match="catalog URL") as refused:
        Catalog.open(url)
    assert "hunter2" not in f"{refused.value}{refused.value.text}"
    assert refused.value.__cause__ is refused.value.__context__ is None


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_credentials_of_postgres_are_shown_nowhere(scheme: str) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound, but not listening: connections are refused
        port = unused.getsockname()[1]
        url = f"{scheme}://user:hunter2@127.0.0.1:{port}/db?sslpassword=hunter2"
        with pytest.raises(StoreUnavailableError, match=f"postgresql://127.0.0.1:{port}/db") as failed:
            Catalog.open(url)
    assert "hunter2" not in str(failed.value)
    assert "hunter2" not in place(make_engine(url))


def test_a_locked_catalog_is_said_to_be_unavailable(catalog_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "_WAIT_FOR_LOCK_MS", 10)
    with Catalog.open(catalog_url) as catalog, Catalog.open(catalog_url) as other:
        with other.begin(), pytest.raises(StoreUnavailableError, match="lock"):
            add_dataset(catalog)
        assert list(catalog.datasets()) == []
        add_dataset(catalog)


def test_a_file_that_is_no_catalog_is_not_touched(tmp_path: Path) -> None:
    file = tmp_path / "catalog.db"
    file.write_bytes(b"this is a letter to my aunt" * 100)
    with pytest.raises(CorruptedError, match="not a database"):
        Catalog.open(f"sqlite:///{file}")
    assert file.read_bytes() == b"this is a letter to my aunt" * 100


def test_a_folder_that_does_not_exist_is_not_created(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailableError, match="unable to open"):
        Catalog.open(f"sqlite:///{tmp_path}/nowhere/catalog.db")


@pytest.mark.parametrize("driver", ["foo", "aiosqlite", "pysqlite"])
def test_the_driver_is_not_chosen_by_the_url(tmp_path: Path, driver: str) -> None:
    with Catalog.open(f"sqlite+{driver}:///{tmp_path}/catalog.db") as catalog:
        add_dataset(catalog)


def test_sqlite_is_set_up_to_lose_nothing(tmp_path: Path) -> None:
    engine = make_engine(f"sqlite:///{tmp_path}/catalog.db")
    with engine.connect() as connection:
        settings = {
            name: connection.execute(text(f"PRAGMA {name}")).scalar_one()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    engine.dispose()
    assert settings == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 30_000}


@pytest.mark.slow
def test_a_lost_connection_is_said_and_then_replaced(postgres_url: str) -> None:
    def use_a_cut_connection(catalog: Catalog) -> None:
        with catalog.begin() as transaction:
            cut_connections(postgres_url)
            transaction.ref(an_id(1), "head")

    with Catalog.open(postgres_url) as catalog:
        with pytest.raises(StoreUnavailableError):
            use_a_cut_connection(catalog)
        add_dataset(catalog)


def cut_connections(postgres_url: str) -> None:
    """Let the server end every connection but this one."""
    engine = make_engine(postgres_url)
    others = "pid <> pg_backend_pid() AND datname = current_database()"
    with engine.connect() as connection:
        connection.execute(text(f"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE {others}"))
    engine.dispose()
