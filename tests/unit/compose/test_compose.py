"""The containers' files agree with the code; nothing is started."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic_settings import BaseSettings

from odf_common.jars import CACHE_FOLDER_VARIABLE, OLDEST_JAVA
from odf_common.settings import Settings
from services.broker.configuration import ALL_TOPICS
from services.gateway.settings import GatewaySettings
from services.poller.settings import PollerSettings
from streaming_jobs.settings import SparkSettings

ROOT = Path(__file__).parents[3]
DOCKERFILE = (ROOT / "compose" / "Dockerfile").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose" / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
ALL_SETTINGS: tuple[type[BaseSettings], ...] = (Settings, GatewaySettings, PollerSettings, SparkSettings)


def known_variables() -> set[str]:
    fields = {
        f"{settings.model_config['env_prefix']}{name}".upper()
        for settings in ALL_SETTINGS
        for name in settings.model_fields
    }
    return {*fields, CACHE_FOLDER_VARIABLE}


def modules() -> list[str]:
    commands = [service["command"] for service in SERVICES.values() if "command" in service]
    return [command[2] for command in commands if command[:2] == ["python", "-m"]]


def test_every_service_of_ours_is_there() -> None:
    assert set(modules()) == {"services.committer", "services.gateway", "services.poller", "streaming_jobs.ingest"}


@pytest.mark.parametrize("module", modules())
def test_a_command_is_a_module_that_runs(module: str) -> None:
    assert importlib.util.find_spec(f"{module}.__main__") is not None


@pytest.mark.parametrize("name", SERVICES)
def test_our_variables_are_settings(name: str) -> None:
    ours = {variable for variable in SERVICES[name].get("environment", {}) if variable.startswith("ODF_")}
    assert ours <= known_variables()


def test_the_images_variables_are_settings() -> None:
    assert set(re.findall(r"\b(ODF_\w+)=", DOCKERFILE)) <= known_variables()


@pytest.mark.parametrize("name", SERVICES)
def test_what_a_service_refers_to_exists(name: str) -> None:
    service = SERVICES[name]
    assert set(service.get("depends_on", {})) <= set(SERVICES)
    assert {volume.partition(":")[0] for volume in service.get("volumes", [])} <= set(COMPOSE["volumes"])
    for other, how in service.get("depends_on", {}).items():
        assert how["condition"] != "service_healthy" or "healthcheck" in SERVICES[other]


@pytest.mark.parametrize("name", SERVICES)
def test_only_this_machine_reaches_the_ports(name: str) -> None:
    assert all(port.startswith("127.0.0.1:") for port in SERVICES[name].get("ports", []))


@pytest.mark.parametrize("name", SERVICES)
def test_images_have_versions(name: str) -> None:
    image = SERVICES[name]["image"]
    assert "build" in SERVICES[name] or re.search(r":\d", image)


def test_kafka_is_set_as_the_embedded_one_where_it_matters() -> None:
    kafka = SERVICES["kafka"]["environment"]
    for name in ("auto.create.topics.enable", "message.max.bytes", "log.retention.ms"):
        assert kafka["KAFKA_" + name.upper().replace(".", "_")] == ALL_TOPICS[name]


def test_what_the_image_copies_exists_and_is_not_ignored() -> None:
    copied = [name for line in re.findall(r"^COPY (.+) \S+$", DOCKERFILE, re.MULTILINE) for name in line.split()]
    let_in = (ROOT / "compose" / "Dockerfile.dockerignore").read_text().split()
    assert copied
    assert [name for name in copied if not (ROOT / name).exists()] == []
    assert [name for name in copied if f"!{name}" not in let_in] == []


def test_the_images_java_is_new_enough() -> None:
    (version,) = re.findall(r"openjdk-(\d+)-jre", DOCKERFILE)
    assert int(version) >= OLDEST_JAVA
