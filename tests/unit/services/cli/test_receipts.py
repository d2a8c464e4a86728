from __future__ import annotations

from collections.abc import Callable
from typing import Any

from odf_common.identity.did import DatasetId
from odf_common.identity.multihash import sha3_256
from odf_common.messages.block_appended import AppendedBlock, SourceProgress
from odf_common.messages.kafka_offsets import Repeat
from odf_common.metadata.fragments import OffsetInterval
from odf_common.timestamp import Timestamp
from services.cli.receipts import wait_for_blocks

NOON = Timestamp.parse("2020-01-01T12:00:00Z")
CITY, OTHER = DatasetId(bytes(32)), DatasetId(bytes(31) + b"1")


def a_block(
    number: int,
    start: dict[int, int],
    end: dict[int, int],
    *,
    rows: int = 1,
    dataset: DatasetId = CITY,
    dead: int = 0,
    **more: Any,
) -> AppendedBlock:
    counts = {"records": rows + dead, "dead_letters": dead} | more
    source = SourceProgress(name="default", topic="t", topic_id="one", start=start, next=end, **counts)
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


def test_a_payload_of_several_blocks_has_them_all() -> None:
    other = [a_block(1, {0: 5}, {0: 5}), a_block(2, {0: 5}, {0: 6})]
    parts = [a_block(3, {0: 6}, {0: 6}, rows=2, derived=1), a_block(4, {0: 6}, {0: 6}, late=1)]
    last = a_block(5, {0: 6}, {0: 7}, rows=3)
    receipt = wait_for_blocks(polling(other, parts, [last]), CITY, "default", {0: 6}, {0: 7}, timeout_s=5)
    assert receipt is not None
    assert receipt.blocks == [*parts, last]
    assert (receipt.rows, receipt.derived, receipt.late) == (6, 1, 1)
    assert receipt.block_of(0, 6) == last


def test_a_block_that_repeats_the_state_of_the_one_before_does_not_count_twice() -> None:
    first = a_block(1, {0: 5}, {0: 6}, dead=1)
    watermark = a_block(2, {0: 5}, {0: 6}, dead=1).model_copy(update={"num_records": 0, "source": first.source})
    receipt = wait_for_blocks(
        polling([first, watermark], [a_block(3, {0: 6}, {0: 7})]), CITY, "default", {0: 5}, {0: 7}, timeout_s=5
    )
    assert receipt is not None
    assert receipt.dead_letters == 1


def test_messages_that_were_taken_before_are_named() -> None:
    first_block = sha3_256(b"first")
    mine, other = (
        Repeat(partition=0, offset=offset, first_partition=0, first_offset=1, block=first_block) for offset in (6, 5)
    )
    block = a_block(1, {0: 5}, {0: 7}, repeats=(mine, other))
    receipt = wait_for_blocks(polling([block]), CITY, "default", {0: 6}, {0: 7}, timeout_s=5)
    assert receipt is not None
    assert receipt.repeats == [mine]
