from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from odf_common.identity.multihash import Multihash, sha3_256
from odf_common.messages.kafka_offsets import KafkaOffsets
from odf_common.metadata.events import AddData
from odf_common.timestamp import Timestamp
from streaming_jobs.ingest.event_ids import EventIds
from streaming_jobs.ingest.event_keys import event_key_of, event_keys
from streaming_jobs.ingest.headers import headers_of
from streaming_jobs.ingest.units import First, Taken
from tests.unit.streaming_jobs.ingest.builders import TOPIC_ID, Bench, messages

HOUR = 3_600.0
BLOCK, ANOTHER = sha3_256(b"1"), sha3_256(b"2")


class Topic:
    """Plays the broker: one message at each position, with the id that its text is."""

    def __init__(self, *ids: str | None) -> None:
        self.ids = ids
        self.asked: list[tuple[dict[int, int], dict[int, int]]] = []

    def headers(
        self, start: Mapping[int, int], end: Mapping[int, int]
    ) -> Iterator[Sequence[tuple[int, int, list[tuple[str, bytes]]]]]:
        self.asked.append((dict(start), dict(end)))
        for offset in range(start.get(0, 0), end[0]):
            text = self.ids[offset]
            yield [(0, offset, [] if text is None else [("ce_id", text.encode())])]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def opened(bench: Bench, topic_id: str = TOPIC_ID, window_s: float = HOUR) -> EventIds:
    return EventIds.of_source(bench.folder / "index", bench.dataset_id, "default", topic_id=topic_id, window_s=window_s)


def commit(bench: Bench, start: int, end: int, time: Timestamp | None = None, *, is_refused: bool = False) -> Multihash:
    """A block that covers positions."""
    count = end - start
    covered = KafkaOffsets(
        topic="t",
        topic_id=TOPIC_ID,
        start={0: start} if start else {},
        next={0: end},
        messages=count,
        records=count,
        duplicates=0 if is_refused else count,
        dead_letters=count if is_refused else 0,
    )
    state = bench.chain.state()
    from odf_common.chain.state import next_block
    from odf_common.wire.encode import seal

    added = AddData(
        prev_offset=state.last_offset, new_watermark=Timestamp(end), new_source_state=covered.to_state("default")
    )
    block = seal(next_block(state, added, system_time=time or Timestamp.now()))
    bench.chain.append([block])
    return block.hash


def key(text: str) -> bytes:
    found = event_key_of([("ce_id", text.encode())])
    assert found is not None
    return found


def taken(text: str, offset: int) -> Taken:
    return key(text), 0, offset


def test_ids_are_known_in_flight_and_committed(bench: Bench) -> None:
    with closing(opened(bench)) as ids:
        ids.propose([taken("a", 0)], {0: 1}, Timestamp.now())
        ids.propose([taken("b", 1)], {0: 2}, Timestamp.now())
        assert ids.first_of([key("a"), key("b"), key("c")]) == [First(0, 0), First(0, 1), None]
        ids.committed({0: 1}, BLOCK)
        assert ids.first_of([key("a"), key("b")]) == [First(0, 0, BLOCK), First(0, 1)]
    with closing(opened(bench)) as ids:  # what was not committed is forgotten
        assert ids.first_of([key("a"), key("b")]) == [First(0, 0, BLOCK), None]


def test_the_window_ends(bench: Bench) -> None:
    with closing(opened(bench, window_s=10)) as ids:
        ids.propose([taken("old", 0)], {0: 1}, Timestamp.now().plus_seconds(-11))
        ids.propose([taken("new", 1)], {0: 2}, Timestamp.now().plus_seconds(-9))
        ids.committed({0: 2}, BLOCK)
        assert ids.first_of([key("old"), key("new")]) == [None, First(0, 1, BLOCK)]
        ids.propose([taken("old", 2)], {0: 3}, Timestamp.now())
        ids.committed({0: 3}, ANOTHER)
        ids.prune()
        assert ids.first_of([key("old"), key("new")]) == [First(0, 2, ANOTHER), First(0, 1, BLOCK)]


