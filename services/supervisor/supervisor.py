"""The supervisor: one thread that starts a system's services, keeps them alive and stops them in order."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from odf_common.endpoints import Endpoints, remove_endpoints, write_endpoints
from odf_common.errors import OdfError, StoreUnavailableError
from odf_common.service_process import lock_or_holder
from odf_common.settings import Settings
from services.broker.configuration import HOST
from services.broker.ports import choose_ports
from services.supervisor.keeper import Keeper
from services.supervisor.services import BROKER, GATEWAY, Service, default_services, environment_of
from services.supervisor.status import ServiceState, ServiceStatus

START_TIMEOUT_S = 180.0  # the first start on a machine fetches jars

_LOOK_EVERY_S = 0.1


class SystemRunsError(OdfError):
    """Another supervisor holds the data folder."""


class SystemFailedError(StoreUnavailableError):
    """The system did not come up; the message says which service, and why."""


class Supervisor:
    """Runs the services of one data folder as child processes, from `start` to `stop`.

    The broker's port is chosen before it starts, so all services start at the same time and wait by themselves.
    `on_change` is called by the supervisor's thread with each new status; it must not take long.
    """

    def __init__(
        self,
        settings: Settings,
        services: Sequence[Service] | None = None,
        *,
        kafka_port: int | None = None,
        gateway_port: int | None = None,
        on_change: Callable[[ServiceStatus], None] = lambda _: None,
    ) -> None:
        self._settings = settings
        self._services = services
        self._kafka_port = kafka_port
        self._gateway_port = gateway_port
        self._on_change = on_change
        self._keepers: list[Keeper] = []
        self._kafka = ""
        self._told: Endpoints | None = None
        self._news = threading.Event()
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock: IO[str] | None = None

    @property
    def kafka_bootstrap_servers(self) -> str:
        """Where Kafka is, or will be."""
        return self._kafka

    @property
    def endpoints(self) -> Endpoints | None:
        """The addresses, once Kafka and the gateway serve."""
        return self._told

    @property
    def runs(self) -> bool:
        """Whether it is between `start` and `stop`."""
        return self._thread is not None and self._thread.is_alive()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def start(self) -> None:
        """Start all services and return at once; SystemRunsError if another supervisor holds the data folder."""
        if self._thread is not None:
            raise RuntimeError("the supervisor has been started already")
        self._acquire()
        try:
            self._prepare()
        except BaseException:
            self._release()
            raise
        self._stopping.clear()
        self._thread = threading.Thread(target=self._run, name="supervisor", daemon=True)
        self._thread.start()

    def wait_ready(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Return when every service serves; SystemFailedError when one gave up, or none of this came true in time."""
        with self._changed:
            self._changed.wait_for(lambda: self._all_ready() or self._failed() or self._ended(), timeout_s)
        if self._all_ready():
            return
        raise SystemFailedError("; ".join(map(_complaint, self._failed() or self._not_ready())))

    def states(self) -> list[ServiceStatus]:
        """How each service is, with its memory."""
        return [keeper.status(with_memory=True) for keeper in self._keepers]

    def stop(self) -> None:
        """Stop all services, the last started first, and return when no process is left; again does nothing."""
        self._stopping.set()
        self._news.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _prepare(self) -> None:
        self._kafka = self._settings.kafka_bootstrap_servers or self._broker_address()
        port = int(self._kafka.rpartition(":")[2]) if self._settings.kafka_bootstrap_servers is None else None
        services = self._services
        if services is None:
            services = default_services(self._settings, kafka_port=port, gateway_port=self._gateway_port)
        shutil.rmtree(self._run_folder / "metrics", ignore_errors=True)
        (self._run_folder / "metrics").mkdir(parents=True)
        environment = {**os.environ, **environment_of(self._settings, kafka_bootstrap_servers=self._kafka)}
        self._keepers = [
            Keeper(
                service,
                environment=environment,
                log=self._settings.data_dir.absolute() / "logs" / f"{service.name}.log",
                on_news=self._news.set,
                on_change=self._tell,
            )
            for service in services
        ]

    def _broker_address(self) -> str:
        folder = self._settings.data_dir / BROKER
        return f"{HOST}:{choose_ports(folder, port=self._kafka_port).clients}"

    def _run(self) -> None:
        try:
            for keeper in self._keepers:
                keeper.start()
            while not self._stopping.is_set():
                self._news.wait(_LOOK_EVERY_S)
                self._news.clear()
                for keeper in self._keepers:
                    keeper.look()
                self._tell_endpoints()
        finally:
            self._finish()

    def _finish(self) -> None:
        try:
            remove_endpoints(self._settings)
            self._told = None
            for keeper in reversed(self._keepers):
                keeper.stop()
        finally:
            self._release()
            with self._changed:
                self._changed.notify_all()

    def _tell(self, status: ServiceStatus) -> None:
        self._on_change(status)
        with self._changed:
            self._changed.notify_all()

    def _tell_endpoints(self) -> None:
        states = {keeper.service.name: keeper.status() for keeper in self._keepers}
        gateway, broker = states.get(GATEWAY), states.get(BROKER)
        if gateway is None or gateway.url is None or (broker and broker.state is not ServiceState.READY):
            return  # what was told stays: a service that is starting again will have the same address
        endpoints = Endpoints(kafka_bootstrap_servers=self._kafka, gateway_url=gateway.url)
        if endpoints != self._told:
            write_endpoints(self._settings, endpoints)
            self._told = endpoints

    def _all_ready(self) -> bool:
        return not self._not_ready()

    def _not_ready(self) -> list[ServiceStatus]:
        return [s for keeper in self._keepers if (s := keeper.status()).state is not ServiceState.READY]

    def _failed(self) -> list[ServiceStatus]:
        return [s for keeper in self._keepers if (s := keeper.status()).state is ServiceState.FAILED]

    def _ended(self) -> bool:
        return self._lock is None

    @property
    def _run_folder(self) -> Path:
        return self._settings.data_dir.absolute() / "run"

    def _acquire(self) -> None:
        self._run_folder.mkdir(parents=True, exist_ok=True)
        lock = lock_or_holder(self._run_folder / "supervisor.lock")
        if isinstance(lock, str):
            raise SystemRunsError(
                f"a system runs on {self._settings.data_dir} already ({lock}): "
                "stop it, or choose another folder with --data-dir"
            )
        self._lock = lock

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def _complaint(status: ServiceStatus) -> str:
    return f"{status.name} is {status.state}" + (f": {status.detail}" if status.detail else "")
