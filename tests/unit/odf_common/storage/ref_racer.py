"""A process that races others to move one ref, round by round.

Usage: ref_racer.py STORE NAME, with STORE a folder or the URL of a catalog. For each line on standard input, a round,
it tries to move the ref from the target of that line's last winner to its own, and says whether it won.
"""

from __future__ import annotations

import sys
from pathlib import Path

from odf_common.catalog.catalog import Catalog, CatalogRefs
from odf_common.errors import RefCASFailedError
from odf_common.identity.did import DatasetId
from odf_common.identity.multihash import Multihash, sha3_256
from odf_common.storage.folder_refs import FolderRefs
from odf_common.storage.ports import RefStore

DATASET = DatasetId(bytes(32))
REF = "head"
WON = "won\n"
LOST = "lost\n"


def target(racer: str, number: int) -> Multihash:
    """Where a racer wants the ref to go in a round."""
    return sha3_256(f"{racer} {number}".encode())


def open_refs(store: str) -> RefStore:
    return CatalogRefs(Catalog.open(store), DATASET) if "://" in store else FolderRefs(Path(store))


def wins(refs: RefStore, racer: str, last_winner: str, number: int) -> bool:
    expected = target(last_winner, number - 1) if last_winner else None
    try:
        refs.compare_and_set(REF, expected=expected, new=target(racer, number))
    except RefCASFailedError:
        return False
    return True


if __name__ == "__main__":
    store, racer = sys.argv[1:]
    refs = open_refs(store)
    for number, line in enumerate(sys.stdin):
        sys.stdout.write(WON if wins(refs, racer, line.strip(), number) else LOST)
        sys.stdout.flush()
