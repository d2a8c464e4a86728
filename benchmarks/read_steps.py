"""Read steps beside the bare parsers of Arrow, over 1,000,000 records of about 100 bytes, in messages and uploads."""

from __future__ import annotations

import io
import zipfile

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet
import shapefile

from benchmarks.figures import medians, print_figure
from odf_common.ingest.batch import make_batch
from odf_common.ingest.messages import MESSAGES
from odf_common.ingest.payload_file import read_payload
from odf_common.ingest.read.choice import reader_of
from odf_common.ingest.source import SourcePlan
from odf_common.metadata.events import AddPushSource
from odf_common.metadata.fragments import DatasetVocabulary
from odf_common.metadata.sources import (
    MergeStrategyAppend,
    ReadStep,
    ReadStepCsv,
    ReadStepEsriShapefile,
    ReadStepGeoJson,
    ReadStepJson,
    ReadStepNdGeoJson,
    ReadStepNdJson,
    ReadStepParquet,
)
from odf_common.timestamp import Timestamp

RECORDS = 1_000_000
SMALL = 50
FEATURES = 100_000
ROUNDS = 5

COLUMNS = ("event_time TIMESTAMP", "device STRING", "value DOUBLE", "count BIGINT", "state STRING")
NOW = Timestamp.parse("2024-01-01T00:00:00Z")
KAFKA_TIME_US = 1_700_000_000_000_000


def json_record(number: int) -> bytes:
    """About 100 bytes."""
    time = f"2020-01-01T00:{number // 60 % 60:02}:{number % 60:02}.{number % 1000:03}Z"
    return (
        f'{{"event_time":"{time}","device":"sensor-{number % 1000:05}","value":{number % 777}.25,'
        f'"count":{number},"state":"ok"}}'
    ).encode()


def csv_record(number: int) -> bytes:
    """The same columns, without their names."""
    time = f"2020-01-01T00:{number // 60 % 60:02}:{number % 60:02}.{number % 1000:03}Z"
    return f"{time},sensor-{number % 1000:05},{number % 777}.25,{number},ok".encode()


def messages(values: list[bytes]) -> pa.Table:
    """Messages of one partition."""
    numbers = range(len(values))
    nothing = [None] * len(values)
    columns = [[0] * len(values), list(numbers), [KAFKA_TIME_US] * len(values), values, nothing]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, MESSAGES, strict=True)], schema=MESSAGES)


def plan(read: ReadStep) -> SourcePlan:
    """A plan after its first batch, when the schema is known."""
    source = AddPushSource(source_name="default", read=read, merge=MergeStrategyAppend())
    first = SourcePlan.of(source, DatasetVocabulary(), None)
    empty = make_batch(first, messages([]), next_offset=0, system_time=NOW)
    return first if empty.data_schema is None else first.evolved(empty.data_schema)


def bare_json(data: bytes) -> pa.Table:
    """What Arrow alone needs, for times as texts."""
    columns = [("event_time", pa.string()), ("device", pa.string()), ("value", pa.float64())]
    schema = pa.schema([*columns, ("count", pa.int64()), ("state", pa.string())])
    return pa.json.read_json(
        pa.BufferReader(data),
        read_options=pa.json.ReadOptions(block_size=4 << 20),
        parse_options=pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
    )


def bare_csv(data: bytes) -> pa.Table:
    """What Arrow alone needs, with types inferred."""
    return pa.csv.read_csv(
        pa.BufferReader(data), read_options=pa.csv.ReadOptions(autogenerate_column_names=True, block_size=4 << 20)
    )


def nd_json() -> None:
    """Print how fast NDJSON becomes rows, and whole batches."""
    values = [json_record(number) for number in range(RECORDS)]
    data, table, of = b"\n".join(values), messages(values), plan(ReadStepNdJson(ddl_schema=COLUMNS))
    spoilt = messages([*values[:-1], b'{"count":"x"}'])
    bare, read, made, mended = medians(
        [
            lambda: bare_json(data),
            lambda: of.reader.read(table),
            lambda: make_batch(of, table, next_offset=0, system_time=NOW),
            lambda: of.reader.read(spoilt),
        ],
        rounds=ROUNDS,
    )
    size = len(data) / 1e6
    print_figure("NdJson read step", size / read, "MB/s", goal=">= 200", bare=size / bare)
    print_figure("NdJson read step / bare pyarrow.json", read / bare, "ratio", goal="<= 1.5")
    print_figure("whole batch / bare pyarrow.json", made / bare, "ratio", goal="<= 2", rows_per_s=RECORDS / made)
    print_figure("read step with one bad record of a million", size / mended, "MB/s", goal="-")
    few = messages(values[:SMALL])
    (small,) = medians([lambda: make_batch(of, few, next_offset=0, system_time=NOW)], rounds=50)
    print_figure(f"whole batch of {SMALL} messages", small * 1000, "ms", goal="<= 3")


