"""Event ids as keys: the `ce_id` and `ce_source` of a message, as one value. The form is kept in stores."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from odf_common.messages.payload import EVENT_ID_HEADER, EVENT_SOURCE_HEADER
from streaming_jobs.ingest.headers import Headers

_LONGEST = 200
"""Bytes of a key; of longer ones the hash is taken, so that nobody can fill the store with few messages."""


def event_keys(headers: Headers) -> Mapping[int, bytes]:
    """Row of a message → the key of its event id."""
    if headers.event_id is None:
        return {}
    ids = headers.event_id
    sources = headers.event_source if headers.event_source is not None else pa.nulls(len(ids), pa.binary())
    sources = pc.fill_null(sources, b"")
    lengths = pc.binary_length(sources).cast(pa.string()).cast(pa.binary())
    keys = pc.binary_join_element_wise(lengths, b":", sources, ids, b"")
    rows = pc.indices_nonzero(keys.is_valid()).to_pylist()
    return {row: _bounded(key) for row, key in zip(rows, keys.drop_null().to_pylist(), strict=True)}


def event_key_of(headers: Iterable[tuple[str, bytes | None]]) -> bytes | None:
    """The same for a single message; None if it has no event id."""
    found = {name: value for name, value in headers if value is not None}
    event_id = found.get(EVENT_ID_HEADER)
    if event_id is None:
        return None
    source = found.get(EVENT_SOURCE_HEADER, b"")
    return _bounded(b"%d:%b%b" % (len(source), source, event_id))


def _bounded(key: bytes) -> bytes:
    return key if len(key) <= _LONGEST else b"#" + hashlib.sha256(key).digest()
