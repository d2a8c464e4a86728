"""Logs as rows: Parquet with bytes as they are, or lines of JSON with `0x…` for sources that read JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.parquet as pq

from odf_common.metadata.sources import (
    ReadStepGeoJson,
    ReadStepJson,
    ReadStepNdGeoJson,
    ReadStepNdJson,
    ReadStepParquet,
)
from services.poller.errors import FetchDamagedError
from services.poller.fetch.ethereum_event import EventSignature
from services.poller.fetch.ethereum_node import bytes_of, number_of
from services.poller.fetched import FetchJob

_NDJSON = "application/x-ndjson"
_PARQUET = "application/vnd.apache.parquet"
_TOPICS = 4

_COLUMNS = [
    pa.field("block_hash", pa.binary()),
    pa.field("block_number", pa.int64()),
    pa.field("block_timestamp", pa.timestamp("ms", "UTC")),
    pa.field("transaction_hash", pa.binary()),
    pa.field("transaction_index", pa.int64()),
    pa.field("log_index", pa.int64()),
    pa.field("address", pa.binary()),
    *(pa.field(f"topic{number}", pa.binary()) for number in range(_TOPICS)),
    pa.field("data", pa.binary()),
]


@dataclass(frozen=True, slots=True)
class Payload:
    """A file of rows, and its media type if the source's read step is another."""

    file: BinaryIO
    media_type: str | None


def payload_of(
    logs: Sequence[dict[str, Any]], timestamps: Mapping[int, int], event: EventSignature | None, job: FetchJob
) -> Payload:
    """The rows of logs, in the form that suits the source's read step."""
    rows = [row_of(log, timestamps, event) for log in logs]
    file = job.file()
    reads_json = isinstance(job.read, ReadStepNdJson | ReadStepJson | ReadStepNdGeoJson | ReadStepGeoJson)
    if reads_json:
        _write_json(rows, file)
        media_type = None if isinstance(job.read, ReadStepNdJson) else _NDJSON
    else:
        fields = _COLUMNS if event is None else [*_COLUMNS, pa.field("event", event.arrow_type)]
        pq.write_table(pa.Table.from_pylist(rows, schema=pa.schema(fields)), file)
        media_type = None if isinstance(job.read, ReadStepParquet) else _PARQUET
    file.seek(0)
    return Payload(cast(BinaryIO, file), media_type)


def row_of(log: dict[str, Any], timestamps: Mapping[int, int], event: EventSignature | None) -> dict[str, Any]:
    """One row; bytes are bytes."""
    number = number_of(log["blockNumber"])
    topics = [bytes_of(each) for each in log.get("topics") or ()]
    data = bytes_of(log.get("data", "0x"))
    row = {
        "block_hash": bytes_of(log.get("blockHash")),
        "block_number": number,
        "block_timestamp": _time_of(timestamps[number]),
        "transaction_hash": bytes_of(log.get("transactionHash")),
        "transaction_index": number_of(log.get("transactionIndex")),
        "log_index": number_of(log.get("logIndex")),
        "address": bytes_of(log.get("address")),
        **{f"topic{place}": topics[place] if place < len(topics) else None for place in range(_TOPICS)},
        "data": data,
    }
    return row if event is None else row | {"event": event.decoded(topics, data)}


def _time_of(seconds: int) -> datetime:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError) as error:
        raise FetchDamagedError(f"{seconds} seconds since 1970 is no time of a block") from error


def _write_json(rows: Sequence[dict[str, Any]], file: Any) -> None:
    import orjson

    for row in rows:
        file.write(orjson.dumps(_as_json(row)) + b"\n")


def _as_json(value: Any) -> Any:
    match value:
        case bytes():
            return f"0x{value.hex()}"
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case dict():
            return {name: _as_json(each) for name, each in value.items()}
        case list():
            return [_as_json(each) for each in value]
        case _:
            return value
