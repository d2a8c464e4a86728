from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from odf_common.ingest.errors import UnsupportedSourceError
from odf_common.ingest.read.choice import reader_of
from odf_common.metadata.fragments import DatasetVocabulary
from odf_common.metadata.sources import (
    ReadStep,
    ReadStepCsv,
    ReadStepEsriShapefile,
    ReadStepGeoJson,
    ReadStepJson,
    ReadStepNdJson,
    ReadStepParquet,
)
from tests.unit.odf_common.ingest.sources import messages


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (ReadStepCsv(encoding="latin1"), "encoding 'latin1' is not supported: send utf8 and leave it out"),
        (ReadStepJson(encoding="utf16"), "encoding 'utf16' is not supported: send utf8 and leave it out"),
        (ReadStepCsv(null_value="NA"), "nullValue 'NA' is not supported: only empty values are null"),
        (
            ReadStepNdJson(timestamp_format="%Y"),
            "timestampFormat '%Y' is not supported: leave it out, or use rfc3339",
        ),
        (ReadStepCsv(date_format="%d.%m.%Y"), "dateFormat '%d.%m.%Y' is not supported: leave it out, or use rfc3339"),
        (ReadStepCsv(separator="||"), "separator '||' is not supported: it must be one ASCII character"),
        (ReadStepCsv(quote="\u201c"), "quote '\u201c' is not supported: it must be one ASCII character"),
        (
            ReadStepCsv(escape=","),
            "separator, quote and escape of a Csv read step must be different characters",
        ),
        (ReadStepJson(sub_path="a..b"), "subPath 'a..b' is not supported: write keys like a.b.c"),
        (
            ReadStepGeoJson(ddl_schema=("a BINARY",)),
            "column 'a': JSON has no form for the type binary: declare it as STRING, or leave the column out",
        ),
        (
            ReadStepEsriShapefile(ddl_schema=("a BINARY",)),
            "column 'a': JSON has no form for the type binary: declare it as STRING, or leave the column out",
        ),
    ],
)
def test_what_is_not_supported_is_refused_before_any_data(step: ReadStep, reason: str) -> None:
    with pytest.raises(UnsupportedSourceError) as caught:
        reader_of(step, None)
    assert str(caught.value) == reason


@pytest.mark.parametrize(
    "step",
    [
        ReadStepCsv(encoding="UTF-8", null_value="", date_format="rfc3339", timestamp_format="RFC3339", escape="\\"),
        ReadStepCsv(escape='"'),
        ReadStepJson(sub_path="a.b"),
        ReadStepParquet(ddl_schema=("a BINARY", "b MAP<STRING, BIGINT>")),
    ],
)
def test_what_is_supported_has_a_reader(step: ReadStep) -> None:
    assert reader_of(step, None).read(messages()).count == 0


def test_the_operation_may_keep_its_name_where_the_merge_takes_it() -> None:
    vocabulary = DatasetVocabulary(operation_type_column="what")
    message = messages(b'{"what":1,"offset":2,"event_time":0}')
    kept = reader_of(ReadStepNdJson(), None, vocabulary=vocabulary, allows_operation=True).read(message)
    assert kept.rows.to_pylist() == [{"event_time": datetime(1970, 1, 1, tzinfo=UTC), "_offset": 2, "what": 1}]
    assert "_what" in reader_of(ReadStepNdJson(), None, vocabulary=vocabulary).read(message).rows.column_names
    known = pa.schema([("what", pa.int32())])
    again = reader_of(ReadStepNdJson(), known, vocabulary=vocabulary, allows_operation=True).read(message)
    assert again.rows.schema.field("what").type == pa.int32()
