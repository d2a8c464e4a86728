from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.broker.configuration import Ports
from services.broker.ports import PortTakenError, choose_ports, free_port, is_free, remember_ports, remembered_ports


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_free_port_is_free() -> None:
    assert is_free(free_port())


def test_a_port_where_somebody_listens_is_not(taken: int) -> None:
    assert not is_free(taken)


def test_the_last_ports_come_again(tmp_path: Path) -> None:
    ports = choose_ports(tmp_path)
    remember_ports(tmp_path, ports)
    assert choose_ports(tmp_path) == ports


def test_a_last_port_that_is_taken_is_replaced(tmp_path: Path, taken: int) -> None:
    remember_ports(tmp_path, Ports(clients=taken, controller=taken))
    ports = choose_ports(tmp_path)
    assert taken not in (ports.clients, ports.controller)
    assert ports.clients != ports.controller


def test_the_port_that_was_asked_for_is_used(tmp_path: Path) -> None:
    port = free_port()
    assert choose_ports(tmp_path, port=port).clients == port


def test_the_port_that_was_asked_for_may_be_taken(tmp_path: Path, taken: int) -> None:
    with pytest.raises(PortTakenError, match=f"port {taken} of 127.0.0.1 is in use"):
        choose_ports(tmp_path, port=taken)


@pytest.mark.parametrize("noted", ["", "{}", "[]", '{"clients": "x", "controller": 1}'])
def test_a_broken_note_is_no_note(tmp_path: Path, noted: str) -> None:
    (tmp_path / "ports.json").write_text(noted)
    assert remembered_ports(tmp_path) is None
