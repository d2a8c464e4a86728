from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from odf_common.identity.key_pair import KeyPair
from odf_common.metadata.sources import ReadStepNdJson
from services.poller.fetched import FetchJob
from services.poller.settings import PollerSettings
from services.poller.templates import Secrets

MakeJob = Callable[..., FetchJob]


@pytest.fixture
def make_job(tmp_path: Path) -> Iterator[MakeJob]:
    """A job with settings by name; what it opens is closed with the test."""
    jobs: list[FetchJob] = []

    def make(
        *, environment: dict[str, str] | None = None, settings: dict[str, Any] | None = None, **more: Any
    ) -> FetchJob:
        chosen = PollerSettings(**({"connect_timeout_s": 5.0, "read_timeout_s": 5.0} | (settings or {})))
        given: dict[str, Any] = {
            "dataset_id": KeyPair.generate().dataset_id,
            "read": ReadStepNdJson(),
            "settings": chosen,
            "secrets": Secrets(chosen.allowed_names, environment or {}),
            "folder": tmp_path / "fetching",
        }
        job = FetchJob(**(given | more))
        jobs.append(job)
        return job

    yield make
    for job in jobs:
        job.until_done.close()


@dataclass
class WebServer:
    """Answers as told, and remembers what it was asked."""

    url: str = ""
    answers: dict[str, Callable[[BaseHTTPRequestHandler], None]] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def give(self, path: str, body: bytes = b"", *, status: int = 200, **headers: str) -> str:
        """Answer with a body; returns the URL."""

        def answer(request: BaseHTTPRequestHandler) -> None:
            request.send_response(status)
            sent = {"content_length": str(len(body))} | headers
            for name, value in sent.items():
                request.send_header(name.replace("_", "-"), value)
            request.end_headers()
            request.wfile.write(body)

        self.answers[path] = answer
        return self.url + path

    def raw(self, path: str, answer: Callable[[BaseHTTPRequestHandler], None]) -> str:
        self.answers[path] = answer
        return self.url + path


@pytest.fixture
def web() -> Iterator[WebServer]:
    with serving() as server:
        yield server


@pytest.fixture
def other_web() -> Iterator[WebServer]:
    with serving() as server:
        yield server


class serving:  # noqa: N801 - reads as a function
    def __enter__(self) -> WebServer:
        server = WebServer()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
                answer = server.answers.get(self.path)
                if answer is None:
                    self.send_error(404)
                else:
                    answer(self)

            def do_POST(self) -> None:
                server.answers["/"](self)

            def log_message(self, *_: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        server.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        return server

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
