from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from odf_common.catalog.catalog import Catalog
from odf_common.repository.repository import Repository


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with Catalog.open(f"sqlite:///{tmp_path}/catalog.db") as catalog:
        yield catalog


@pytest.fixture
def repository(tmp_path: Path, catalog: Catalog) -> Repository:
    return Repository.at(tmp_path / "datasets", catalog)


@pytest.fixture
def staging(tmp_path: Path) -> Path:
    return tmp_path / "staging"
