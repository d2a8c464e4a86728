from __future__ import annotations

import pyarrow as pa
import pytest

from odf_common.chain.state import ChainState
from odf_common.data.arrow_types import from_arrow
from odf_common.errors import OdfError
from odf_common.ingest.errors import IncompatibleSchemaError
from odf_common.metadata.events import AddPushSource, MetadataEvent, SetPollingSource, SetVocab
from odf_common.metadata.fragments import DatasetVocabulary
from odf_common.metadata.sources import FetchStepUrl, MergeStrategyAppend, PrepStepPipe, ReadStepNdJson
from services.cli.source_checks import SystemColumnsInUseError, check_events

TIME = pa.timestamp("ms", "UTC")
COLUMNS = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("op", pa.int32(), nullable=False),
        pa.field("system_time", TIME, nullable=False),
        pa.field("event_time", TIME),
        pa.field("city", pa.string()),
        pa.field("measured", TIME),
    ]
)


def a_source(*columns: str, name: str = "default") -> AddPushSource:
    return AddPushSource(source_name=name, read=ReadStepNdJson(ddl_schema=columns), merge=MergeStrategyAppend())


def a_chain(vocabulary: DatasetVocabulary | None = None) -> ChainState:
    return ChainState(data_schema=from_arrow(COLUMNS), vocabulary=vocabulary or DatasetVocabulary())


SAME = ("city STRING", "measured TIMESTAMP")


def test_a_source_with_the_columns_of_the_dataset_is_fine() -> None:
    check_events(a_chain(), [a_source(*SAME)])


def test_a_new_column_is_fine() -> None:
    check_events(a_chain(), [a_source(*SAME, "t DOUBLE")])


@pytest.mark.parametrize(
    "columns", [("town STRING", "measured TIMESTAMP"), ("city STRING",), ("city INT", "measured TIMESTAMP")]
)
def test_removed_renamed_and_retyped_columns_are_refused_with_both_schemas(columns: tuple[str, ...]) -> None:
    with pytest.raises(
        IncompatibleSchemaError, match=r"push source 'default': .*The dataset has.*The source 'default'"
    ):
        check_events(a_chain(), [a_source(*columns)])


@pytest.mark.parametrize("name", ["offset_column", "operation_type_column", "system_time_column"])
def test_system_columns_keep_their_names_once_there_is_data(name: str) -> None:
    renamed = SetVocab(**{name: "other"})
    check_events(ChainState(), [renamed])
    with pytest.raises(SystemColumnsInUseError, match="'other'"):
        check_events(a_chain(), [renamed])


def test_a_name_that_is_left_out_goes_back_to_its_default() -> None:
    chain = a_chain(DatasetVocabulary(offset_column="n"))
    with pytest.raises(SystemColumnsInUseError, match="'n' to 'offset'"):
        check_events(chain, [SetVocab(event_time_column="measured")])


def test_another_column_of_times_becomes_the_event_time() -> None:
    check_events(a_chain(), [SetVocab(event_time_column="measured")])
    with pytest.raises(SystemColumnsInUseError, match="'city'"):
        check_events(a_chain(), [SetVocab(event_time_column="city")])


def test_two_system_columns_have_two_names() -> None:
    with pytest.raises(SystemColumnsInUseError, match="one name"):
        check_events(ChainState(), [SetVocab(offset_column="op")])


def test_a_polling_source_is_checked_by_what_polls_it() -> None:
    polled: MetadataEvent = SetPollingSource(
        fetch=FetchStepUrl(url="https://example.com/cities"),
        prepare=(PrepStepPipe(command=("cat",)),),
        read=ReadStepNdJson(ddl_schema=SAME),
        merge=MergeStrategyAppend(),
    )
    with pytest.raises(OdfError, match=r"polling source: .*Pipe"):
        check_events(ChainState(), [polled])
