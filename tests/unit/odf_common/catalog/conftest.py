from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from odf_common.catalog.catalog import Catalog


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def catalog_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database of either kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/catalog.db"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def catalog(catalog_url: str) -> Iterator[Catalog]:
    with Catalog.open(catalog_url) as catalog:
        yield catalog
