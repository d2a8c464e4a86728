"""The limit, as a process of its own: one Python process that consumes, parses, writes Parquet and hashes."""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.json
import pyarrow.parquet as pq
from confluent_kafka import Consumer, TopicPartition

_CHUNK = 10_000


def batches(consumer: Consumer, size: int, records: int) -> Iterator[list[bytes]]:
    """The values of so many messages at a time."""
    while records > 0:
        values: list[bytes] = []
        wanted = min(size, records)
        while len(values) < wanted:
            values += [
                value for each in consumer.consume(min(_CHUNK, wanted - len(values)), 1.0) if (value := each.value())
            ]
        records -= wanted
        yield values


def main() -> None:
    """Print the end of each batch and its records, as JSON."""
    servers, topic, partitions, size, records, folder = sys.argv[1:]
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "bench-limit", "enable.auto.commit": False, "fetch.wait.max.ms": 10}
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(int(partitions))])
    found = []
    for number, values in enumerate(batches(consumer, int(size), int(records))):
        table = pa.json.read_json(
            pa.BufferReader(b"\n".join(values)), read_options=pa.json.ReadOptions(block_size=4 << 20)
        )
        path = Path(folder, f"{number}.parquet")
        pq.write_table(table, path)
        with path.open("rb") as file:
            hashlib.file_digest(file, "sha3_256")
        found.append((time.time(), len(values)))
    print(json.dumps({"batches": found}))


if __name__ == "__main__":
    main()
