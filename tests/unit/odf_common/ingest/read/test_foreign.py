from __future__ import annotations

import gzip

import pytest

from odf_common.ingest.read.choice import reader_of
from odf_common.metadata.sources import ReadStep, ReadStepCsv, ReadStepGeoJson, ReadStepJson, ReadStepNdJson
from tests.unit.odf_common.ingest.sources import messages

UTF_16 = "the payload is UTF-16: send UTF-8"
HTML = "the payload is an HTML page, no data: look at the address that it comes from"
COLUMNS = ("a BIGINT", "b STRING")
STEPS = (
    ReadStepNdJson(ddl_schema=COLUMNS),
    ReadStepJson(ddl_schema=COLUMNS),
    ReadStepCsv(ddl_schema=COLUMNS),
    ReadStepGeoJson(ddl_schema=COLUMNS),
)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.kind)
@pytest.mark.parametrize(
    ("value", "code", "reason"),
    [
        ('{"a":1}'.encode("utf-16"), "InvalidUtf8", UTF_16),
        ('{"a":1}'.encode("utf-16-le"), "InvalidUtf8", UTF_16),
        ("1,x\n".encode("utf-16-be"), "InvalidUtf8", UTF_16),
        ("1,x\n".encode("utf-32"), "InvalidUtf8", "the payload is UTF-32: send UTF-8"),
        (b"<!DOCTYPE html><html>", "WrongMediaType", HTML),
        (b"\xef\xbb\xbf\n <HTML lang=en>", "WrongMediaType", HTML),
        (
            gzip.compress(b"1,x", mtime=0),
            "WrongMediaType",
            "the payload is packed with gzip: send it unpacked, or let a polling source unpack it",
        ),
        (
            b"PK\x03\x04\x14\x00",
            "WrongMediaType",
            "the payload is a zip archive: send it unpacked, or let a polling source unpack it",
        ),
        (
            b"PAR1\x15\x04",
            "WrongMediaType",
            "the payload is a Parquet file: send it as application/vnd.apache.parquet",
        ),
    ],
)
def test_what_is_no_text_is_one_dead_letter_that_says_so(step: ReadStep, value: bytes, code: str, reason: str) -> None:
    records = reader_of(step, None).read(messages(value))
    [letter] = records.unreadable
    assert (letter.index, letter.code, letter.reason, letter.data) == (None, code, reason, value)
    assert records.count == 1


def test_texts_that_begin_alike_are_read() -> None:
    records = reader_of(ReadStepCsv(ddl_schema=("b STRING",)), None).read(messages(b"PAR1\n<b>\nPK\n", b" \nx", b"P"))
    assert records.rows["b"].to_pylist() == ["PAR1", "<b>", "PK", " ", "x", "P"]
    assert records.unreadable == []
