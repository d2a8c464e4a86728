"""What can be wrong with the state of a dataset's merges."""

from __future__ import annotations

from pathlib import Path

from odf_common.errors import OdfError


class StateDamagedError(OdfError):
    """Files of a state cannot be read; it is made anew from the chain at the next start."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"the state in {path} is damaged ({reason}): it is made anew from the chain")
