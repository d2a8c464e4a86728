"""Files of refs that follow a truth kept elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from odf_common.errors import CorruptedError, RefCASFailedError
from odf_common.identity.multihash import Multihash
from odf_common.storage.ports import RefFiles


def bring_in_line(files: RefFiles, name: str, truth: Callable[[], Multihash | None]) -> bool:
    """Make a ref's file say what `truth` says; returns whether it had to be written.

    Any number of callers may do it at once: when the last of them returns, the file says the latest truth.
    """
    try:
        return _follow(files, name, truth)
    except CorruptedError:
        if (wanted := truth()) is None:
            raise
        files.replace(name, wanted)
        _follow(files, name, truth)
        return True


def _follow(files: RefFiles, name: str, truth: Callable[[], Multihash | None]) -> bool:
    written = False
    while True:
        # The file first: when somebody writes it between the two looks, the write below fails and we look again.
        there, wanted = files.get(name), truth()
        if wanted is None or wanted == there:
            return written
        with suppress(RefCASFailedError):
            files.compare_and_set(name, expected=there, new=wanted)
        written = True
