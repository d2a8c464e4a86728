from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odf_common.identity.multihash import SHA2_256, Multihash
from odf_common.messages.payload import FetchedState, PollNote, UploadedPayload
from streaming_jobs.ingest.splitter import Splitter
from streaming_jobs.ingest.units import (
    Dropped,
    First,
    Payload,
    PlainRun,
    Refused,
    Unit,
    Uploaded,
    ends_of,
)
from tests.unit.streaming_jobs.ingest.builders import messages

UPLOAD = UploadedPayload(name="0" * 32, hash=Multihash(SHA2_256, bytes(32)), size=5)
UPLOAD_TYPE = "application/vnd.odf-streams.upload+json"


@dataclass
class PlayedIds:
    known: dict[bytes, First] = field(default_factory=dict)

    def first_of(self, keys: Sequence[bytes]) -> list[First | None]:
        return [self.known.get(key) for key in keys]

    def learn(self, units: Sequence[Unit]) -> None:
        for unit in units:
            self.known |= {key: First(partition, offset) for key, partition, offset in unit.taken}


def splitter(**more: Any) -> Splitter:
    return Splitter(**({"one_payload_each": False} | more))


def units(split: Splitter, *tables: pa.Table) -> list[Unit]:
    return list(split.units(pa.concat_tables(tables)))


def offsets(found: Sequence[Unit]) -> list[list[int]]:
    return [each.messages["offset"].to_pylist() for each in found]


def piece(
    batch: str, index: int, count: int, *, start: int, partition: int = 0, content_type: str | None = None
) -> pa.Table:
    own = {"odf-batch-id": batch, "odf-batch-index": str(index), "odf-batch-count": str(count)}
    value = f"{batch}{index}".encode()
    return messages(
        value, start=start, partition=partition, headers=own | ({"content-type": content_type} if content_type else {})
    )


def pieces(batch: str, count: int, *, start: int, partition: int = 0) -> Iterator[pa.Table]:
    for index in range(count):
        yield piece(batch, index, count, start=start + index, partition=partition)


def with_id(*values: bytes, start: int, event_id: str, source: str = "s") -> pa.Table:
    return messages(*values, start=start, headers={"ce_id": event_id, "ce_source": source})


def poll(expected: str | None, fetched: str | None, *, start: int) -> pa.Table:
    states = [None if text is None else FetchedState(kind="odf/etag", value=text) for text in (expected, fetched)]
    note = PollNote(expected=states[0], fetched=states[1])
    return messages(b"x", start=start, headers={"odf-poll": note.to_json()})


def test_plain_messages_are_one_run() -> None:
    (run,) = units(splitter(), messages(b"a", b"b"), messages(b"c", partition=1))
    assert isinstance(run, PlainRun)
    assert run.media_type is None
    assert (run.messages.num_rows, len(run.repeated), run.repeats, run.taken) == (3, 0, (), ())


def test_another_media_type_is_another_run() -> None:
    csv = {"content-type": "text/csv"}
    found = units(splitter(), messages(b"a", b"b"), messages(b"c", b"d", start=2, headers=csv), messages(b"e", start=4))
    assert [(each.media_type, each.messages.num_rows) for each in found if isinstance(each, PlainRun)] == [
        (None, 2),
        ("text/csv", 2),
        (None, 1),
    ]


def test_each_message_of_a_snapshot_is_a_payload() -> None:
    found = units(splitter(one_payload_each=True), messages(b"a", b"b"))
    assert [type(each) for each in found] == [Payload, Payload]


def test_uploads_stand_alone() -> None:
    found = units(
        splitter(),
        messages(b"a"),
        messages(UPLOAD.to_json(), b"{}", start=1, headers={"content-type": UPLOAD_TYPE}),
        messages(b"b", start=3),
    )
    assert [type(each) for each in found] == [PlainRun, Uploaded, Refused, PlainRun]
    assert isinstance(found[1], Uploaded)
    assert found[1].upload == UPLOAD
    assert isinstance(found[2], Refused)
    assert found[2].problem.code == "InvalidPayload"


