"""An archive of the classes that the broker loads, which spares the next start on this machine a third of its time.

Java writes it when a broker stops cleanly and there is none yet; it is a cache beside the jars, and may be deleted.
"""

from __future__ import annotations

import hashlib
import os
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassArchive:
    """One start's part in it: either it uses the archive, or it writes one, or neither."""

    options: tuple[str, ...] = ()
    written: Path | None = None
    target: Path | None = None

    def keep(self) -> None:
        """After a clean stop: let the next start find what Java wrote."""
        if self.written is not None and self.target is not None:
            with suppress(OSError):
                self.written.replace(self.target)


def class_archive(java: Path, jars: list[Path]) -> ClassArchive:
    """What to tell Java. Another Java has another archive, as it could not read this one."""
    target = jars[0].parent / f"classes-{_identity(java)}.jsa"
    quiet = ("-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")
    if target.exists():
        return ClassArchive(options=(*quiet, f"-XX:SharedArchiveFile={target}"))
    if not os.access(target.parent, os.W_OK):
        return ClassArchive(options=quiet)
    written = target.with_suffix(f".{uuid.uuid4().hex}.part")
    return ClassArchive(options=(*quiet, f"-XX:ArchiveClassesAtExit={written}"), written=written, target=target)


def _identity(java: Path) -> str:
    program = java.resolve()
    found = program.stat()
    return hashlib.sha256(f"{program} {found.st_size} {found.st_mtime_ns}".encode()).hexdigest()[:12]
