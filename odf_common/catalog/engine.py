"""Connections to the catalog's database: SQLite in a file, or Postgres."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

from sqlalchemy import Connection, Engine, create_engine, event, func, select
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DatabaseError, DataError, DBAPIError, IntegrityError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from odf_common.errors import CorruptedError, InvalidTextError, StoreUnavailableError

_POSTGRES = "postgresql"
_POSTGRES_NAMES = ("postgresql", "postgres")
_POSTGRES_DRIVER = "postgresql+psycopg"
_SQLITE = "sqlite"

_WAIT_FOR_LOCK_MS = 30_000
_IDLE_IN_TRANSACTION_MS = 60_000
_CONNECT_TIMEOUT_S = 10

_WRITER_LOCK = 0x6F64662D63617461
"""Key of the advisory lock of all writers of a Postgres catalog: the letters `odf-cata`."""

_WRITES = "odf_catalog_writes"


def make_engine(text: str) -> Engine:
    """An engine for `sqlite:///path` or `postgresql://…`; opens no connection yet."""
    try:
        engine = _create(text)
    except (ArgumentError, ValueError):
        engine = None
    if engine is None:
        # Neither the text nor a cause is shown: they may hold a password.
        reason = "expected sqlite:///path/to/file or postgresql://user@host/database"
        raise InvalidTextError("catalog URL", "…", position=0, reason=reason)
    return engine


def place(engine: Engine) -> str:
    """The catalog as messages name it: without user, password and options."""
    url = engine.url
    host = f"{url.host or ''}{f':{url.port}' if url.port else ''}"
    return f"{url.get_backend_name()}://{host}/{url.database or ''}"


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A transaction for a query."""
    with _translated(engine), engine.begin() as connection:
        yield connection


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """A transaction that excludes all other writers, committed at the end, rolled back if anything is raised.

    One writer at a time is what SQLite offers anyway. On Postgres it makes the ids of the journal visible in the order
    in which they are given out, and what a writer read stays true until it commits
    (docs/decisions/0006-catalog-and-refs.md).
    """
    with _translated(engine), engine.execution_options(**{_WRITES: True}).begin() as connection:
        if engine.dialect.name == _POSTGRES:
            connection.execute(select(func.pg_advisory_xact_lock(_WRITER_LOCK)))
        yield connection


def _create(text: str) -> Engine | None:
    """None, or an ArgumentError or ValueError of the libraries, if the text is not what it should be."""
    url = make_url(text)
    if "\0" in unquote(text):
        return None
    if url.get_backend_name() in _POSTGRES_NAMES:
        return _create_postgres(url.set(drivername=_POSTGRES_DRIVER))
    if url.get_backend_name() == _SQLITE and _is_file(url):
        return _create_sqlite(url.set(drivername=_SQLITE))
    return None


def _create_sqlite(url: URL) -> Engine:
    engine = create_engine(url, connect_args={"timeout": _WAIT_FOR_LOCK_MS / 1000})
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _create_postgres(url: URL) -> Engine | None:
    # With a stronger isolation, a writer would see the state from before it waited for the lock.
    engine = create_engine(
        url, isolation_level="READ COMMITTED", pool_pre_ping=True, connect_args={"connect_timeout": _CONNECT_TIMEOUT_S}
    )
    event.listen(engine, "connect", _set_up_postgres)
    return engine if _has_known_options(engine) else None


def _has_known_options(engine: Engine) -> bool:
    from psycopg import ProgrammingError as UnknownOptionError
    from psycopg.conninfo import make_conninfo

    _, options = engine.dialect.create_connect_args(engine.url)
    options.pop("context", None)  # of the driver, not of the server
    try:
        make_conninfo(**options)
    except UnknownOptionError:
        return False
    return True


def _is_file(url: URL) -> bool:
    return bool(url.database) and url.database != ":memory:"


@contextmanager
def _translated(engine: Engine) -> Iterator[None]:
    try:
        yield
    except (IntegrityError, ProgrammingError, DataError):
        # Mistakes of this program: trying again does not help.
        raise
    except (DBAPIError, PoolTimeoutError) as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        reason = str(cause).partition("\n")[0]
        # Without the error around the cause, whose text shows statement and values.
        if type(error) is DatabaseError:
            raise CorruptedError(place(engine), reason) from cause
        raise StoreUnavailableError(f"catalog {place(engine)}: {reason}") from cause


def _set_up_postgres(connection: Any, _record: object) -> None:
    connection.execute(f"SET lock_timeout = {_WAIT_FOR_LOCK_MS}")
    connection.execute(f"SET idle_in_transaction_session_timeout = {_IDLE_IN_TRANSACTION_MS}")
    connection.commit()


def _set_up_sqlite(connection: Any, _record: object) -> None:
    # The driver would begin transactions by itself, later than asked.
    connection.isolation_level = None
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get(_WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
