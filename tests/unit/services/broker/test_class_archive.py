from __future__ import annotations

from pathlib import Path

import pytest

from services.broker.class_archive import class_archive


@pytest.fixture
def java(tmp_path: Path) -> Path:
    (tmp_path / "java").write_text("one")
    return tmp_path / "java"


@pytest.fixture
def jars(tmp_path: Path) -> list[Path]:
    return [tmp_path / "kafka.jar"]


def test_the_first_start_writes_and_the_next_one_uses_it(java: Path, jars: list[Path]) -> None:
    first = class_archive(java, jars)
    assert first.written is not None
    assert f"-XX:ArchiveClassesAtExit={first.written}" in first.options
    first.written.write_text("classes")
    first.keep()
    assert f"-XX:SharedArchiveFile={first.target}" in class_archive(java, jars).options


def test_a_start_that_wrote_nothing_leaves_nothing(java: Path, jars: list[Path]) -> None:
    first = class_archive(java, jars)
    first.keep()
    assert first.target is not None
    assert not first.target.exists()


def test_another_java_has_another_archive(java: Path, jars: list[Path]) -> None:
    before = class_archive(java, jars).target
    java.write_text("another")
    assert class_archive(java, jars).target != before
