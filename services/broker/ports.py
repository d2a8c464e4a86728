"""Ports for the broker: the ones it had last time, if they are free, or others."""

from __future__ import annotations

import json
import os
import random
import socket
from pathlib import Path

from services.broker.configuration import HOST, Ports

# Below the range that outgoing connections get their ports from: one of them could hold ours after a restart.
_CANDIDATES = range(20_000, 32_000)
_TRIES = 200


class PortTakenError(OSError):
    """Somebody else listens there."""


def choose_ports(folder: Path, *, port: int | None = None) -> Ports:
    """The ports to use now: `port` for clients if it is given, else the last ones that are still free."""
    last = remembered_ports(folder)
    if port is not None and not is_free(port):
        raise PortTakenError(f"port {port} of {HOST} is in use: choose another one, or stop what listens there")
    clients = port or (last.clients if last and is_free(last.clients) else free_port())
    controller = last.controller if last and last.controller != clients and is_free(last.controller) else None
    return Ports(clients=clients, controller=controller or free_port(but_not=clients))


def remembered_ports(folder: Path) -> Ports | None:
    """The ports of the last start, if there was one."""
    try:
        noted = json.loads((folder / "ports.json").read_bytes())
        return Ports(clients=int(noted["clients"]), controller=int(noted["controller"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def remember_ports(folder: Path, ports: Ports) -> None:
    """Note them for the next start."""
    part = folder / "ports.json.part"
    part.write_text(json.dumps({"clients": ports.clients, "controller": ports.controller}))
    os.replace(part, folder / "ports.json")


def is_free(port: int) -> bool:
    """Whether a server could listen there now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def free_port(*, but_not: int = 0) -> int:
    """A port where nobody listens."""
    for port in random.SystemRandom().sample(_CANDIDATES, _TRIES):
        if port != but_not and is_free(port):
            return port
    raise PortTakenError(f"found no free port on {HOST}")
