from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from odf_common.repository.repository import Repository
from tests.unit.services.gateway.builders import a_repository


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[Repository]:
    with a_repository(tmp_path) as repository:
        yield repository
