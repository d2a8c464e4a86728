"""The slices of a chain that a state has not read yet, and their rows as the dataset names its columns today."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from odf_common.data.slices import read_slice, slice_schema
from odf_common.metadata.events import AddData, SetVocab
from odf_common.metadata.fragments import DatasetVocabulary, DataSlice
from odf_common.storage.layout import ObjectKind
from streaming_jobs.ingest.state.store import Mark

if TYPE_CHECKING:
    from odf_common.chain.metadata_chain import MetadataChain
    from odf_common.storage.ports import ObjectStore


@dataclass(frozen=True, slots=True)
class Unread:
    """A slice, and how its system columns were named when it was written."""

    slice: DataSlice
    vocabulary: DatasetVocabulary

    @property
    def hash(self) -> str:
        """Of its file."""
        return str(self.slice.physical_hash)

    @property
    def rows(self) -> int:
        """How many it has."""
        return self.slice.offset_interval.end - self.slice.offset_interval.start + 1

    @property
    def next_offset(self) -> int:
        """The one behind its last row."""
        return self.slice.offset_interval.end + 1


def unread_slices(chain: MetadataChain, mark: Mark, vocabulary: DatasetVocabulary) -> list[Unread] | None:
    """The slices after a mark, oldest first; None if the mark is not of this chain."""
    unread: list[Unread] = []
    settled = 0  # slices before this place have the vocabulary that they were written with
    sets_vocabulary = is_reached = False
    for encoded in chain.blocks():
        event = encoded.block.event
        if isinstance(event, SetVocab):
            if sets_vocabulary:
                unread[settled:] = [replace(each, vocabulary=_vocabulary(event)) for each in unread[settled:]]
            settled, sets_vocabulary = len(unread), True
        if isinstance(event, AddData) and event.new_data is not None and not is_reached:
            if event.new_data.offset_interval.end < mark.next_offset:
                if str(event.new_data.physical_hash) != mark.last_slice:
                    return None
                is_reached = True
            else:
                unread.append(Unread(event.new_data, vocabulary))
        if is_reached and (not sets_vocabulary or settled == len(unread)):
            break
    else:
        if sets_vocabulary:
            unread[settled:] = [replace(each, vocabulary=DatasetVocabulary()) for each in unread[settled:]]
    if not is_reached and mark.next_offset:
        return None
    if mark.reading is not None and not (unread and unread[-1].hash == mark.reading):
        return None
    return unread[::-1]


def read_rows(
    objects: ObjectStore, unread: Unread, vocabulary: DatasetVocabulary, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of a slice, in the names of `vocabulary`; of `columns`, those that it has."""
    names = _names(unread.vocabulary, vocabulary)
    with objects.open_file(ObjectKind.DATA, unread.slice.physical_hash) as file:
        found = [column.name for column in slice_schema(file).fields]
        # A column that had the name already keeps it.
        names = {old: new for old, new in names.items() if old in found and new not in found}
        wanted = None if columns is None else [name for name in found if names.get(name, name) in columns]
        file.seek(0)
        for batch in read_slice(file, columns=wanted, vocabulary=unread.vocabulary):
            yield batch.rename_columns([names.get(name, name) for name in batch.schema.names]) if names else batch


def _vocabulary(event: SetVocab) -> DatasetVocabulary:
    return DatasetVocabulary(**event.model_dump(exclude={"kind"}, exclude_none=True))


def _names(old: DatasetVocabulary, new: DatasetVocabulary) -> dict[str, str]:
    """Old names of system columns → new ones, where they differ."""
    before, after = old.model_dump(exclude={"kind"}), new.model_dump(exclude={"kind"})
    return {before[part]: after[part] for part in before if before[part] != after[part]}
