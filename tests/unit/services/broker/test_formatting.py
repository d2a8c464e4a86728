from __future__ import annotations

from pathlib import Path

import pytest

from odf_common.errors import CorruptedError
from services.broker.formatting import cluster_id_of, format_storage, identity_text, random_id


@pytest.fixture
def jars(tmp_path: Path) -> list[Path]:
    folder = tmp_path / "jars"
    folder.mkdir()
    (folder / "bootstrap.checkpoint").write_bytes(b"features")
    return [folder / "kafka.jar"]


def test_a_new_folder_gets_an_identity_and_keeps_it(tmp_path: Path, jars: list[Path]) -> None:
    cluster_id = format_storage(tmp_path / "one", java=Path("none"), jars=jars)
    assert (tmp_path / "one" / "logs" / "bootstrap.checkpoint").read_bytes() == b"features"
    assert format_storage(tmp_path / "one", java=Path("none"), jars=jars) == cluster_id
    assert format_storage(tmp_path / "two", java=Path("none"), jars=jars) != cluster_id


def test_an_identity_without_a_cluster_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "meta.properties"
    path.write_text("version=1\n")
    with pytest.raises(CorruptedError, match=r"has no cluster\.id"):
        cluster_id_of(path)


def test_ids_are_as_kafka_likes_them(tmp_path: Path) -> None:
    ids = {random_id() for _ in range(300)}
    assert len(ids) == 300
    assert all(len(one) == 22 and not one.startswith("-") for one in ids)
    path = tmp_path / "meta.properties"
    path.write_text(identity_text(cluster_id=min(ids), directory_id=max(ids)))
    assert cluster_id_of(path) == min(ids)
