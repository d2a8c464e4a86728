from __future__ import annotations

from odf_common.metadata.fragments import DatasetVocabulary


def test_system_columns_have_names_where_a_dataset_gives_none() -> None:
    assert DatasetVocabulary().to_document() == {
        "offsetColumn": "offset",
        "operationTypeColumn": "op",
        "systemTimeColumn": "system_time",
        "eventTimeColumn": "event_time",
    }
