"""Opening, extending and checking a chain of 100,000 blocks beside one of 100."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.figures import medians, print_figure
from odf_common.chain.metadata_chain import MetadataChain
from odf_common.chain.state import ChainState, next_block
from odf_common.identity.did import DatasetId
from odf_common.metadata.events import AddData, DatasetKind, MetadataEvent, Seed
from odf_common.metadata.fragments import SourceState
from odf_common.storage.dataset_folder import DatasetFolder, local_folder
from odf_common.storage.layout import HEAD
from odf_common.timestamp import Timestamp
from odf_common.wire.encode import seal

SHORT, LONG = 100, 100_000
START = Timestamp.parse("2020-01-01T00:00:00Z")
OPENINGS = 201
APPENDS = 51


def an_event(number: int) -> MetadataEvent:
    """The event of block `number`: a Seed, then watermarks with the state of a source."""
    if number == 0:
        return Seed(dataset_id=DatasetId(bytes(32)), dataset_kind=DatasetKind.ROOT)
    state = SourceState(source_name="default", kind="example.org/position", value=str(number))
    return AddData(new_watermark=START.plus_seconds(number), new_source_state=state)


def make_chain(folder: DatasetFolder, length: int) -> None:
    """Write a chain of metadata blocks. Not durable block by block, unlike the chain's own `append`."""
    chain = ChainState()
    for number in range(length):
        block = seal(next_block(chain, an_event(number), system_time=START.plus_seconds(number)))
        folder.objects.put_block(block.hash, block.data)
        chain = chain.followed_by(block.block, block.hash)
    assert chain.head is not None
    folder.refs.compare_and_set(HEAD, expected=None, new=chain.head)


def opening(folder: DatasetFolder) -> Callable[[], object]:
    """Open the chain anew, with the summary beside it."""
    return lambda: MetadataChain(folder.objects, folder.refs).state()


def appending(folder: DatasetFolder) -> Callable[[], object]:
    """Append one block to the open chain, durably."""
    chain = MetadataChain(folder.objects, folder.refs)

    def append() -> None:
        state = chain.state()
        number = state.next_sequence_number
        chain.append([seal(next_block(state, an_event(number), system_time=START.plus_seconds(number)))])

    return append


def check(path: Path) -> tuple[float, float]:
    """Seconds and peak MiB of `odf chain check` as a process of its own."""
    start = time.perf_counter()
    process = os.posix_spawn(
        sys.executable, [sys.executable, "-m", "services.cli", "chain", "check", str(path)], os.environ
    )
    _, status, usage = os.wait4(process, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    return time.perf_counter() - start, usage.ru_maxrss / 1024


def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as root:
        paths = {length: Path(root, str(length)) for length in (SHORT, LONG)}
        folders = {length: local_folder(path) for length, path in paths.items()}
        for length, folder in folders.items():
            make_chain(folder, length)

        short, long = medians([opening(folder) for folder in folders.values()], rounds=OPENINGS)
        print_figure("open, 100,000 blocks : 100", long / short, "ratio", goal="<= 1.2", seconds=long)
        short, long = medians([appending(folder) for folder in folders.values()], rounds=APPENDS)
        print_figure("append, 100,000 blocks : 100", long / short, "ratio", goal="<= 1.2", seconds=long)
        taken, memory = check(paths[LONG])
        print_figure("check of 100,000 blocks", taken, "s", goal="<= 30")
        print_figure("check of 100,000 blocks, memory", memory, "MiB", goal="<= 500")


if __name__ == "__main__":
    main()
