"""The merge strategies of ODF: which rows, with which operations and in which order, a batch adds to a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odf_common.data.operation import OperationType
from odf_common.data.system_columns import OPERATION_TYPE
from odf_common.ingest.errors import BadInputSchemaError
from odf_common.ingest.merge.arrays import as_mask, one_array
from odf_common.ingest.merge.check import check_operation_type
from odf_common.ingest.merge.compare import changed
from odf_common.ingest.merge.keys import merge_keys
from odf_common.ingest.merge.latest import aligned, last_places, places_in
from odf_common.ingest.merge.merged import (
    KeyIndex,
    LatestRows,
    Mask,
    Merged,
    MergeState,
    Places,
    SnapshotRefusedError,
)
from odf_common.ingest.merge.order import key_order, time_order
from odf_common.ingest.messages import Code, Problem
from odf_common.metadata.fragments import DatasetVocabulary
from odf_common.metadata.sources import (
    MergeStrategy,
    MergeStrategyAppend,
    MergeStrategyChangelogStream,
    MergeStrategyLedger,
    MergeStrategySnapshot,
    MergeStrategyUpsertStream,
)

_SHOWN_CHARACTERS = 80


def merge(strategy: MergeStrategy, rows: pa.Table, state: MergeState, *, vocabulary: DatasetVocabulary) -> Merged:
    """What a batch adds. `rows` have their data columns in final types, an event time column among them.

    For ChangelogStream and UpsertStream they may have the operation column as well. SnapshotRefusedError when a
    snapshot contradicts itself.
    """
    rows = rows.combine_chunks()
    event_time = vocabulary.event_time_column
    match strategy:
        case MergeStrategyAppend():
            return _appended(rows, np.arange(rows.num_rows), event_time)
        case MergeStrategyLedger():
            new = _unknown(merge_keys(rows, strategy.primary_key), cast(KeyIndex, _given(state, strategy)))
            return _appended(rows, np.flatnonzero(new), event_time)
        case MergeStrategySnapshot():
            return _snapshot(strategy, rows, cast(pa.Table, _given(state, strategy)), event_time)
        case MergeStrategyChangelogStream():
            return _changelog(strategy, rows, vocabulary)
        case MergeStrategyUpsertStream():
            return _upsert(strategy, rows, cast(LatestRows, _given(state, strategy)), vocabulary)


def _snapshot_keys(rows: pa.Table, primary_key: Sequence[str]) -> pa.Array:
    """The keys of a whole snapshot; SnapshotRefusedError unless each row has one of its own."""
    keys = merge_keys(rows, primary_key)
    if keys.null_count:
        raise SnapshotRefusedError(_null_keys(rows, as_mask(keys.is_null()), primary_key))
    codes = keys.dictionary_encode()
    if len(codes.dictionary) < len(keys):
        raise SnapshotRefusedError(_duplicate_keys(rows, codes.indices.to_numpy(), primary_key))
    return keys


def null_key_problem(rows: pa.Table, place: int, primary_key: Sequence[str]) -> Problem:
    """What is wrong with a row that has no key."""
    name = next(name for name in primary_key if not rows[name][place].is_valid)
    return Problem(Code.NULL_KEY, f"column {name!r} of the primary key is null")


def _given(state: MergeState, strategy: MergeStrategy) -> MergeState:
    if state is None:
        raise ValueError(f"merge strategy {strategy.kind} needs the state of earlier rows")
    return state


def _appended(rows: pa.Table, places: Places, event_time: str) -> Merged:
    """These rows, new ones all of them, in the order of their event times."""
    duplicates = rows.num_rows - len(places)
    kept = _taken(rows, places)
    order = time_order(kept[event_time])
    return Merged(
        rows=_taken(kept, order),
        op=_operations(np.full(len(places), OperationType.APPEND, np.int32)),
        source_row=places[order],
        duplicates=duplicates,
    )


def _unknown(keys: pa.Array, index: KeyIndex) -> Mask:
    """Whether rows have a key that no earlier row has; a null anywhere in a key makes it unlike any other."""
    known = np.zeros(len(keys), np.bool_)
    known[as_mask(keys.is_valid())] = np.asarray(index.contains(keys.drop_null().to_pylist()), np.bool_)
    return ~known


def _changelog(strategy: MergeStrategyChangelogStream, rows: pa.Table, vocabulary: DatasetVocabulary) -> Merged:
    """All rows as they say themselves."""
    rows, operations = _without_operations(rows, vocabulary, missing=None)
    refused, good = _unmergeable(rows, merge_keys(rows, strategy.primary_key), operations, strategy.primary_key)
    rows, kinds = _taken(rows, good), operations.take(pa.array(good))
    name = vocabulary.operation_type_column
    order = key_order(rows.append_column(name, kinds), [*strategy.primary_key, name])
    return Merged(
        rows=_taken(rows, order),
        op=kinds.take(pa.array(order)).cast(OPERATION_TYPE),
        source_row=good[order],
        refused=refused,
    )


def _upsert(
    strategy: MergeStrategyUpsertStream, rows: pa.Table, state: LatestRows, vocabulary: DatasetVocabulary
) -> Merged:
    """Of each key the last row counts: a retraction takes the known row away, anything else replaces it."""
    rows, operations = _without_operations(rows, vocabulary, missing=OperationType.APPEND)
    keys = merge_keys(rows, strategy.primary_key)
    refused, good = _unmergeable(rows, keys, operations, strategy.primary_key)
    last = good[last_places(keys.take(pa.array(good)))]
    found, known = state.latest(keys.take(pa.array(last)), _nullable(rows.schema))
    deletes = operations.to_numpy()[last] == OperationType.RETRACT
    places = np.cumsum(found) - 1  # of a row among the known ones, where there is one
    upserts = np.flatnonzero(found & ~deletes)
    others = [name for name in rows.column_names if name not in strategy.primary_key]
    differs = changed(
        _taken(known, places[upserts]),
        _taken(rows, last[upserts]),
        others,
        event_time=vocabulary.event_time_column,
    )
    corrected = upserts[differs]
    changes = _Changes(
        appended=last[~found & ~deletes],
        retracted=places[found & deletes],
        corrected_from=places[corrected],
        corrected_to=last[corrected],
    )
    merged_rows, op, source_row = changes.in_order(known, rows, strategy.primary_key)
    taken = len(changes.appended) + len(changes.retracted) + len(corrected)
    return Merged(
        rows=merged_rows,
        op=op,
        source_row=source_row,
        duplicates=len(good) - taken,
        derived=len(corrected),
        refused=refused,
    )


def _snapshot(strategy: MergeStrategySnapshot, rows: pa.Table, state: pa.Table, event_time: str) -> Merged:
    """What has to happen to the state for it to become the rows."""
    keys = _snapshot_keys(rows, strategy.primary_key)
    state = aligned(state.combine_chunks(), rows.schema)
    places = places_in(keys, merge_keys(state, strategy.primary_key))
    known = np.flatnonzero(places >= 0)
    compared = strategy.compare_columns or [name for name in rows.column_names if name not in strategy.primary_key]
    missing = [name for name in compared if name not in rows.column_names]
    if missing:
        raise BadInputSchemaError(f"compareColumns has the column {missing[0]!r}, the rows have none of that name")
    before, after = (table.select(list(compared)) for table in (state, rows))
    differs = changed(_taken(before, places[known]), _taken(after, known), compared, event_time=event_time)
    gone = np.ones(state.num_rows, np.bool_)
    gone[places[known]] = False
    changes = _Changes(
        appended=np.flatnonzero(places < 0),
        retracted=np.flatnonzero(gone),
        corrected_from=places[known[differs]],
        corrected_to=known[differs],
    )
    merged_rows, op, source_row = changes.in_order(state, rows, strategy.primary_key)
    return Merged(
        rows=merged_rows,
        op=op,
        source_row=source_row,
        duplicates=len(known) - len(changes.corrected_to),
        derived=len(changes.retracted) + len(changes.corrected_from),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Changes:
    """Places of rows: retracted and corrected-from ones in the state, the others in the input. Each has its own key."""

    appended: Places
    retracted: Places
    corrected_from: Places
    corrected_to: Places

    def in_order(
        self, state: pa.Table, rows: pa.Table, primary_key: Sequence[str]
    ) -> tuple[pa.Table, pa.Array, Places]:
        """The rows by key, then operation, with operations and places in the input (-1 for those of the state).

        A key has one change, so keys are sorted once; a correction then becomes two rows.
        """
        old = np.concatenate([self.retracted, self.corrected_from])
        new = np.concatenate([self.appended, self.corrected_to])
        both = pa.concat_tables([_taken(state, old), _taken(rows, new).cast(state.schema)]).combine_chunks()
        retracted, appended, corrected = len(self.retracted), len(self.appended), len(self.corrected_to)
        first = np.concatenate([np.arange(len(old)), len(old) + np.arange(appended)])
        second = np.full(len(first), -1, np.int64)
        second[retracted : len(old)] = len(old) + appended + np.arange(corrected)
        op = np.repeat(
            np.array([OperationType.RETRACT, OperationType.CORRECT_FROM, OperationType.APPEND], np.int32),
            [retracted, corrected, appended],
        )
        order = key_order(_taken(both.select(list(primary_key)), first), primary_key)
        first, second, op = first[order], second[order], op[order]
        places, ends = np.repeat(first, 1 + (second >= 0)), np.cumsum(1 + (second >= 0)) - 1
        op = np.repeat(op, 1 + (second >= 0))
        pairs = second >= 0
        places[ends[pairs]] = second[pairs]
        op[ends[pairs]] = OperationType.CORRECT_TO
        source = np.concatenate([np.full(len(old), -1, np.int64), new])
        return _taken(both, places), _operations(op), source[places]


def _without_operations(
    rows: pa.Table, vocabulary: DatasetVocabulary, *, missing: OperationType | None
) -> tuple[pa.Table, pa.Array]:
    """The rows without their operations, and those, as int64; `missing` stands for what is not there."""
    name = vocabulary.operation_type_column
    if name not in rows.column_names:
        found = pa.nulls(rows.num_rows, pa.int64())
        return rows, found if missing is None else pc.fill_null(found, int(missing))
    check_operation_type(name, rows.schema.field(name).type)
    found = one_array(rows[name])
    if pa.types.is_uint64(found.type):  # what is too large for the type is too large for an operation
        found = pc.min_element_wise(found, pa.scalar(len(OperationType), pa.uint64()), skip_nulls=False)
    found = found.cast(pa.int64())
    return rows.drop_columns([name]), found if missing is None else pc.fill_null(found, int(missing))


def _unmergeable(
    rows: pa.Table, keys: pa.Array, operations: pa.Array, primary_key: Sequence[str]
) -> tuple[list[tuple[int, Problem]], Places]:
    """The rows without key or meaningful operation, with what is wrong with each; and the places of the others."""
    valid = as_mask(keys.is_valid())
    fine = as_mask(pc.fill_null(pc.is_in(operations, value_set=pa.array([*OperationType], pa.int64())), False))
    refused = [
        (place, null_key_problem(rows, place, primary_key) if not valid[place] else _bad_operation(operations, place))
        for place in np.flatnonzero(~(valid & fine)).tolist()
    ]
    return refused, np.flatnonzero(valid & fine)


def _bad_operation(operations: pa.Array, place: int) -> Problem:
    value = operations[place].as_py()
    shown = "null" if value is None else value
    return Problem(
        Code.BAD_OPERATION,
        f"the operation is {shown}; it must be 0 (append), 1 (retract), 2 (correct-from) or 3 (correct-to)",
    )


def _null_keys(rows: pa.Table, without: Mask, primary_key: Sequence[str]) -> Problem:
    places = np.flatnonzero(without)
    problem = null_key_problem(rows, int(places[0]), primary_key)
    others = f" (and {len(places) - 1} more records have no key)" if len(places) > 1 else ""
    return Problem(problem.code, f"record {places[0] + 1} of the snapshot: {problem.reason}{others}")


def _duplicate_keys(rows: pa.Table, codes: Places, primary_key: Sequence[str]) -> Problem:
    seen, first = np.unique(codes, return_index=True)
    again = np.setdiff1d(np.arange(len(codes)), first)
    place = int(again[0])
    before = int(first[np.searchsorted(seen, codes[place])])
    key = ", ".join(f"{name} = {_shown(rows[name][place].as_py())}" for name in primary_key)
    others = f"; {len(again) - 1} more records repeat a key" if len(again) > 1 else ""
    return Problem(
        Code.DUPLICATE_KEYS,
        f"records {before + 1} and {place + 1} of the snapshot have the same key, {key}{others}: "
        "a snapshot has one record for each key",
    )


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"


def _operations(values: np.typing.NDArray[np.int32]) -> pa.Array:
    return pa.array(values, OPERATION_TYPE)


def _taken(rows: pa.Table, places: Places) -> pa.Table:
    """Rows at these places; the very same if that is all of them in their order."""
    if len(places) == rows.num_rows and (places == np.arange(len(places))).all():
        return rows
    return rows.take(pa.array(places, pa.int64()))


def _nullable(schema: pa.Schema) -> pa.Schema:
    return pa.schema([column.with_nullable(True) for column in schema])
