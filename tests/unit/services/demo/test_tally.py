from __future__ import annotations

import pytest

from odf_common.identity.did import DatasetId
from odf_common.identity.multihash import sha3_256
from odf_common.messages.block_appended import AppendedBlock, SourceProgress
from odf_common.timestamp import Timestamp
from services.demo.figures import Figures, figures
from services.demo.screen import Rate, line
from services.demo.tally import Tally, percentiles_ms


def a_block(number: int, start: int, end: int, *, duplicates: int = 0, dead: int = 0) -> AppendedBlock:
    count = end - start
    source = SourceProgress(
        name="default",
        topic="t",
        topic_id="one",
        start={0: start},
        next={0: end},
        messages=count,
        records=count,
        duplicates=duplicates,
        dead_letters=dead,
    )
    return AppendedBlock(
        dataset_id=DatasetId(bytes(32)),
        dataset_alias="city",
        block_hash=sha3_256(b"%d" % number),
        sequence_number=number,
        event_kind="AddData",
        system_time=Timestamp.parse("2020-01-01T12:00:00Z"),
        num_records=count - duplicates - dead,
        source=source,
    )


def a_tally(*times: float, base: int = 10) -> Tally:
    tally = Tally(base=base, first_block=3)
    for number, at in enumerate(times):
        tally.hand_over(at)
        tally.confirm(base + number)
    return tally


def test_what_blocks_cover_is_counted_and_timed() -> None:
    tally = a_tally(0.0, 1.0, 2.0, 3.0)
    assert (tally.published, tally.lag) == (4, 4)
    tally.tell(a_block(3, 10, 13, duplicates=1), at=2.5)
    assert (tally.rows, tally.duplicates, tally.lag) == (2, 1, 1)
    tally.tell(a_block(4, 13, 14, dead=1), at=3.25)
    assert (tally.rows, tally.duplicates, tally.dead_letters, tally.lag) == (2, 1, 1, 0)
    assert list(tally.latencies) == [2.5, 1.5, 0.5, 0.25]


def test_a_notification_that_comes_again_changes_no_other_count() -> None:
    tally = a_tally(0.0)
    for _ in range(2):
        tally.tell(a_block(3, 10, 11), at=1.0)
    assert (tally.notifications, tally.blocks, tally.rows, len(tally.latencies)) == (2, 1, 1, 1)


def test_blocks_from_before_are_left_out() -> None:
    tally = a_tally(0.0)
    tally.tell(a_block(2, 9, 10), at=1.0)
    assert (tally.notifications, tally.blocks, tally.rows, tally.lag) == (0, 0, 0, 1)


def test_messages_of_others_are_noticed() -> None:
    tally = a_tally(0.0, 0.0)
    assert tally.of_others == 0
    tally.confirm(13)  # position 12 is somebody else's
    assert tally.of_others == 1
    tally.tell(a_block(3, 10, 15), at=1.0)
    assert tally.of_others == 2


def test_percentiles_are_those_of_all_sources_together() -> None:
    one, two = a_tally(0.0), a_tally(0.0)
    one.tell(a_block(3, 10, 11), at=0.1)
    two.tell(a_block(3, 10, 11), at=0.3)
    assert percentiles_ms([one, two]) == pytest.approx((200.0, 298.0))
    assert percentiles_ms([a_tally()]) is None


def found(tally: Tally, **checked: object) -> Figures:
    check = {"alias": "city", "ok": True, "head": "f1620", **checked}
    return figures([tally], blocks=tally.blocks, seconds=2.0, checked=[check])


def test_figures_are_complete_when_every_event_is_accounted_for_and_every_dataset_passed() -> None:
    tally = a_tally(0.0, 0.0, 0.0)
    tally.tell(a_block(3, 10, 12, duplicates=1), at=1.0)
    assert not found(tally).complete
    tally.tell(a_block(4, 12, 13, dead=1), at=1.0)
    assert found(tally).complete
    assert not found(tally, ok=False).complete
    assert not figures([tally], blocks=1, seconds=2.0, checked=[]).verified


def test_the_object_for_scripts_has_these_fields() -> None:
    tally = a_tally(0.0)
    tally.tell(a_block(3, 10, 11), at=0.25)
    assert found(tally).to_data() == {
        "published": 1,
        "committed": 1,
        "duplicates": 0,
        "dead_letters": 0,
        "blocks": 1,
        "notifications": 1,
        "seconds": 2.0,
        "latency_ms": {"p50": 250.0, "p99": 250.0},
        "verified": True,
        "heads": {"city": "f1620"},
    }
    assert found(a_tally()).to_data()["latency_ms"] == {"p50": None, "p99": None}


def test_the_line_says_how_far_it_is() -> None:
    tally = a_tally(0.0, 0.0)
    tally.tell(a_block(3, 10, 11), at=0.25)
    text = line([tally], 1234.5, "50% of 4 events")
    assert text.startswith("2 published, 1,234/s, 1 rows in 1 blocks, lag 1, latency 250 / 250 ms, newest …")
    assert text.endswith("50% of 4 events")


def test_a_rate_is_that_of_the_last_seconds() -> None:
    rate = Rate()
    assert rate.of(0, 0.0) == 0.0
    assert rate.of(100, 1.0) == 100.0
    assert rate.of(100, 10.0) == 0.0
