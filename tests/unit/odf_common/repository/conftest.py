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


@pytest.fixture(params=["folder", "memory", pytest.param("s3", marks=pytest.mark.slow)])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The location of an empty repository, wherever one may be."""
    if request.param == "folder":
        return str(tmp_path / "datasets")
    if request.param == "memory":
        return "memory:"
    location: str = request.getfixturevalue("s3_location")
    return location


@pytest.fixture
def repository(root: str, catalog: Catalog) -> Repository:
    return Repository.at(root, catalog)


@pytest.fixture
def local_repository(tmp_path: Path, catalog: Catalog) -> Repository:
    return Repository.at(tmp_path / "datasets", catalog)
