"""The contract of the gateway as a document, made without opening one."""

from __future__ import annotations

from typing import Any

from services.gateway.app import create_app
from services.gateway.gateway import Gateway
from services.gateway.settings import GatewaySettings


def openapi() -> dict[str, Any]:
    """What `/openapi.json` answers."""

    def never() -> Any:
        raise AssertionError(f"a document needs no {Gateway.__name__}")

    return create_app(GatewaySettings(), never).openapi()
