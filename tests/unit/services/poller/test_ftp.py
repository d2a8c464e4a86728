from __future__ import annotations

import itertools
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from odf_common.metadata.sources import FetchStepUrl
from odf_common.timestamp import Timestamp
from services.poller.errors import (
    FetchDamagedError,
    FetchNotFoundError,
    FetchRefusedError,
    FetchUnreachableError,
    StepRefusedError,
)
from services.poller.fetch import fetch
from services.poller.fetched import CONTENT_HASH, LAST_MODIFIED, Fetched, UpToDate
from tests.unit.services.poller.conftest import MakeJob

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:The asyn(core|chat) module:DeprecationWarning"),
]


class FtpServer:
    """A server on a free port, for the user odf with the password secret, and for everybody."""

    def __init__(self, folder: Path) -> None:
        from pyftpdlib.authorizers import DummyAuthorizer
        from pyftpdlib.handlers import FTPHandler
        from pyftpdlib.ioloop import IOLoop
        from pyftpdlib.servers import FTPServer

        authorizer = DummyAuthorizer()
        authorizer.add_user("odf", "secret", str(folder))
        authorizer.add_anonymous(str(folder))
        self.handler: Any = type(
            "Handler",
            (FTPHandler,),
            {"authorizer": authorizer, "proto_cmds": dict(FTPHandler.proto_cmds), "auth_failed_timeout": 0},
        )
        self._server = FTPServer(("127.0.0.1", 0), self.handler, ioloop=IOLoop())
        self.address = f"127.0.0.1:{self._server.socket.getsockname()[1]}"
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while not self._stop.is_set():
            self._server.serve_forever(timeout=0.02, blocking=False)
        self._server.close_all()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "ftp"
    path.mkdir()
    (path / "a b.csv").write_bytes(b"1,2" * 1000)
    os.utime(path / "a b.csv", (1_714_564_800, 1_714_564_800))
    return path


@pytest.fixture
def ftp(folder: Path) -> Iterator[FtpServer]:
    server = FtpServer(folder)
    yield server
    server.close()


def test_the_time_of_a_file_is_its_state(ftp: FtpServer, folder: Path, make_job: MakeJob) -> None:
    step = FetchStepUrl(url=f"ftp://{ftp.address}/a%20b.csv")
    found = fetch(step, make_job())
    assert isinstance(found, Fetched)
    assert found.file.read() == b"1,2" * 1000
    assert (found.state.kind, found.state.value) == (LAST_MODIFIED, "2024-05-01T12:00:00Z")
    assert found.event_time == Timestamp.parse("2024-05-01T12:00:00Z")
    assert isinstance(fetch(step, make_job(last=found.state)), UpToDate)
    os.utime(folder / "a b.csv", (1_714_564_801, 1_714_564_801))
    assert isinstance(fetch(step, make_job(last=found.state)), Fetched)


def test_a_server_that_tells_no_time(ftp: FtpServer, make_job: MakeJob) -> None:
    del ftp.handler.proto_cmds["MDTM"]
    del ftp.handler.proto_cmds["SIZE"]
    step = FetchStepUrl(url=f"ftp://{ftp.address}/a%20b.csv")
    found = fetch(step, make_job())
    assert isinstance(found, Fetched)
    assert (found.state.kind, found.event_time) == (CONTENT_HASH, None)
    assert isinstance(fetch(step, make_job(last=found.state)), UpToDate)


def test_users_and_templates(ftp: FtpServer, make_job: MakeJob) -> None:
    step = FetchStepUrl(url=f"ftp://odf:${{{{ env.PASSWORD }}}}@{ftp.address}/a%20b.csv")
    allowed = {"env_allow": "PASSWORD"}
    assert isinstance(fetch(step, make_job(environment={"PASSWORD": "secret"}, settings=allowed)), Fetched)
    with pytest.raises(FetchUnreachableError, match="530 Authentication failed"):
        fetch(step, make_job(environment={"PASSWORD": "wrong"}, settings=allowed))


def test_there_is_no_file(ftp: FtpServer, make_job: MakeJob) -> None:
    with pytest.raises(FetchNotFoundError, match="550"):
        fetch(FetchStepUrl(url=f"ftp://{ftp.address}/nothing"), make_job())


def test_a_file_that_changes_while_it_is_read(ftp: FtpServer, folder: Path, make_job: MakeJob) -> None:
    times = itertools.count(1_714_570_000)

    def somebody_writes() -> bool:
        moment = next(times)
        os.utime(folder / "a b.csv", (moment, moment))
        return False

    with pytest.raises(FetchDamagedError, match="changed while it was read"):
        fetch(FetchStepUrl(url=f"ftp://{ftp.address}/a%20b.csv"), make_job(stopping=somebody_writes))


@pytest.mark.parametrize("path", ["", "/", "/a%0d%0aDELE%20b"])
def test_what_is_no_file(make_job: MakeJob, path: str) -> None:
    with pytest.raises(StepRefusedError, match="an FTP URL names a file"):
        fetch(FetchStepUrl(url=f"ftp://127.0.0.1:1{path}"), make_job())


def test_nobody_listens(make_job: MakeJob) -> None:
    with pytest.raises(FetchUnreachableError, match="could not be read"):
        fetch(FetchStepUrl(url="ftp://127.0.0.1:1/a"), make_job())


@pytest.mark.parametrize(
    ("greeting", "error", "text", "timeout_s"),
    [
        (b"220-hello\r\n" * 1_000, FetchRefusedError, "talks too much", 20.0),
        (b"2", FetchUnreachableError, r"longer than 0.5 s", 0.5),
    ],
    ids=["for ever", "in drips"],
)
def test_a_server_whose_greeting_never_ends(
    make_job: MakeJob, greeting: bytes, error: type[Exception], text: str, timeout_s: float
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def greet() -> None:
            connection, _ = listening.accept()
            with connection, suppress(OSError):
                while True:
                    connection.sendall(greeting)
                    time.sleep(0.02)

        server = threading.Thread(target=greet)
        server.start()
        step = FetchStepUrl(url=f"ftp://127.0.0.1:{listening.getsockname()[1]}/a")
        began = time.monotonic()
        with pytest.raises(error, match=text):
            fetch(step, make_job(settings={"fetch_timeout_s": timeout_s}))
        assert time.monotonic() - began < 5
        server.join()
