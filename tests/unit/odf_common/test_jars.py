from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from odf_common import jars
from odf_common.errors import StoreUnavailableError
from odf_common.jars import (
    JavaNotFoundError,
    downloaded_jar,
    find_java,
    jars_folder,
    jars_in,
    parse_java_version,
    relevant_lines,
    retrieve_jars,
)

FIX = "install it (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME"
# Stands in for Java: tells its version, and retrieves as Ivy does, slowly enough that two of them would meet.
FAKE_JAVA = """\
#!/bin/sh
if [ "$1" = -version ]; then echo 'openjdk version "{version}" 2025-04-15' >&2; exit 0; fi
for last; do :; done
echo one >> "{folder}/runs"
echo 'downloading https://host.example/repository/org/a/1/a-1.jar ...'
{retrieve}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ODF_JARS_DIR", str(tmp_path / "jars"))
    return tmp_path


def fake_java(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    version: str = "17.0.15",
    retrieve: str = 'sleep 0.2; touch "$(dirname "$last")/a-1.jar"',
) -> Path:
    java = folder / "home" / "bin" / "java"
    java.parent.mkdir(parents=True, exist_ok=True)
    java.write_text(FAKE_JAVA.format(version=version, folder=folder, retrieve=retrieve))
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(folder / "home"))
    return java


def runs(folder: Path) -> int:
    return len((folder / "runs").read_text().splitlines()) if (folder / "runs").exists() else 0


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime', 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ('Picked up JAVA_TOOL_OPTIONS: -Dx=y\nopenjdk version "25-ea"', 25),
        ("The operation couldn't be completed.", 0),
    ],
)
def test_the_version_of_java_is_read(said: str, version: int) -> None:
    assert parse_java_version(said) == version


def test_java_home_comes_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_java() != fake_java(folder, monkeypatch)
    assert find_java() == folder / "home" / "bin" / "java"


def test_missing_java_is_one_sentence_with_the_fix(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JavaNotFoundError) as caught:
        find_java()
    assert str(caught.value) == f"Java 17 or newer is needed to run Kafka and Spark (none was found): {FIX}"


def test_old_java_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = fake_java(folder, monkeypatch, version="1.8.0_402")
    with pytest.raises(JavaNotFoundError) as caught:
        find_java()
    assert str(caught.value) == f"Java 17 or newer is needed to run Kafka and Spark ({java} is version 8): {FIX}"


def test_a_wrong_java_home_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaNotFoundError, match=r"JAVA_HOME is .*, where there is no bin/java"):
        find_java()


def test_jars_are_fetched_once_with_progress(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(folder, monkeypatch)
    told: list[str] = []
    found = retrieve_jars("broker", told.append)
    assert found == retrieve_jars("broker") == jars_folder("broker")
    assert [path.name for path in jars_in(found)] == ["a-1.jar"]
    assert told == [
        "Fetching the jars of Kafka (once on this machine)",
        "Fetching the jars of Kafka: a-1.jar",
        "Fetched 1 jars of Kafka",
    ]
    assert runs(folder) == 1


def test_two_who_ask_at_the_same_time_fetch_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(folder, monkeypatch)
    meet = threading.Barrier(2)

    def ask() -> Path:
        meet.wait()
        return retrieve_jars("broker")

    with ThreadPoolExecutor() as pool:
        first, second = pool.submit(ask), pool.submit(ask)
        assert first.result() == second.result()
    assert runs(folder) == 1


def test_what_was_broken_off_does_not_count(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(folder, monkeypatch, retrieve='touch "$(dirname "$last")/half.jar"; kill -9 $$')
    with pytest.raises(StoreUnavailableError):
        retrieve_jars("broker")
    assert not jars_folder("broker").exists()
    fake_java(folder, monkeypatch)
    assert [path.name for path in jars_in(retrieve_jars("broker"))] == ["a-1.jar"]


def test_a_failure_shows_what_ivy_says_without_hosts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(
        folder,
        monkeypatch,
        retrieve="echo ':: loading settings'; echo '\t:: o#a;1: not found at https://host.example/repo/a'; exit 1",
    )
    with pytest.raises(StoreUnavailableError) as caught:
        retrieve_jars("spark-kafka")
    assert "the jars of Spark's Kafka connector could not be fetched: check the network" in str(caught.value)
    assert str(caught.value).endswith("Ivy says:\no#a;1: not found at …/repo/a")


def test_the_relevant_lines_are_few_and_differ() -> None:
    assert relevant_lines(["Server access error: x\n"] * 50 + [f"FAILED {i}\n" for i in range(50)]) == [
        "Server access error: x",
        *(f"FAILED {i}" for i in range(7)),
    ]


def test_only_downloads_of_jars_are_progress() -> None:
    assert downloaded_jar("downloading https://h/m/x-1.0.jar ...\n") == "x-1.0.jar"
    assert downloaded_jar("\t[SUCCESSFUL ] a#x;1.0!x.jar (9ms)") is None


def test_the_cache_is_where_the_system_keeps_caches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("ODF_JARS_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert jars_folder("broker").parent == tmp_path / "odf-streams" / "jars"
    assert jars_folder("broker") != jars_folder("spark-kafka")


def test_asking_does_not_import_pyspark() -> None:
    code = (
        "import sys; from odf_common import jars; assert jars._ivy_jar().exists(); assert 'pyspark' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
def test_the_connector_is_fetched_for_real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(jars.CACHE_FOLDER_VARIABLE, str(tmp_path))
    names = [path.name for path in jars_in(retrieve_jars("spark-kafka"))]
    assert "spark-sql-kafka-0-10_2.13-4.2.0.jar" in names
    assert "spark-token-provider-kafka-0-10_2.13-4.0.0.jar" in names
    assert not [name for name in names if name.startswith(("scala-library", "hadoop", "slf4j"))]
