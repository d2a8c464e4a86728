from __future__ import annotations

from pathlib import Path

from odf_common.settings import Settings
from services.supervisor.services import default_services, environment_of


def names(settings: Settings) -> list[str]:
    return [service.name for service in default_services(settings)]


def test_a_system_has_all_services_in_their_order(tmp_path: Path) -> None:
    assert names(Settings(data_dir=tmp_path)) == ["broker", "committer", "ingest", "poller", "gateway"]


def test_a_system_on_another_kafka_has_no_broker(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, kafka_bootstrap_servers="kafka:9092")
    assert names(settings) == ["committer", "ingest", "poller", "gateway"]


def test_all_services_share_the_folders(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, uploads=tmp_path / "uploads", staging=tmp_path / "staging")
    told = environment_of(settings, kafka_bootstrap_servers="kafka:9092")
    assert told["ODF_UPLOADS"] == str(tmp_path / "uploads")
    assert told["ODF_STAGING"] == str(tmp_path / "staging")
    assert told["ODF_KAFKA_BOOTSTRAP_SERVERS"] == "kafka:9092"
