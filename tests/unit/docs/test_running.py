from __future__ import annotations

from pathlib import Path

import pytest

from odf_common.jars import CACHE_FOLDER_VARIABLE
from odf_common.settings import Settings
from services.supervisor import Service, default_services
from streaming_jobs.settings import SparkSettings

PAGE = (Path(__file__).parents[3] / "docs" / "running.md").read_text()
VARIABLES = [
    CACHE_FOLDER_VARIABLE,
    *(f"ODF_{name.upper()}" for name in Settings.model_fields),
    *(f"ODF_SPARK_{name.upper()}" for name in SparkSettings.model_fields),
]


@pytest.mark.parametrize("variable", VARIABLES)
def test_every_setting_has_its_line(variable: str) -> None:
    assert f"`{variable}`" in PAGE


@pytest.mark.parametrize("service", default_services(Settings()), ids=lambda service: service.name)
def test_every_service_has_its_line(service: Service) -> None:
    command = " ".join(["python", *service.command[1:]])
    assert f"| {service.name} | `{command}` |" in PAGE
