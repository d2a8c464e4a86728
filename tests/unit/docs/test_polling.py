from __future__ import annotations

from pathlib import Path

import pytest

from services.poller.settings import PollerSettings

PAGE = (Path(__file__).parents[3] / "docs" / "polling.md").read_text()


@pytest.mark.parametrize("name", PollerSettings.model_fields)
def test_every_setting_has_its_line(name: str) -> None:
    assert f"`ODF_POLLER_{name.upper()}`" in PAGE
