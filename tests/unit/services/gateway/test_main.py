from __future__ import annotations

import socket
from contextlib import closing
from pathlib import Path

import pytest

from services.gateway.__main__ import listening_socket, url_of
from services.gateway.settings import DEFAULT_PORT, GatewaySettings


def test_every_setting_is_documented() -> None:
    text = (Path(__file__).parents[4] / "docs" / "gateway.md").read_text()
    for name in GatewaySettings.model_fields:
        assert f"`ODF_GATEWAY_{name.upper()}`" in text


def test_a_taken_port_that_was_asked_for_is_an_error() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken, pytest.raises(OSError, match="in use"):
        listening_socket(GatewaySettings(port=taken.getsockname()[1]))


def test_a_taken_usual_port_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        monkeypatch.setattr("services.gateway.__main__.DEFAULT_PORT", taken.getsockname()[1])
        with closing(listening_socket(GatewaySettings())) as found:
            assert found.getsockname()[1] not in (0, taken.getsockname()[1], DEFAULT_PORT)


def test_a_public_address_is_shown_as_one_that_can_be_opened() -> None:
    with closing(listening_socket(GatewaySettings(host="0.0.0.0", port=0))) as found:
        assert url_of(found) == f"http://127.0.0.1:{found.getsockname()[1]}"
