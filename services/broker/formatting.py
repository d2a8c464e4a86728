"""Formatting a folder for KRaft: who this cluster is, and the features it begins with."""

from __future__ import annotations

import base64
import re
import shutil
import subprocess
import uuid
from contextlib import suppress
from pathlib import Path

from odf_common.errors import CorruptedError, StoreUnavailableError
from services.broker.configuration import NODE_ID, Ports, java_options, properties_text, server_properties

_FORMAT_TIMEOUT_S = 60.0
_HEAP_SIZE = 128 << 20


def format_storage(folder: Path, *, java: Path, jars: list[Path]) -> str:
    """The cluster id of the folder, which is formatted if it is new.

    Kafka's own tool formats one folder per set of jars; what it wrote there and what is the same for every cluster, the
    features, is then copied. That spares each new broker a second.
    """
    identity = folder / "logs" / "meta.properties"
    if identity.exists():
        return cluster_id_of(identity)
    identity.parent.mkdir(parents=True, exist_ok=True)
    (identity.parent / "bootstrap.checkpoint").write_bytes(_features(folder, java=java, jars=jars))
    cluster_id = random_id()
    part = identity.with_suffix(".part")
    part.write_text(identity_text(cluster_id=cluster_id, directory_id=random_id()))
    part.rename(identity)  # last: a folder with this file counts as formatted
    return cluster_id


def identity_text(*, cluster_id: str, directory_id: str) -> str:
    """The content of `meta.properties`."""
    return f"version=1\nnode.id={NODE_ID}\ncluster.id={cluster_id}\ndirectory.id={directory_id}\n"


def cluster_id_of(identity: Path) -> str:
    """The cluster id in a `meta.properties`."""
    found = re.search(r"^cluster\.id=(\S+)$", identity.read_text(), re.MULTILINE)
    if found is None:
        raise CorruptedError(str(identity), "has no cluster.id; restore the file, or remove the broker's folder")
    return found[1]


def random_id() -> str:
    """An id as Kafka likes them: 22 characters that do not begin with a dash, which its tools take for an option."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def _features(folder: Path, *, java: Path, jars: list[Path]) -> bytes:
    kept = jars[0].parent / "bootstrap.checkpoint"
    if kept.exists():
        return kept.read_bytes()
    scratch = folder / f"format-{random_id()}"
    scratch.mkdir(parents=True)
    try:
        _run_format_tool(scratch, java=java, jars=jars)
        features = (scratch / "logs" / "bootstrap.checkpoint").read_bytes()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    with suppress(OSError):  # the jars may lie where we may not write
        part = kept.with_suffix(f".{random_id()}.part")
        part.write_bytes(features)
        part.replace(kept)
    return features


def _run_format_tool(folder: Path, *, java: Path, jars: list[Path]) -> None:
    properties = folder / "server.properties"
    settings = server_properties(Ports(clients=1, controller=2), logs=folder / "logs")
    properties.write_text(properties_text(settings))
    command: list[str | Path] = [
        java,
        *java_options(_HEAP_SIZE),
        "-XX:TieredStopAtLevel=1",
        "-cp",
        ":".join(map(str, jars)),
    ]
    done = subprocess.run(  # noqa: S603 - a command of our own
        [*command, "kafka.tools.StorageTool", "format", "-t", random_id(), "-c", properties],
        capture_output=True,
        text=True,
        timeout=_FORMAT_TIMEOUT_S,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode != 0:
        raise StoreUnavailableError(f"Kafka could not format {folder}: {(done.stderr or done.stdout).strip()[-500:]}")
