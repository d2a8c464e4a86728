"""What ingestion must make of input, case by case: read steps, merge strategies, system columns, schemas.

Each case is a dataset, what is pushed to it one payload after another, and all rows that it has in the end. The same
cases go through `odf try`, through Kafka and Spark, and through the reference implementation where it is at hand.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import shapefile
from pydantic import TypeAdapter

from odf_common.metadata.events import MetadataEvent

Row = Sequence[Any]

T1, T2, T3 = "2000-01-01T12:00:00Z", "2000-01-02T12:00:00Z", "2000-01-03T12:00:00Z"

_EVENT: TypeAdapter[MetadataEvent] = TypeAdapter(MetadataEvent)

APPEND, RETRACT, CORRECT_FROM, CORRECT_TO = range(4)


@dataclass(frozen=True, kw_only=True)
class Push:
    """One payload: one ingest call."""

    data: bytes
    event_time: str = T1
    media_type: str | None = None
    """None: that of the source's read step."""
    dead_letters: Sequence[str] = ()
    """The codes of the records that cannot be taken."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """`rows` have offset, op, event time and then the other columns in their order."""

    name: str
    read: Mapping[str, Any]
    pushes: Sequence[Push]
    rows: Sequence[Row]
    columns: Sequence[str]
    """The names behind those of the system columns and the event time."""
    merge: Mapping[str, Any] = field(default_factory=lambda: {"kind": "Append"})
    preprocess: Mapping[str, Any] | None = None
    vocab: Mapping[str, str] | None = None
    watermark: str | None = None
    peer: bool = True
    """Whether the reference implementation does the same; where it does not, `why` says so."""
    why: str = ""

    @property
    def metadata(self) -> list[dict[str, Any]]:
        """The events of the dataset's manifest."""
        source = {"kind": "AddPushSource", "sourceName": "default", "read": dict(self.read), "merge": dict(self.merge)}
        if self.preprocess is not None:
            source["preprocess"] = dict(self.preprocess)
        vocab = [] if self.vocab is None else [{"kind": "SetVocab", **self.vocab}]
        return [*vocab, source]

    @property
    def events(self) -> list[MetadataEvent]:
        """The same as values."""
        return [_EVENT.validate_python(json.loads(json.dumps(event))) for event in self.metadata]

    @property
    def system_names(self) -> tuple[str, str, str, str]:
        """Of offset, op, system time and event time."""
        names = self.vocab or {}
        return (
            names.get("offsetColumn", "offset"),
            names.get("operationTypeColumn", "op"),
            names.get("systemTimeColumn", "system_time"),
            names.get("eventTimeColumn", "event_time"),
        )


def lines(*records: Mapping[str, Any]) -> bytes:
    """NDJSON."""
    return b"\n".join(json.dumps(record).encode() for record in records)


def cities(*records: tuple[Any, ...]) -> bytes:
    """NDJSON of cities and their populations, with further columns by name."""
    return lines(*({"city": city, "population": population} for city, population in records))


def sql(*queries: str | tuple[str, str]) -> dict[str, Any]:
    """A preprocess step of one query, or of several of which all but the last have an alias."""
    if len(queries) == 1:
        return {"kind": "Sql", "engine": "spark", "query": queries[0]}
    steps = [{"alias": q[0], "query": q[1]} if isinstance(q, tuple) else {"query": q} for q in queries]
    return {"kind": "Sql", "engine": "spark", "queries": steps}


