"""Where the running system can be reached: a file in the data folder, written by the supervisor, read by everyone."""

from __future__ import annotations

import os
from pathlib import Path

from odf_common.errors import MalformedBytesError, StoreUnavailableError
from odf_common.messages.base import Message
from odf_common.settings import Settings


class Endpoints(Message):
    """The addresses of one running system."""

    kafka_bootstrap_servers: str
    gateway_url: str


def endpoints_file(settings: Settings) -> Path:
    """Where the addresses are noted."""
    return settings.data_dir / "run" / "endpoints.json"


def write_endpoints(settings: Settings, endpoints: Endpoints) -> None:
    """Tell everyone where the system is."""
    path = endpoints_file(settings)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_bytes(endpoints.to_json())
    os.replace(part, path)


def remove_endpoints(settings: Settings) -> None:
    """Tell everyone that the system has stopped."""
    endpoints_file(settings).unlink(missing_ok=True)


def running_endpoints(settings: Settings) -> Endpoints:
    """Where the system is; StoreUnavailableError, with what to do, if none runs on this data folder."""
    try:
        return Endpoints.from_json(endpoints_file(settings).read_bytes())
    except (FileNotFoundError, MalformedBytesError) as error:
        raise StoreUnavailableError(
            f"nothing runs on {settings.data_dir}: start it with `odf up --data-dir {settings.data_dir}`, "
            "or name another folder with --data-dir"
        ) from error


def bootstrap_servers(settings: Settings) -> str:
    """The Kafka to talk to: the one of the settings, or the one that the running system started."""
    return settings.kafka_bootstrap_servers or running_endpoints(settings).kafka_bootstrap_servers