def test_pruning_forgets(bench: Bench) -> None:
    with closing(opened(bench, window_s=10)) as ids:
        ids.propose([taken("old", 0)], {0: 1}, Timestamp.now().plus_seconds(-11))
        ids.committed({0: 1}, BLOCK)
        ids.prune()
    with closing(opened(bench, window_s=HOUR)) as ids:
        assert ids.first_of([key("old")]) == [None]


def test_what_is_lost_is_read_from_the_topic(bench: Bench) -> None:
    topic = Topic("a", None, "b", "a", "c")
    first, second = commit(bench, 0, 2), commit(bench, 2, 4)
    with closing(opened(bench)) as ids:
        ids.catch_up(bench.chain, "default", {0: 4}, topic.headers)
        assert ids.first_of([key("a"), key("b"), key("c")]) == [First(0, 0, first), First(0, 2, second), None]
        ids.catch_up(bench.chain, "default", {0: 4}, topic.headers)
    assert topic.asked == [({}, {0: 4})]


def test_what_was_committed_unheard_is_read_from_the_topic(bench: Bench) -> None:
    topic = Topic("a", "b", "a")
    first = commit(bench, 0, 1)
    with closing(opened(bench)) as ids:
        ids.propose([taken("a", 0)], {0: 1}, Timestamp.now())
        ids.committed({0: 1}, first)
    second = commit(bench, 1, 3)
    with closing(opened(bench)) as ids:
        ids.catch_up(bench.chain, "default", {0: 3}, topic.headers)
        assert topic.asked == [({0: 1}, {0: 3})]
        assert ids.first_of([key("a"), key("b")]) == [First(0, 0, first), First(0, 1, second)]


def test_only_the_window_is_read(bench: Bench) -> None:
    topic = Topic("a", "b")
    commit(bench, 0, 1, Timestamp.now().plus_seconds(-2 * HOUR))
    commit(bench, 1, 2)
    with closing(opened(bench)) as ids:
        ids.catch_up(bench.chain, "default", {0: 2}, topic.headers)
        assert topic.asked == [({0: 1}, {0: 2})]
        assert [first is None for first in ids.first_of([key("a"), key("b")])] == [True, False]


def test_ids_of_another_topic_are_forgotten(bench: Bench) -> None:
    with closing(opened(bench, "other")) as ids:
        ids.propose([taken("a", 0)], {0: 9}, Timestamp.now())
        ids.committed({0: 9}, BLOCK)
    with closing(opened(bench)) as ids:
        ids.catch_up(bench.chain, "default", {}, Topic().headers)
        assert ids.first_of([key("a")]) == [None]


def test_a_damaged_store_is_made_anew(bench: Bench) -> None:
    with closing(opened(bench)) as ids:
        ids.propose([taken("a", 0)], {0: 1}, Timestamp.now())
        ids.committed({0: 1}, BLOCK)
        path = ids._path
    (path / "CURRENT").write_bytes(b"nonsense\n")
    with closing(opened(bench)) as ids:
        assert ids.first_of([key("a")]) == [None]


@pytest.mark.parametrize(
    "headers",
    [
        {"ce_id": "1"},
        {"ce_id": "1", "ce_source": "/s"},
        {"ce_id": "x" * 500, "ce_source": "/s"},
        {"content-type": "text/csv"},
    ],
)
def test_one_message_has_the_same_key_as_many(headers: dict[str, Any]) -> None:
    found = event_keys(headers_of(messages(b"a", headers=headers))).get(0)
    assert found == event_key_of([(name, text.encode()) for name, text in headers.items()])


def test_what_became_a_dead_letter_as_a_whole_took_no_id(bench: Bench) -> None:
    topic = Topic("a", "a", "b")
    commit(bench, 0, 1, is_refused=True)
    taken = commit(bench, 1, 2)
    commit(bench, 2, 3, is_refused=True)
    with closing(opened(bench)) as ids:
        ids.catch_up(bench.chain, "default", {0: 3}, topic.headers)
        assert ids.first_of([key("a"), key("b")]) == [First(0, 1, taken), None]