def zipped(files: Mapping[str, bytes]) -> bytes:
    """A zip archive."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        for name, data in files.items():
            file.writestr(name, data)
    return archive.getvalue()


def shape_files(name: str = "places") -> dict[str, bytes]:
    """The files of a shapefile with two points."""
    parts = {ending: io.BytesIO() for ending in ("shp", "shx", "dbf")}
    with shapefile.Writer(**parts) as writer:
        writer.field("name", "C", size=20)
        writer.field("people", "N", size=10)
        for x, y, city, people in ((1.0, 2.0, "A", 1000), (3.5, 4.0, "B", 2000)):
            writer.point(x, y)
            writer.record(city, people)
    return {f"{name}.{ending}": part.getvalue() for ending, part in parts.items()}


def parquet(table: pa.Table) -> bytes:
    """A Parquet file."""
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


CITIES = ("city", "population")
CITY_SCHEMA = ("city STRING", "population BIGINT")
ND_JSON = {"kind": "NdJson", "schema": CITY_SCHEMA}


def by(kind: str, *key: str, **more: Any) -> dict[str, Any]:
    """A merge strategy with a key."""
    return {"kind": kind, "primaryKey": list(key), **more}


def feature(city: str, x: float, y: float) -> dict[str, Any]:
    """A GeoJSON feature."""
    return {
        "type": "Feature",
        "geometry": {"type": "Point", "coordinates": [x, y]},
        "properties": {"name": city},
    }


_POINT = '{"coordinates":[1.0,2.0],"type":"Point"}'

MERGING = (
    Case(
        name="append takes every row, in the order of event time, rows without one first",
        read={"kind": "NdJson", "schema": ("event_time TIMESTAMP", *CITY_SCHEMA)},
        pushes=(
            Push(
                data=lines(
                    {"event_time": T3, "city": "A", "population": 1},
                    {"event_time": T2, "city": "B", "population": 2},
                    {"city": "C", "population": 3},
                    {"event_time": T2, "city": "B", "population": 2},
                ),
            ),
        ),
        columns=CITIES,
        rows=(
            (0, APPEND, T1, "C", 3),
            (1, APPEND, T2, "B", 2),
            (2, APPEND, T2, "B", 2),
            (3, APPEND, T3, "A", 1),
        ),
        watermark=T3,
    ),
    Case(
        name="ledger takes what has an unknown key, whatever else differs, and compares nothing within a batch",
        read=ND_JSON,
        merge=by("Ledger", "city"),
        pushes=(
            Push(data=cities(("A", 1), ("B", 2), ("A", 3))),
            Push(data=cities(("B", 5), ("C", 6), (None, 7)), event_time=T2),
            Push(data=cities((None, 7), ("C", 6)), event_time=T3),
        ),
        columns=CITIES,
        rows=(
            (0, APPEND, T1, "A", 1),
            (1, APPEND, T1, "B", 2),
            (2, APPEND, T1, "A", 3),
            (3, APPEND, T2, "C", 6),
            (4, APPEND, T2, None, 7),
            (5, APPEND, T3, None, 7),
        ),
        watermark=T3,
    ),
    Case(
        name="snapshot: the worked example",
        read=ND_JSON,
        merge=by("Snapshot", "city"),
        pushes=(
            Push(data=cities(("C", 3000), ("A", 1000), ("D", 4000), ("B", 2000))),
            Push(data=cities(("C", 3000), ("B", 4000), ("D", 5000)), event_time=T2),
        ),
        columns=CITIES,
        rows=(
            (0, APPEND, T1, "A", 1000),
            (1, APPEND, T1, "B", 2000),
            (2, APPEND, T1, "C", 3000),
            (3, APPEND, T1, "D", 4000),
            (4, RETRACT, T1, "A", 1000),
            (5, CORRECT_FROM, T1, "B", 2000),
            (6, CORRECT_TO, T2, "B", 4000),
            (7, CORRECT_FROM, T1, "D", 4000),
            (8, CORRECT_TO, T2, "D", 5000),
        ),
        watermark=T2,
    ),
    Case(
        name="snapshot: what was retracted comes back as an append, and equal snapshots change nothing",
        read=ND_JSON,
        merge=by("Snapshot", "city"),
        pushes=(
            Push(data=cities(("A", 1), ("B", 2))),
            Push(data=cities(("B", 2)), event_time=T2),
            Push(data=cities(("B", 2)), event_time=T2),
            Push(data=cities(("A", 1), ("B", 2)), event_time=T3),
        ),
        columns=CITIES,
        rows=(
            (0, APPEND, T1, "A", 1),
            (1, APPEND, T1, "B", 2),
            (2, RETRACT, T1, "A", 1),
            (3, APPEND, T3, "A", 1),
        ),
        watermark=T3,
    ),
    Case(
        name="snapshot: a row with nothing but nulls beside its key is retracted as well",
        read=ND_JSON,
        merge=by("Snapshot", "city"),
        pushes=(Push(data=cities(("A", 1), ("B", None))), Push(data=cities(("A", 1)), event_time=T2)),
        columns=CITIES,
        rows=((0, APPEND, T1, "A", 1), (1, APPEND, T1, "B", None), (2, RETRACT, T1, "B", None)),
        watermark=T1,
        peer=False,
        why="the peer keeps such a row for ever",
    ),
    Case(
        name="snapshot: only compared columns make a change",
        read={"kind": "NdJson", "schema": (*CITY_SCHEMA, "note STRING")},
        merge=by("Snapshot", "city", compareColumns=["population"]),
        pushes=(
            Push(
                data=lines(
                    {"city": "A", "population": 1, "note": "old"},
                    {"city": "B", "population": None, "note": "old"},
                )
            ),
            Push(
                data=lines(
                    {"city": "A", "population": 1, "note": "new"},
                    {"city": "B", "population": 2, "note": "new"},
                ),
                event_time=T2,
            ),
            Push(
                data=lines(
                    {"city": "A", "population": None, "note": "new"},
                    {"city": "B", "population": 2, "note": "newer"},
                ),
                event_time=T3,
            ),
        ),
        columns=(*CITIES, "note"),
        rows=(
            (0, APPEND, T1, "A", 1, "old"),
            (1, APPEND, T1, "B", None, "old"),
            (2, CORRECT_FROM, T1, "B", None, "old"),
            (3, CORRECT_TO, T2, "B", 2, "new"),
            (4, CORRECT_FROM, T1, "A", 1, "old"),
            (5, CORRECT_TO, T3, "A", None, "new"),
        ),
        watermark=T3,
    ),
    Case(
        name="snapshot: an event time of the input counts as a change, a missing one does not",
        read={"kind": "NdJson", "schema": ("event_time TIMESTAMP", *CITY_SCHEMA)},
        merge=by("Snapshot", "city"),
        pushes=(
            Push(data=lines({"event_time": T1, "city": "A", "population": 1}, {"city": "B", "population": 2})),
            Push(
                data=lines({"event_time": T2, "city": "A", "population": 1}, {"city": "B", "population": 2}),
                event_time=T3,
            ),
        ),
        columns=CITIES,
        rows=(
            (0, APPEND, T1, "A", 1),
            (1, APPEND, T1, "B", 2),
            (2, CORRECT_FROM, T1, "A", 1),
            (3, CORRECT_TO, T2, "A", 1),
        ),
        watermark=T2,
    ),
    Case(
        name="snapshot: a key of several columns orders the rows",
        read={"kind": "NdJson", "schema": ("country STRING", *CITY_SCHEMA)},
        merge=by("Snapshot", "country", "city"),
        pushes=(
            Push(
                data=lines(
                    {"country": "b", "city": "A", "population": 1},
                    {"country": "a", "city": "B", "population": 2},
                    {"country": "B", "city": "é", "population": 4},
                    {"country": "a", "city": "A", "population": 3},
                )
            ),
            Push(
                data=lines(
                    {"country": "a", "city": "A", "population": 3},
                    {"country": "b", "city": "A", "population": 5},
                ),
                event_time=T2,
            ),
        ),
        columns=("country", *CITIES),
        rows=(
            (0, APPEND, T1, "B", "é", 4),
            (1, APPEND, T1, "a", "A", 3),
            (2, APPEND, T1, "a", "B", 2),
            (3, APPEND, T1, "b", "A", 1),
            (4, RETRACT, T1, "B", "é", 4),
            (5, RETRACT, T1, "a", "B", 2),
            (6, CORRECT_FROM, T1, "b", "A", 1),
            (7, CORRECT_TO, T2, "b", "A", 5),
        ),
        watermark=T2,
    ),
    Case(
        name="snapshot: two rows of one key, a row without a key and a broken row refuse the whole",
        read=ND_JSON,
        merge=by("Snapshot", "city"),
        pushes=(
            Push(data=cities(("A", 1), ("B", 2))),
            Push(data=cities(("A", 3), ("A", 4)), event_time=T2, dead_letters=("DuplicateKeysInSnapshot",)),
            Push(data=cities(("A", 3), (None, 4)), event_time=T2, dead_letters=("NullKey",)),
            Push(data=b'{"city":"A","population":9}\n{"city":', event_time=T2, dead_letters=("InvalidJson",)),
            Push(data=cities(("A", 5), ("B", 2)), event_time=T3),
        ),
        columns=CITIES,
        rows=(
            (0, APPEND, T1, "A", 1),
            (1, APPEND, T1, "B", 2),
            (2, CORRECT_FROM, T1, "A", 1),
            (3, CORRECT_TO, T3, "A", 5),
        ),
        watermark=T3,
        peer=False,
        why="the reference multiplies duplicate keys and fails on the broken payload",
    ),
    Case(
        name="changelog: rows pass with their own op, in the order of key and op",
        read={"kind": "NdJson", "schema": ("op INT", "event_time TIMESTAMP", *CITY_SCHEMA)},
        merge=by("ChangelogStream", "city"),
        pushes=(
            Push(
                data=lines(
                    {"op": 0, "event_time": T1, "city": "B", "population": 2},
                    {"op": 3, "event_time": T2, "city": "A", "population": 3},
                    {"op": 0, "event_time": T1, "city": "A", "population": 1},
                    {"op": 2, "event_time": T1, "city": "A", "population": 1},
                )
            ),
            Push(data=lines({"op": 1, "event_time": T1, "city": "B", "population": 2})),
        ),
        columns=CITIES,
        rows=(
            (0, APPEND, T1, "A", 1),
            (1, CORRECT_FROM, T1, "A", 1),
            (2, CORRECT_TO, T2, "A", 3),
            (3, APPEND, T1, "B", 2),
            (4, RETRACT, T1, "B", 2),
        ),
        watermark=T2,
    ),
    Case(
        name="upsert: the last of a batch wins, deletes retract, unchanged rows say nothing",
        read={"kind": "NdJson", "schema": ("op INT", *CITY_SCHEMA)},
        merge=by("UpsertStream", "city"),
        pushes=(
            Push(
                data=lines(
                    {"op": 0, "city": "B", "population": 2},
                    {"op": 0, "city": "A", "population": 1},
                    {"op": 0, "city": "B", "population": 20},
                    {"op": 1, "city": "X", "population": None},
                )
            ),
            Push(
                data=lines(
                    {"op": 0, "city": "A", "population": 1},
                    {"op": 3, "city": "B", "population": 30},
                    {"op": 0, "city": "C", "population": 3},
                ),
                event_time=T2,
            ),
            Push(
                data=lines({"op": 1, "city": "B", "population": 999}, {"op": 1, "city": "C"}, {"op": 0, "city": "C"}),
                event_time=T3,
            ),
        ),
        columns=CITIES,
        rows=(
            (0, APPEND, T1, "A", 1),
            (1, APPEND, T1, "B", 20),
            (2, CORRECT_FROM, T1, "B", 20),
            (3, CORRECT_TO, T2, "B", 30),
            (4, APPEND, T2, "C", 3),
            (5, RETRACT, T2, "B", 30),
            (6, CORRECT_FROM, T2, "C", 3),
            (7, CORRECT_TO, T3, "C", None),
        ),
        watermark=T3,
    ),
    Case(
        name="upsert: without an op column all are upserts",
        read=ND_JSON,
        merge=by("UpsertStream", "city"),
        pushes=(
            Push(data=cities(("B", 2), ("A", 1))),
            Push(data=cities(("B", None), ("A", 1)), event_time=T2),
            Push(data=cities(("B", None)), event_time=T3),
        ),
        columns=CITIES,
        rows=(
            (0, APPEND, T1, "A", 1),
            (1, APPEND, T1, "B", 2),
            (2, CORRECT_FROM, T1, "B", 2),
            (3, CORRECT_TO, T2, "B", None),
        ),
        watermark=T2,
    ),
)

READING = (
    Case(
        name="csv: separator, quote, doubled quotes, header, schema by position of the header's names",
        read={"kind": "Csv", "header": True, "separator": ";", "quote": "'", "schema": CITY_SCHEMA},
        pushes=(Push(data=b"city;population\n'A;''x''';1\nB;\n"),),
        columns=CITIES,
        rows=((0, APPEND, T1, "A;'x'", 1), (1, APPEND, T1, "B", None)),
    ),
    Case(
        name="csv: an escape character",
        read={"kind": "Csv", "header": True, "escape": "\\", "schema": CITY_SCHEMA},
        pushes=(Push(data=b'city,population\n"A \\"x\\"",1\n'),),
        columns=CITIES,
        rows=((0, APPEND, T1, 'A "x"', 1),),
    ),
    Case(
        name="csv: without header the schema names columns by position",
        read={"kind": "Csv", "schema": CITY_SCHEMA},
        pushes=(Push(data=b"A,1\nB,2\n"),),
        columns=CITIES,
        rows=((0, APPEND, T1, "A", 1), (1, APPEND, T1, "B", 2)),
    ),
    Case(
        name="csv: without header and schema there are column_1 and so on, all texts",
        read={"kind": "Csv"},
        pushes=(Push(data=b"A,1\nB,2\n"),),
        columns=("column_1", "column_2"),
        rows=((0, APPEND, T1, "A", "1"), (1, APPEND, T1, "B", "2")),
    ),
    Case(
        name="csv: types are inferred when asked for",
        read={"kind": "Csv", "header": True, "inferSchema": True},
        pushes=(Push(data=b"city,population,share\nA,1,0.5\nB,2,1\n"),),
        columns=("city", "population", "share"),
        rows=((0, APPEND, T1, "A", 1, 0.5), (1, APPEND, T1, "B", 2, 1.0)),
    ),
    Case(
        name="csv: a byte order mark is no part of the first column",
        read={"kind": "Csv", "header": True, "schema": CITY_SCHEMA},
        pushes=(Push(data=b"\xef\xbb\xbfcity,population\nA,1\n"),),
        columns=CITIES,
        rows=((0, APPEND, T1, "A", 1),),
    ),
    Case(
        name="json: an array at the root",
        read={"kind": "Json", "schema": CITY_SCHEMA},
        pushes=(Push(data=b'[{"city": "A", "population": 1}, {"city": "B"}]'),),
        columns=CITIES,
        rows=((0, APPEND, T1, "A", 1), (1, APPEND, T1, "B", None)),
    ),
    Case(
        name="json: an array at a path, and bad input where there is none",
        read={"kind": "Json", "subPath": "a.b", "schema": CITY_SCHEMA},
        pushes=(
            Push(data=b'{"a": {"b": [{"city": "A", "population": 1}], "c": 1}}'),
            Push(data=b'{"a": {"c": []}}', dead_letters=("InvalidJson",)),
        ),
        columns=CITIES,
        rows=((0, APPEND, T1, "A", 1),),
    ),
    Case(
        name="ndjson: columns are inferred, those with reserved names get an underscore, seconds are event times",
        read={"kind": "NdJson"},
        pushes=(Push(data=lines({"event_time": 946_728_000, "offset": 7, "op": "x", "city": "A"})),),
        columns=("city", "_offset", "_op"),
        rows=((0, APPEND, T1, "A", 7, "x"),),
    ),
    Case(
        name="ndjson: inferred event times may be texts",
        read={"kind": "NdJson"},
        pushes=(Push(data=lines({"event_time": "2000-01-01T13:00:00.123+01:00", "city": "A"})),),
        columns=("city",),
        rows=((0, APPEND, "2000-01-01T12:00:00.123Z", "A"),),
    ),
    Case(
        name="names are case-sensitive, and a time without a zone is in UTC",
        read={"kind": "NdJson", "schema": ("event_time TIMESTAMP", "city STRING", "City STRING")},
        pushes=(Push(data=lines({"event_time": "2000-01-01T12:00:00", "city": "a", "City": "b"})),),
        columns=("city", "City"),
        rows=((0, APPEND, T1, "a", "b"),),
        peer=False,
        why="the reference wants a zone in NDJSON",
    ),
    Case(
        name="an event time may be a date",
        read={"kind": "NdJson", "schema": ("event_time DATE", *CITY_SCHEMA)},
        pushes=(
            Push(data=lines({"event_time": "2000-01-02", "city": "A"}, {"city": "B"})),
            Push(data=lines({"event_time": "2000-01-01", "city": "C"})),
        ),
        columns=CITIES,
        rows=(
            (0, APPEND, "2000-01-01", "B", None),
            (1, APPEND, "2000-01-02", "A", None),
            (2, APPEND, "2000-01-01", "C", None),
        ),
        watermark="2000-01-02T00:00:00Z",
        peer=False,
        why="the peer wants a value in every row of a DATE event time",
    ),
    Case(
        name="geojson: a row for each feature, its geometry as text",
        read={"kind": "GeoJson", "schema": ("name STRING", "geometry STRING")},
        pushes=(
            Push(data=json.dumps({"type": "FeatureCollection", "features": [feature("A", 1.0, 2.0)]}).encode()),
            Push(data=b'{"type": "Topology"}', dead_letters=("InvalidJson",)),
        ),
        columns=("name", "geometry"),
        rows=((0, APPEND, T1, "A", _POINT),),
    ),
    Case(
        name="ndgeojson: a feature on each line",
        read={"kind": "NdGeoJson", "schema": ("name STRING", "geometry STRING")},
        pushes=(Push(data=lines(feature("A", 1.0, 2.0), feature("B", 1.0, 2.0))),),
        columns=("name", "geometry"),
        rows=((0, APPEND, T1, "A", _POINT), (1, APPEND, T1, "B", _POINT)),
    ),
    Case(
        name="shapefile: the one that the path picks, in a zip",
        read={
            "kind": "EsriShapefile",
            "subPath": "places.shp",
            "schema": ("name STRING", "people BIGINT", "geometry STRING"),
        },
        pushes=(
            Push(data=zipped(shape_files() | shape_files("others"))),
            Push(data=zipped({"readme.txt": b"no shapes"}), dead_letters=("InvalidPayload",)),
            Push(data=b"PK\x03\x04 truncated", dead_letters=("InvalidPayload",)),
        ),
        columns=("name", "people", "geometry"),
        rows=(
            (0, APPEND, T1, "A", 1000, _POINT),
            (1, APPEND, T1, "B", 2000, '{"coordinates":[3.5,4.0],"type":"Point"}'),
        ),
        peer=False,
        why="not built into the peer at hand",
    ),
    Case(
        name="parquet: as it is",
        read={"kind": "Parquet"},
        pushes=(
            Push(data=parquet(pa.table({"city": ["A", "B"], "population": pa.array([1, None], pa.int64())}))),
            Push(data=b"PAR1 is not enough", dead_letters=("InvalidPayload",)),
        ),
        columns=CITIES,
        rows=((0, APPEND, T1, "A", 1), (1, APPEND, T1, "B", None)),
    ),
    Case(
        name="a payload of another media type is read by a default step with the same schema",
        read=ND_JSON,
        pushes=(
            Push(data=b"A,1\n", media_type="text/csv"),
            Push(data=b'[{"city": "B", "population": 2}]', media_type="application/json"),
            Push(data=cities(("C", 3))),
        ),
        columns=CITIES,
        rows=((0, APPEND, T1, "A", 1), (1, APPEND, T1, "B", 2), (2, APPEND, T1, "C", 3)),
        peer=False,
        why="the peer forgets a schema that is called ddlSchema, as it is in its manifests",
    ),
    Case(
        name="csv in place of another format has a header where no schema is known",
        read={"kind": "NdJson"},
        pushes=(Push(data=b"city,population\nA,1\n", media_type="text/csv"),),
        columns=CITIES,
        rows=((0, APPEND, T1, "A", "1"),),
    ),
    Case(
        name="an empty payload with a known schema says no more than that",
        read=ND_JSON,
        pushes=(Push(data=b"[]", media_type="application/json"), Push(data=cities(("A", 1)))),
        columns=CITIES,
        rows=((0, APPEND, T1, "A", 1),),
        peer=False,
        why="the peer forgets a schema that is called ddlSchema, as it is in its manifests",
    ),
    Case(
        name="good records beside bad ones go through",
        read=ND_JSON,
        pushes=(
            Push(
                data=b'{"city":"A","population":1}\n{"city":\n{"city":"B","population":"many"}\n{"city":"C"}',
                dead_letters=("InvalidJson", "WrongType"),
            ),
        ),
        columns=CITIES,
        rows=((0, APPEND, T1, "A", 1), (1, APPEND, T1, "C", None)),
        peer=False,
        why="the reference refuses the whole payload",
    ),
)

SHAPING = (
    Case(
        name="preprocess: steps by their aliases, the last one's rows",
        read=ND_JSON,
        preprocess=sql(
            ("large", "select * from input where population > 1"),
            "select upper(city) as city, population * 2 as double, timestamp'2000-01-03 12:00:00' as event_time "
            "from large",
        ),
        pushes=(Push(data=cities(("a", 1), ("b", 2))), Push(data=cities(("c", 0)))),
        columns=("city", "double"),
        rows=((0, APPEND, T3, "B", 4),),
        watermark=T3,
        peer=False,
        why="its engine for Spark is a container",
    ),
    Case(
        name="vocabulary: system columns by other names, event times from a column of the data",
        read={"kind": "NdJson", "schema": ("seen TIMESTAMP", *CITY_SCHEMA)},
        merge=by("Snapshot", "city"),
        vocab={
            "offsetColumn": "nr",
            "operationTypeColumn": "change",
            "systemTimeColumn": "taken",
            "eventTimeColumn": "seen",
        },
        pushes=(
            Push(data=lines({"seen": T1, "city": "A", "population": 1}, {"seen": T2, "city": "B", "population": 3})),
            Push(data=lines({"seen": T3, "city": "A", "population": 2}), event_time=T3),
        ),
        columns=CITIES,
        rows=(
            (0, APPEND, T1, "A", 1),
            (1, APPEND, T2, "B", 3),
            (2, CORRECT_FROM, T1, "A", 1),
            (3, CORRECT_TO, T3, "A", 2),
            (4, RETRACT, T2, "B", 3),
        ),
        watermark=T3,
    ),
    Case(
        name="the event time comes before the other columns, wherever the input has it",
        read={"kind": "NdJson", "schema": ("city STRING", "event_time TIMESTAMP", "population BIGINT")},
        pushes=(Push(data=lines({"city": "A", "event_time": T2, "population": 1})),),
        columns=CITIES,
        rows=((0, APPEND, T2, "A", 1),),
        watermark=T2,
    ),
    Case(
        name="late rows are kept and do not lower the watermark",
        read={"kind": "NdJson", "schema": ("event_time TIMESTAMP", *CITY_SCHEMA)},
        pushes=(
            Push(data=lines({"event_time": T3, "city": "A", "population": 1})),
            Push(data=lines({"event_time": T1, "city": "B", "population": 2})),
        ),
        columns=CITIES,
        rows=((0, APPEND, T3, "A", 1), (1, APPEND, T1, "B", 2)),
        watermark=T3,
    ),
)

CASES = (*MERGING, *READING, *SHAPING)


def plain(value: Any) -> Any:
    """A value as cases write it: times and dates as RFC 3339 texts."""
    if isinstance(value, datetime):
        moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z").replace(".000Z", "Z")
    return value.isoformat() if isinstance(value, date) else value


def rows_of(case: Case, found: Sequence[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """Rows by name in the form of `Case.rows`; the names and their order are checked, the system time is not."""
    offset, operation, system_time, event_time = case.system_names
    for row in found:
        assert list(row) == [offset, operation, system_time, event_time, *case.columns]
    return [tuple(plain(row[name]) for name in (offset, operation, event_time, *case.columns)) for row in found]