def others() -> None:
    """Print how fast the other formats are, as messages."""
    values = [csv_record(number) for number in range(RECORDS)]
    data, table, of = b"\n".join(values), messages(values), plan(ReadStepCsv(ddl_schema=COLUMNS))
    quoted = messages([value.replace(b",ok", b',"ok"') for value in values])
    bare, read, slow = medians(
        [lambda: bare_csv(data), lambda: of.reader.read(table), lambda: of.reader.read(quoted)], rounds=ROUNDS
    )
    size = len(data) / 1e6
    print_figure("Csv read step", size / read, "MB/s", goal=">= 100", bare=size / bare, quoted=size / slow)
    arrays = [b"[" + b",".join(json_record(number + i) for i in range(100)) + b"]" for number in range(0, RECORDS, 100)]
    table, of = messages(arrays), plan(ReadStepJson(ddl_schema=COLUMNS))
    (read,) = medians([lambda: of.reader.read(table)], rounds=ROUNDS)
    print_figure("Json read step, 100 records in each message", sum(map(len, arrays)) / 1e6 / read, "MB/s", goal="-")


def payloads() -> None:
    """Print how fast one payload with all records becomes rows, for each format."""
    lines = b"\n".join(json_record(number) for number in range(RECORDS))
    rows = b"\n".join(csv_record(number) for number in range(RECORDS))
    quoted = rows.replace(b",ok", b',"ok"')
    array = b"[" + lines.replace(b"\n", b",\n") + b"]"
    parquet = parquet_file(bare_json(lines))
    text, csv = ReadStepNdJson(ddl_schema=COLUMNS), ReadStepCsv(ddl_schema=COLUMNS)
    of_lines, inferred, of_rows, of_quoted, of_array, of_parquet = medians(
        [
            lambda: read_all(text, lines),
            lambda: read_all(ReadStepNdJson(), lines),
            lambda: read_all(csv, rows),
            lambda: read_all(csv, quoted),
            lambda: read_all(ReadStepJson(ddl_schema=COLUMNS), array),
            lambda: read_all(ReadStepParquet(), parquet),
        ],
        rounds=3,
    )
    print_figure("payload of 1,000,000 NDJSON records", of_lines, "s", goal="<= 1", inferred=inferred)
    print_figure("payload of Csv / of NdJson, equal records", of_rows / of_lines, "ratio", goal="<= 1.5")
    print_figure("payload of quoted Csv / of NdJson, equal records", of_quoted / of_lines, "ratio", goal="<= 1.5")
    print_figure("payload of 1,000,000 Json records", of_array, "s", goal="-")
    print_figure("payload of 1,000,000 Parquet records", of_parquet, "s", goal="-")


def features() -> None:
    """Print how fast features become rows."""
    values = [feature(number) for number in range(FEATURES)]
    collection = b'{"type":"FeatureCollection","features":[' + b",\n".join(values) + b"]}"
    archive = shapefile_zip()
    of_lines, of_collection, of_shapefile = medians(
        [
            lambda: read_all(ReadStepNdGeoJson(), b"\n".join(values)),
            lambda: read_all(ReadStepGeoJson(), collection),
            lambda: read_all(ReadStepEsriShapefile(), archive),
        ],
        rounds=3,
    )
    print_figure("payload of NdGeoJson", FEATURES / of_lines, "features/s", goal="-")
    print_figure("payload of GeoJson", FEATURES / of_collection, "features/s", goal="-")
    print_figure("payload of EsriShapefile", FEATURES / of_shapefile, "features/s", goal="-")


def read_all(step: ReadStep, data: bytes) -> int:
    """Read a payload as an upload is read."""
    return sum(
        records.count for records in read_payload(reader_of(step, None), step, io.BytesIO(data), messages([b"upload"]))
    )


def feature(number: int) -> bytes:
    """A point with two properties."""
    return (
        f'{{"type":"Feature","properties":{{"name":"place-{number}","count":{number}}},'
        f'"geometry":{{"type":"Point","coordinates":[{number % 180}.123456,{number % 90}.654321]}}}}'
    ).encode()


def parquet_file(table: pa.Table) -> bytes:
    """The table as a file."""
    file = io.BytesIO()
    pa.parquet.write_table(table, file)
    return file.getvalue()


def shapefile_zip() -> bytes:
    """The same points in a shapefile."""
    files = {suffix: io.BytesIO() for suffix in ("shp", "shx", "dbf")}
    with shapefile.Writer(**files) as writer:
        writer.field("name", "C", 20)
        writer.field("count", "N", 10)
        for number in range(FEATURES):
            writer.point(number % 180 + 0.123456, number % 90 + 0.654321)
            writer.record(f"place-{number}", number)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for suffix, file in files.items():
            archive.writestr(f"places.{suffix}", file.getvalue())
    return packed.getvalue()


def main() -> None:
    """Print all figures."""
    nd_json()
    others()
    payloads()
    features()


if __name__ == "__main__":
    main()
