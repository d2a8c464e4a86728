from __future__ import annotations

from collections.abc import Callable

from odf_common.identity.did import DatasetId
from odf_common.identity.multihash import sha3_256
from odf_common.messages.block_appended import AppendedBlock, SourceProgress
from odf_common.metadata.fragments import OffsetInterval
from odf_common.timestamp import Timestamp
from services.cli.receipts import wait_for_blocks

NOON = Timestamp.parse("2020-01-01T12:00:00Z")
CITY, OTHER = DatasetId(bytes(32)), DatasetId(bytes(31) + b"1")


def a_block(
    number: int, start: dict[int, int], end: dict[int, int], *, rows: int = 1, dataset: DatasetId = CITY, dead: int = 0
) -> AppendedBlock:
    source = SourceProgress(
        name="default", topic="t", topic_id="one", start=start, next=end, records=rows + dead, dead_letters=dead
    )
    return AppendedBlock(
        dataset_id=dataset,
        dataset_alias="city",
        block_hash=sha3_256(f"{dataset} {number}".encode()),
        sequence_number=number,
        event_kind="AddData",
        system_time=NOON,
        offset_interval=OffsetInterval(start=number, end=number + rows - 1),
        num_records=rows,
        source=source,
    )


def polling(*answers: list[AppendedBlock]) -> Callable[[float], list[AppendedBlock]]:
    left = iter(answers)
    return lambda timeout_s: next(left, [])


def test_a_receipt_holds_the_blocks_that_cover_the_range() -> None:
    before, first, second = (
        a_block(1, {}, {0: 5}),
        a_block(2, {0: 5}, {0: 8}, rows=3),
        a_block(3, {0: 8}, {0: 12}, dead=2),
    )
    receipt = wait_for_blocks(
        polling([before], [first, first], [second]), CITY, "default", {0: 6}, {0: 10}, timeout_s=5
    )
    assert receipt is not None
    assert receipt.blocks == [first, second]
    assert (receipt.rows, receipt.duplicates, receipt.dead_letters) == (4, 0, 2)


def test_all_partitions_are_waited_for() -> None:
    one, two = a_block(1, {}, {0: 1}), a_block(2, {0: 1}, {0: 1, 1: 1})
    receipt = wait_for_blocks(polling([one], [], [two]), CITY, "default", {0: 0, 1: 0}, {0: 1, 1: 1}, timeout_s=5)
    assert receipt is not None
    assert receipt.blocks == [one, two]


def test_blocks_of_others_do_not_count() -> None:
    others = a_block(1, {}, {0: 9}, dataset=OTHER)
    assert wait_for_blocks(polling([others]), CITY, "default", {0: 0}, {0: 1}, timeout_s=0) is None
    assert wait_for_blocks(polling([a_block(1, {}, {0: 9})]), CITY, "second", {0: 0}, {0: 1}, timeout_s=0) is None
