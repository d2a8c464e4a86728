"""One wait for the disk for many datasets at once."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from odf_common.storage.ports import ObjectStore

_THREADS = 8


def sync_all(stores: Iterable[ObjectStore]) -> None:
    """`sync` of each store; in parallel, as a journaling file system answers many of them with one write."""
    several = list(stores)
    if len(several) < 2:
        for store in several:
            store.sync()
        return
    with ThreadPoolExecutor(min(_THREADS, len(several))) as pool:
        for _ in pool.map(lambda store: store.sync(), several):
            pass