def test_complete_pieces_are_one_payload() -> None:
    found = units(
        splitter(), messages(b"a"), *pieces("x", 3, start=1), *pieces("y", 1, start=4), messages(b"", start=5).slice(1)
    )
    assert [type(each) for each in found] == [PlainRun, Payload, Payload]
    assert offsets(found) == [[0], [1, 2, 3], [4]]


def test_pieces_wait_for_the_rest_of_their_payload() -> None:
    split = splitter()
    first, second, third = pieces("x", 3, start=1)
    other = messages(b"o", b"p", partition=1)
    assert offsets(units(split, messages(b"a"), first, other)) == [[0], [0, 1]]
    assert units(split, second) == []
    assert list(split.open) == [0]
    assert split.open[0].start == 1
    assert offsets(units(split, third, messages(b"b", start=4))) == [[1, 2, 3], [4]]
    assert not split.open


def test_pieces_of_several_partitions_do_not_meet() -> None:
    split = splitter()
    one, other = list(pieces("x", 2, start=0)), list(pieces("y", 2, start=0, partition=1))
    assert units(split, one[0], other[0]) == []
    found = units(split, one[1], other[1])
    assert [each.messages["value"].to_pylist() for each in found] == [[b"x0", b"x1"], [b"y0", b"y1"]]


@pytest.mark.parametrize(
    "between",
    [
        messages(b"plain", start=2),
        piece("y", 0, 1, start=2),
        piece("x", 0, 3, start=2),
        piece("x", 2, 4, start=2),
        piece("x", 2, 3, start=2, content_type="text/csv"),
    ],
)
def test_what_comes_between_abandons_a_payload(between: pa.Table) -> None:
    split = splitter()
    units(split, piece("x", 0, 3, start=0), piece("x", 1, 3, start=1))
    refused, *_ = units(split, between)
    assert isinstance(refused, Refused)
    assert refused.problem.code == "IncompleteBatch"
    assert "2 of 3 pieces of payload 'x' were there" in refused.problem.reason
    assert offsets([refused]) == [[0, 1]]


def test_a_payload_may_be_sent_again_from_its_beginning() -> None:
    split = splitter()
    found = units(split, piece("x", 0, 2, start=0), *pieces("x", 2, start=1))
    assert [type(each) for each in found] == [Refused, Payload]
    assert offsets(found) == [[0], [1, 2]]


def test_pieces_without_beginning_or_sense_are_refused() -> None:
    found = units(
        splitter(),
        piece("x", 1, 2, start=0),
        messages(b"y", start=1, headers={"odf-batch-id": "y"}),
        messages(b"z", start=2, headers={"odf-batch-id": "z", "odf-batch-index": "2", "odf-batch-count": "2"}),
        messages(b"a", start=3),
    )
    assert [type(each) for each in found] == [Refused, Refused, Refused, PlainRun]


def test_too_many_bytes_in_pieces_are_given_up() -> None:
    split = splitter(max_payload_size=2_000)
    parts = [
        messages(
            b"x" * 1_000,
            start=index,
            headers={"odf-batch-id": "x", "odf-batch-index": str(index), "odf-batch-count": "4"},
        )
        for index in range(4)
    ]
    found = [unit for part in parts for unit in units(split, part)]
    assert [each.problem.code for each in found if isinstance(each, Refused)][:1] == ["MessageTooLarge"]
    assert sum(each.messages.num_rows for each in found) == 4
    assert "upload it" in found[0].problem.reason  # type: ignore[attr-defined]


def test_an_event_id_counts_once() -> None:
    ids = PlayedIds()
    split = splitter(ids=ids)
    (run,) = units(
        split,
        with_id(b"a", start=0, event_id="1"),
        with_id(b"a", start=1, event_id="1"),
        with_id(b"b", start=2, event_id="1", source="another"),
        messages(b"c", b"c", start=3),
    )
    assert isinstance(run, PlainRun)
    assert run.repeated.tolist() == [1]
    assert [(each.offset, each.first_offset, each.block) for each in run.repeats] == [(1, 0, None)]
    assert [offset for _, _, offset in run.taken] == [0, 2]
    ids.learn([run])
    (again,) = units(split, with_id(b"a", start=9, event_id="1"))
    assert isinstance(again, PlainRun)
    assert (again.repeated.tolist(), again.repeats[0].first_offset) == ([0], 0)


