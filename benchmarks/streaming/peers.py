"""The Spark peers: which Python runs them, with which jars."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from odf_common.jars import find_java, jars_in, retrieve_jars

DELTA_REQUIREMENTS = ("pyspark==4.2.0", "delta-spark==4.4.0")
"""They fit each other, and the jar in `delta.xml` fits both."""

_HERE = Path(__file__).parent
_DELTA_VENV = _HERE.parent / ".venv-delta"
_DELTA_JARS = _DELTA_VENV / "jars"
_DELTA_INSTALLED = _DELTA_VENV / f".installed-{'-'.join(DELTA_REQUIREMENTS)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkPeer:
    """One way to write a stream with PySpark."""

    name: str
    format: str
    python: Path
    jars: tuple[str, ...]


def parquet_peer() -> SparkPeer:
    """The PySpark that we use ourselves, with its own Parquet sink."""
    return SparkPeer(
        name="PySpark from_json → Parquet", format="parquet", python=Path(sys.executable), jars=_kafka_jars()
    )


def delta_peer() -> SparkPeer:
    """PySpark with Delta Lake, installed apart the first time."""
    if not _DELTA_INSTALLED.exists():
        _install_delta()
    jars = (*_kafka_jars(), *map(str, jars_in(_DELTA_JARS)))
    return SparkPeer(name="PySpark → Delta Lake", format="delta", python=_DELTA_VENV / "bin" / "python", jars=jars)


def _kafka_jars() -> tuple[str, ...]:
    return tuple(map(str, jars_in(retrieve_jars("spark-kafka"))))


def _install_delta() -> None:
    shutil.rmtree(_DELTA_VENV, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", _DELTA_VENV], check=True)
    pip: list[str | Path] = [_DELTA_VENV / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *DELTA_REQUIREMENTS], check=True)
    (ivy,) = _DELTA_VENV.glob("lib/python*/site-packages/pyspark/jars/ivy-*.jar")
    settings = _HERE.parent.parent / "odf_common" / "java" / "ivysettings.xml"
    command: list[str | Path] = [find_java(), "-jar", ivy, "-settings", settings, "-cache", _DELTA_VENV / "ivy"]
    command += ["-ivy", _HERE / "delta.xml", "-confs", "default"]
    command += ["-retrieve", f"{_DELTA_JARS}/[artifact]-[revision].[ext]"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode or not jars_in(_DELTA_JARS):
        raise SystemExit(f"the jars of Delta Lake could not be fetched:\n{done.stdout[-2000:]}")
    _DELTA_INSTALLED.touch()


@contextmanager
def running(peer: SparkPeer, folder: Path, task: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The peer from when it has told something: its process and what it told. It is told to stop afterwards."""
    folder.mkdir(parents=True)
    task = task | {
        "format": peer.format,
        "jars": peer.jars,
        "out": str(folder / "out"),
        "checkpoint": str(folder / "checkpoint"),
    }
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
    environment["PYSPARK_PYTHON"] = str(peer.python)
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(
            [peer.python, _HERE / "spark_peer.py", json.dumps(task)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=environment,
            cwd=folder,
            text=True,
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            if not line:
                raise SystemExit(f"{peer.name} failed:\n{(folder / 'log').read_text()[-3000:]}")
            yield process.pid, json.loads(line)
        finally:
            process.stdin.close()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
