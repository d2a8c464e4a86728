"""A dataset from nothing: identity, source, schema, two slices, a check, one flipped bit, a check that finds it.

python -m examples.tour
python -m examples.tour --folder my-dataset     # keep what it makes
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa

from odf_common.chain.metadata_chain import MetadataChain
from odf_common.chain.state import next_block
from odf_common.data.arrow_schema import encode_arrow_schema
from odf_common.data.slice_writer import SliceWriter
from odf_common.identity.key_pair import KeyPair
from odf_common.metadata.events import AddData, AddPushSource, DatasetKind, MetadataEvent, Seed, SetDataSchema, SetInfo
from odf_common.metadata.sources import MergeStrategyAppend, ReadStepNdJson
from odf_common.storage.dataset_folder import DatasetFolder, local_folder
from odf_common.storage.layout import ObjectKind
from odf_common.timestamp import Timestamp
from odf_common.wire.encode import seal

MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("op", pa.int32(), nullable=False),
        pa.field("system_time", pa.timestamp("ms", "UTC"), nullable=False),
        pa.field("event_time", pa.timestamp("ms", "UTC")),
        pa.field("city", pa.string()),
        pa.field("temperature", pa.float64()),
    ]
)
SOURCE = AddPushSource(
    source_name="default",
    read=ReadStepNdJson(ddl_schema=("event_time TIMESTAMP", "city STRING", "temperature DOUBLE")),
    merge=MergeStrategyAppend(),
)


def readings(start: int, count: int) -> pa.RecordBatch:
    """One reading a minute."""
    numbers = range(start, start + count)
    return pa.record_batch(
        [
            pa.array(numbers, pa.int64()),
            pa.array([0] * count, pa.int32()),
            pa.array([MIDNIGHT] * count, SCHEMA.field("system_time").type),
            pa.array([MIDNIGHT + timedelta(minutes=number) for number in numbers], SCHEMA.field("event_time").type),
            pa.array([("Vancouver", "Seattle", None)[number % 3] for number in numbers]),
            pa.array([10 + number % 7 / 2 for number in numbers]),
        ],
        schema=SCHEMA,
    )


def add_readings(folder: DatasetFolder, staging: Path, start: int, count: int) -> AddData:
    """Write a slice, put it into the dataset, and say so in an event."""
    with SliceWriter(staging / "slice", SCHEMA) as writer:
        writer.write(readings(start, count))
    written = writer.close()
    folder.objects.put_file(ObjectKind.DATA, written.physical_hash, written.path)
    return AddData(
        prev_offset=start - 1 if start else None,
        new_data=written.to_data_slice(),
        new_watermark=Timestamp.from_datetime(MIDNIGHT + timedelta(minutes=start + count - 1)),
    )


def make_dataset(folder: DatasetFolder, staging: Path) -> None:
    """Append one block after another."""
    chain = MetadataChain(folder.objects, folder.refs)

    def append(event: MetadataEvent) -> None:
        chain.append([seal(next_block(chain.state(), event, system_time=Timestamp.now()))])

    append(Seed(dataset_id=KeyPair.generate().dataset_id, dataset_kind=DatasetKind.ROOT))
    append(SetInfo(description="Temperatures, one a minute", keywords=("weather",)))
    append(SOURCE)
    append(SetDataSchema(raw_arrow_schema=encode_arrow_schema(SCHEMA)))
    append(add_readings(folder, staging, 0, 1000))
    append(add_readings(folder, staging, 1000, 500))


def flip_a_bit(path: Path) -> Path:
    """Damage the newest slice."""
    damaged = max((path / "data").iterdir(), key=lambda file: file.stat().st_mtime_ns)
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)
    return damaged


def odf(*arguments: str) -> int:
    """Run the command as a user would."""
    print(f"\n$ odf {' '.join(arguments)}", flush=True)
    return subprocess.run([sys.executable, "-m", "services.cli", *arguments], stderr=sys.stdout, check=False).returncode


def tour(path: Path, staging: Path) -> bool:
    """Walk through it; whether everything came out as it should."""
    print(f"Making a dataset in {path} …", flush=True)
    make_dataset(local_folder(path), staging)
    fine = odf("chain", "log", str(path)) == 0
    fine &= odf("chain", "check", str(path)) == 0
    newest = (path / "refs" / "head").read_text()
    fine &= odf("block", "decode", f"{path}/blocks/{newest}") == 0

    damaged = flip_a_bit(path)
    print(f"\nFlipped one bit of {damaged.name} …", flush=True)
    fine &= odf("chain", "check", str(path)) == 1
    flip_a_bit(path)
    print("\n… and flipped it back.", flush=True)
    fine &= odf("chain", "check", str(path)) == 0
    return fine


def main() -> None:
    """Run the tour in a temporary folder, or in one that stays."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="a new folder for the dataset, which is kept")
    kept: Path | None = parser.parse_args().folder
    if kept is not None and kept.exists():
        parser.error(f"{kept} exists already; name a new folder")
    with tempfile.TemporaryDirectory() as temporary:
        fine = tour(kept or Path(temporary, "dataset"), Path(temporary))
    sys.exit(0 if fine else "something did not come out as it should")


if __name__ == "__main__":
    main()
