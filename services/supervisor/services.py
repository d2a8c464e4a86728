"""What the supervisor runs: the commands of one system."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

from odf_common.settings import Settings

BROKER = "broker"
GATEWAY = "gateway"


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One child process. It prints one JSON line with `"ready": true` on stdout when it serves.

    Before that it may print lines with `"progress": "…"`. It stops on SIGTERM, and exits with 3 when starting it
    again cannot help.
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    stop_timeout_s: float = 15.0


def default_services(
    settings: Settings, *, kafka_port: int | None = None, gateway_port: int | None = None
) -> tuple[Service, ...]:
    """All of a system in the order in which they start; they stop in the opposite order.

    `kafka_port` is the embedded broker's, which is left out if the settings name another Kafka.
    """
    # Only when it is given: otherwise the environment may say it.
    gateway_environment = {} if gateway_port is None else {"ODF_GATEWAY_PORT": str(gateway_port)}
    broker = () if settings.kafka_bootstrap_servers else (_broker(kafka_port),)
    return (
        *broker,
        _module("committer", "services.committer"),
        _module("ingest", "streaming_jobs.ingest", stop_timeout_s=30.0),
        _module("poller", "services.poller"),
        _module(GATEWAY, "services.gateway", environment=gateway_environment),
    )


def _broker(port: int | None) -> Service:
    options = () if port is None else ("--port", str(port))
    return _module(BROKER, "services.broker", *options, stop_timeout_s=30.0)


def _module(
    name: str, module: str, *options: str, environment: Mapping[str, str] | None = None, stop_timeout_s: float = 15.0
) -> Service:
    command = (sys.executable, "-m", module, *options)
    return Service(name=name, command=command, environment=environment or {}, stop_timeout_s=stop_timeout_s)


def environment_of(settings: Settings, *, kafka_bootstrap_servers: str) -> dict[str, str]:
    """The settings as the environment that every child gets."""
    chosen = {
        "ODF_DATA_DIR": str(settings.data_dir.absolute()),
        "ODF_KAFKA_BOOTSTRAP_SERVERS": kafka_bootstrap_servers,
        "ODF_REPOSITORY": settings.repository,
        "ODF_CATALOG": settings.catalog,
        "ODF_STAGING": str(settings.staging.absolute()) if settings.staging else None,
        "ODF_UPLOADS": str(settings.uploads.absolute()) if settings.uploads else None,
        "PROMETHEUS_MULTIPROC_DIR": str(settings.data_dir.absolute() / "run" / "metrics"),
        "PYTHONUNBUFFERED": "1",
    }
    return {name: value for name, value in chosen.items() if value is not None}