def test_a_payload_with_a_known_id_is_dropped() -> None:
    split = splitter(ids=PlayedIds(), one_payload_each=True)
    table = with_id(b"a", b"a", start=0, event_id="1")
    taken, dropped = units(split, table)
    assert isinstance(taken, Payload)
    assert isinstance(dropped, Dropped)
    assert (dropped.repeats[0].offset, dropped.repeats[0].first_offset) == (1, 0)


def test_polls_build_on_each_other() -> None:
    split = splitter(fetched=FetchedState(kind="odf/etag", value="1"))
    found = units(
        split, poll("1", "2", start=0), poll("1", "2", start=1), poll("2", None, start=2), poll(None, "3", start=3)
    )
    assert [type(each) for each in found] == [Payload, Dropped, Payload, Payload]
    assert split.fetched == FetchedState(kind="odf/etag", value="3")
    assert found[1].repeats == ()


def test_a_note_that_is_none_is_refused() -> None:
    (found,) = units(splitter(), messages(b"a", headers={"odf-poll": "?"}))
    assert isinstance(found, Refused)


KINDS = ("plain", "csv", "upload", "broken upload", "id", "x0", "x1", "x2", "y0", "y1", "nonsense")


def message_of(kind: str, start: int, partition: int) -> pa.Table:
    if kind[0] in "xy":
        return piece(kind[0], int(kind[1]), 3 if kind[0] == "x" else 2, start=start, partition=partition)
    headers = {
        "plain": None,
        "csv": {"content-type": "text/csv"},
        "upload": {"content-type": UPLOAD_TYPE},
        "broken upload": {"content-type": UPLOAD_TYPE},
        "id": {"ce_id": "1"},
        "nonsense": {"odf-batch-id": "n", "odf-batch-index": "-1"},
    }[kind]
    value = UPLOAD.to_json() if kind == "upload" else json.dumps(kind).encode()
    return messages(value, start=start, partition=partition, headers=headers)


SENT = st.lists(st.tuples(st.sampled_from([0, 1, 2]), st.sampled_from(KINDS)), max_size=25)


@given(SENT, st.lists(st.integers(0, 25), max_size=4))
def test_any_cut_covers_everything_once_and_in_order(sent: list[tuple[int, str]], cuts: list[int]) -> None:
    """Whatever is cut where: each message is in one unit, positions go on without gaps, and the units say the same."""
    tables, ends = [], {0: 0, 1: 0, 2: 0}
    for partition, kind in sent:
        tables.append(message_of(kind, ends[partition], partition))
        ends[partition] += 1
    results = []
    for bounds in ([0, len(tables)], sorted({0, len(tables), *(min(cut, len(tables)) for cut in cuts)})):
        ids = PlayedIds()
        split = splitter(ids=ids)
        position = {0: 0, 1: 0, 2: 0}
        said: dict[tuple[int, int], str] = {}
        for start, end in itertools.pairwise(bounds):
            batch = sorted(tables[start:end], key=lambda table: table["partition"][0].as_py())
            for unit in units(split, *batch) if batch else []:
                places = list(
                    zip(unit.messages["partition"].to_pylist(), unit.messages["offset"].to_pylist(), strict=True)
                )
                for partition, offset in places:
                    assert offset == position[partition]
                    position[partition] += 1
                assert ends_of(unit.messages) == {partition: position[partition] for partition, _ in places}
                repeated = unit.repeated.tolist() if isinstance(unit, PlainRun) else []
                for row, place in enumerate(places):
                    said[place] = f"{type(unit).__name__} {row in repeated}"
                ids.learn([unit])
        waiting = {partition: payload.start for partition, payload in split.open.items()}
        assert position | waiting == position
        assert {p: e for p, e in ends.items() if p not in waiting} == {
            p: e for p, e in position.items() if p not in waiting
        }
        results.append((said, waiting))
    if len({partition for partition, kind in sent if kind == "id"}) < 2:  # between partitions there is no order
        assert results[0] == results[1]
