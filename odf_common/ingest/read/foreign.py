"""Payloads that are something else than text in UTF-8, told by their first bytes."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa

from odf_common.ingest.messages import Code, Problem

HEAD_SIZE = 256
"""Bytes that are enough to tell."""

_BOM = b"\xef\xbb\xbf"
_HTML = re.compile(rb"\s*<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)
_BINARY_PARQUET = re.compile(rb"PAR1[\x00-\x08\x0e-\x1f]")
_UTF_16 = re.compile(rb"\xff\xfe|\xfe\xff|[^\0]\0[^\0]\0|\0[^\0]\0[^\0]", re.DOTALL)
_UTF_32 = re.compile(rb"\xff\xfe\0\0|\0\0\xfe\xff|[^\0]\0\0\0|\0\0\0[^\0]", re.DOTALL)

_SUSPECT = np.zeros(256, np.bool_)
_SUSPECT[[*b"\xff\xfe\xef\x1fP<\0", *b" \t\r\n"]] = True


def foreign_problem(head: bytes) -> Problem | None:
    """What a payload with these first bytes is, if it is no text that can be read."""
    if _UTF_32.match(head):
        return Problem(Code.INVALID_UTF8, "the payload is UTF-32: send UTF-8")
    if _UTF_16.match(head):
        return Problem(Code.INVALID_UTF8, "the payload is UTF-16: send UTF-8")
    if _HTML.match(head.removeprefix(_BOM)):
        reason = "the payload is an HTML page, no data: look at the address that it comes from"
    elif head.startswith(b"\x1f\x8b"):
        reason = "the payload is packed with gzip: send it unpacked, or let a polling source unpack it"
    elif head.startswith(b"PK\x03\x04"):
        reason = "the payload is a zip archive: send it unpacked, or let a polling source unpack it"
    elif _BINARY_PARQUET.match(head):
        reason = "the payload is a Parquet file: send it as application/vnd.apache.parquet"
    else:
        return None
    return Problem(Code.WRONG_MEDIA_TYPE, reason)


def foreign_values(values: pa.Array) -> dict[int, Problem]:
    """The places of values, none of them empty, that are no text, and what they are."""
    if not len(values):
        return {}
    starts = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(values)]
    data = np.frombuffer(values.buffers()[2], np.uint8)
    seconds = data[np.minimum(starts + 1, len(data) - 1)]
    suspects = np.flatnonzero(_SUSPECT[data[starts]] | (seconds == 0))
    heads = ((int(place), values[int(place)].as_buffer()[:HEAD_SIZE].to_pybytes()) for place in suspects)
    return {place: problem for place, head in heads if (problem := foreign_problem(head)) is not None}
