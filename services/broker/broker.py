"""The embedded broker's life: format, start, answer, stop."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from odf_common.child_process import tied_to_this_process
from odf_common.errors import OdfError, StoreUnavailableError
from odf_common.jars import find_java, jars_in, retrieve_jars
from odf_common.service_process import lock_or_holder
from services.broker.class_archive import ClassArchive, class_archive
from services.broker.configuration import (
    DEFAULT_HEAP_SIZE,
    HOST,
    Ports,
    java_options,
    properties_text,
    server_properties,
)
from services.broker.formatting import format_storage
from services.broker.ports import choose_ports, remember_ports

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 20.0

_POLL_S = 0.05
_STARTS = 5
_MAX_LOG_SIZE = 8 << 20  # bytes
# Another process was quicker to take the port, or one that was killed a moment ago has not quite gone.
_PASSING = ("Address already in use", "Failed to acquire lock")


class BrokerRunsError(OdfError):
    """Another broker holds the folder."""


class BrokerFailedError(StoreUnavailableError):
    """The broker did not start; the message has its last words."""


class EmbeddedBroker:
    """Apache Kafka in KRaft mode as a child of this process, on a folder that it keeps between runs.

    Start it from a thread that lives as long as it should: when that ends, the kernel ends the broker.
    """

    def __init__(
        self,
        folder: Path,
        *,
        port: int | None = None,
        heap_size: int = DEFAULT_HEAP_SIZE,
        on_progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.folder = folder.absolute()
        self._port = port
        self._heap_size = heap_size
        self._on_progress = on_progress
        self._process: subprocess.Popen[bytes] | None = None
        self._lock: IO[str] | None = None
        self._ports: Ports | None = None
        self._archive = ClassArchive()

    @property
    def bootstrap_servers(self) -> str:
        """What clients connect to."""
        if self._ports is None:
            raise RuntimeError("the broker has not been started")
        return f"{HOST}:{self._ports.clients}"

    @property
    def pid(self) -> int | None:
        """The process of the Java virtual machine."""
        return self._process.pid if self._process else None

    @property
    def log_file(self) -> Path:
        """What Kafka has to say: warnings and errors."""
        return self.folder / "server.log"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def start(self, *, timeout_s: float = START_TIMEOUT_S) -> None:
        """Return when it answers; what went wrong otherwise is a BrokerFailedError."""
        self._acquire()
        try:
            java, jars = find_java(), jars_in(retrieve_jars("broker", self._on_progress))
            cluster_id = format_storage(self.folder, java=java, jars=jars)
            give_up = time.monotonic() + timeout_s  # fetching the jars does not count
            for last_try in [False] * (_STARTS - 1) + [True]:
                if self._start_once(java, jars, cluster_id, give_up=give_up, last_try=last_try):
                    break
        except BaseException:
            self.stop()
            raise

    def poll(self) -> int | None:
        """The exit code of a broker that has ended by itself; None while it runs."""
        return self._process.poll() if self._process else None

    def kill(self) -> None:
        """End it as kill -9 does, for tests."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._release()

    def stop(self, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """End it cleanly, or by force when it takes too long; again does nothing."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(timeout_s)
                self._archive.keep()
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._release()

    def _start_once(self, java: Path, jars: list[Path], cluster_id: str, *, give_up: float, last_try: bool) -> bool:
        """Whether it answers now; False if another try may help."""
        self._ports = choose_ports(self.folder, port=self._port)
        self._process = self._spawn(java, jars, self._ports)
        while not answers(self.bootstrap_servers, cluster_id):
            if self._process.poll() is not None:
                if (
                    not last_try
                    and time.monotonic() < give_up
                    and any(cause in self._last_words() for cause in _PASSING)
                ):
                    return False
                raise BrokerFailedError(f"the broker ended while starting, see {self.log_file}:\n{self._last_words()}")
            if time.monotonic() > give_up:
                raise BrokerFailedError(f"the broker does not answer, see {self.log_file}:\n{self._last_words()}")
            time.sleep(_POLL_S)
        remember_ports(self.folder, self._ports)
        return True

    def _spawn(self, java: Path, jars: list[Path], ports: Ports) -> subprocess.Popen[bytes]:
        properties = self.folder / "server.properties"
        properties.write_text(properties_text(server_properties(ports, logs=self.folder / "logs")))
        self._archive = class_archive(java, jars)
        command: list[str | Path] = [
            java,
            *java_options(self._heap_size),
            *self._archive.options,
            "-cp",
            ":".join(map(str, jars)),
            "kafka.Kafka",
            properties,
        ]
        with self.log_file.open("wb") as log:
            return subprocess.Popen(  # noqa: S603 - a command of our own
                tied_to_this_process(command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,  # Ctrl-C is for us: we stop it in our own order
            )

    def _last_words(self) -> str:
        return "\n".join(self.log_file.read_text(errors="replace").splitlines()[-12:])

    def _acquire(self) -> None:
        if self._lock is not None:
            raise RuntimeError("the broker has been started already")
        self.folder.mkdir(parents=True, exist_ok=True)
        lock = lock_or_holder(self.folder / "broker.lock")
        if isinstance(lock, str):
            raise BrokerRunsError(f"a broker runs on {self.folder} already ({lock}): stop it, or choose another folder")
        self._lock = lock

    def _release(self) -> None:
        self._process = None
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def answers(bootstrap_servers: str, cluster_id: str) -> bool:
    """Whether the broker of this cluster, and not somebody else on its port, serves clients."""
    from confluent_kafka import KafkaException

    from odf_common.kafka.clients import admin_client

    if not _listens(bootstrap_servers):
        return False  # asking the client would make it log
    try:
        found = admin_client(bootstrap_servers).list_topics(timeout=1.0)
    except KafkaException:
        return False
    return bool(found.brokers) and found.cluster_id == cluster_id


def _listens(address: str) -> bool:
    import socket

    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=1.0).close()
    except OSError:
        return False
    return True
