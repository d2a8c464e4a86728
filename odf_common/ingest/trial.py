"""A source tried out: what payloads, one after another, would add to a dataset, without broker, chain or storage.

The steps are those of the ingest job; only the state that rows are compared with is a table in memory.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from typing import BinaryIO

import pyarrow as pa

from odf_common.chain.state import ChainState
from odf_common.data.arrow_types import to_arrow
from odf_common.errors import MalformedBytesError, NotFoundError, OdfError
from odf_common.ingest.batch import Batch, Preprocess
from odf_common.ingest.cutting import Piece, UncuttableFormatError, cut_counted
from odf_common.ingest.errors import BadInputSchemaError, IncompatibleSchemaError, UnsupportedSourceError
from odf_common.ingest.media_types import UnsupportedMediaTypeError, step_for
from odf_common.ingest.merge import RefusedRowsError
from odf_common.ingest.messages import KAFKA_TIME, MESSAGES, Code, Problem, Unreadable
from odf_common.ingest.payload_file import read_payload
from odf_common.ingest.read.records import Records
from odf_common.ingest.source import SourcePlan
from odf_common.ingest.trial_dataset import TrialDataset
from odf_common.messages.payload import MAX_INLINE_SIZE
from odf_common.metadata.events import AddPushSource
from odf_common.metadata.sources import MergeStrategySnapshot, ReadStep
from odf_common.timestamp import Timestamp

Read = Callable[[SourcePlan], Iterable[Records]]
NumberOf = Callable[[Unreadable], int | None]
"""The place in its payload, from 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """What would become a dead letter: a record, or the payload as a whole."""

    code: str
    reason: str
    record: int | None = None
    """The place in the payload, from 1; None for all of it, or for a part that cannot be told apart."""
    data: bytes = b""


@dataclass(slots=True)
class Taken:
    """What became of one payload."""

    rows: list[pa.Table] = field(default_factory=list)
    """With all columns, as slices hold them."""
    schema: pa.Schema | None = None
    """The dataset's columns, where the payload brought them or new ones."""
    letters: list[Letter] = field(default_factory=list)
    records: int = 0
    duplicates: int = 0
    derived: int = 0
    late: int = 0
    watermark: Timestamp | None = None
    """The dataset's behind the payload."""

    @property
    def count(self) -> int:
        """Of the rows."""
        return sum(table.num_rows for table in self.rows)

    def add(self, batch: Batch, number: NumberOf) -> None:
        """Count a batch in."""
        if batch.set_data_schema is not None:
            self.schema = batch.data_schema
        if batch.rows is not None:
            self.rows.append(batch.rows)
        self.letters += [
            Letter(code=each.code, reason=each.reason, record=number(each), data=each.data) for each in batch.unreadable
        ]
        self.records += batch.records
        self.duplicates += batch.duplicates
        self.derived += batch.derived
        self.late += batch.late

    def refuse(self, problem: Problem) -> None:
        """Make one dead letter of the payload, or of a part of it."""
        self.letters.append(Letter(code=problem.code, reason=problem.reason))
        self.records += 1


class Trial:
    """A dataset in memory with one source, at its beginning."""

    def __init__(self, chain: ChainState, source: AddPushSource, *, preprocess: Preprocess | None = None) -> None:
        """UnsupportedSourceError or BadInputSchemaError for a source that cannot be run.

        `preprocess` is given exactly where the source has a preprocess step.
        """
        schema = None if chain.data_schema is None else to_arrow(chain.data_schema)
        self._dataset = TrialDataset(plan=SourcePlan.of(source, chain.vocabulary, schema, others=chain.sources))
        self._preprocess = None if preprocess is None else _refusing(preprocess)

    @property
    def schema(self) -> pa.Schema | None:
        """The dataset's columns, as far as they are known."""
        return self._dataset.plan.data_schema

    @property
    def watermark(self) -> Timestamp | None:
        """The dataset's so far."""
        return self._dataset.watermark

    def take(
        self, file: BinaryIO, *, event_time: Timestamp, system_time: Timestamp, media_type: str | None = None
    ) -> Taken:
        """Ingest one payload, in a call of its own with the source event time `event_time`. The file is seekable."""
        taken = Taken()
        try:
            step = step_for(media_type, self._dataset.plan.source.read)
        except UnsupportedMediaTypeError as error:
            taken.refuse(Problem(Code.WRONG_MEDIA_TYPE, str(error)))
        else:
            self._take(file, step, event_time.truncated_to_ms(), system_time.truncated_to_ms(), taken)
        taken.watermark = self._dataset.watermark
        return taken

    def _take(
        self, file: BinaryIO, step: ReadStep, event_time: Timestamp, system_time: Timestamp, taken: Taken
    ) -> None:
        size = file.seek(0, io.SEEK_END)
        file.seek(0)
        if size > MAX_INLINE_SIZE or not _is_cuttable(step):
            message = _messages([b""], event_time)
            self._settle(lambda plan: self._parts(plan, step, file, message), system_time, taken, _place)
            return
        pieces = self._pieces(step, file.read())
        first = [0, *accumulate(piece.records for piece in pieces)]

        def number(letter: Unreadable) -> int | None:
            return None if letter.index is None else first[letter.offset] + letter.index + 1

        self._take_messages(step, _messages([piece.data for piece in pieces], event_time), system_time, taken, number)

    def _pieces(self, step: ReadStep, payload: bytes) -> list[Piece]:
        """The messages that a payload travels in; one that cannot be cut goes as it is, for the reader to judge."""
        if isinstance(self._dataset.plan.source.merge, MergeStrategySnapshot):
            return [Piece(payload, 0)]
        try:
            return list(cut_counted(step, [payload]))
        except MalformedBytesError:
            return [Piece(payload, 0)]

    def _parts(self, plan: SourcePlan, step: ReadStep, file: BinaryIO, message: pa.Table) -> Iterable[Records]:
        """The records of a payload that is too large for messages, as the ingest job makes batches of them."""
        file.seek(0)
        parts = read_payload(plan.reader_of(step), step, file, message)
        is_whole = plan.has_preprocess or isinstance(plan.source.merge, MergeStrategySnapshot)
        return _together(parts) if is_whole else parts

    def _take_messages(
        self, step: ReadStep, messages: pa.Table, system_time: Timestamp, taken: Taken, number: NumberOf
    ) -> None:
        """Messages go through where others beside them are refused."""
        refused = [] if self._is_fine(step, messages, system_time) else self._refused(step, messages, system_time)
        fine = messages.take(pa.array([row for row in range(messages.num_rows) if row not in refused], pa.int64()))
        for part in (fine, *(messages.slice(row, 1) for row in refused)):
            if part.num_rows or not refused:
                self._settle(partial(_read_messages, step, part), system_time, taken, number)

    def _is_fine(self, step: ReadStep, messages: pa.Table, system_time: Timestamp) -> bool:
        if messages.num_rows == 1:
            return True  # what is wrong is told where it is settled
        try:
            self._made(partial(_read_messages, step, messages), system_time)
        except OdfError:
            return False
        return True

    def _refused(self, step: ReadStep, messages: pa.Table, system_time: Timestamp) -> list[int]:
        """The messages that are refused each on its own."""
        refused = []
        for row in range(messages.num_rows):
            try:
                self._made(partial(_read_messages, step, messages.slice(row, 1)), system_time)
            except OdfError:
                refused.append(row)
        return refused

    def _settle(self, read: Read, system_time: Timestamp, taken: Taken, number: NumberOf) -> None:
        """Take all of it, or make one dead letter of it."""
        try:
            self._dataset, batches = self._made(read, system_time)
        except OdfError as error:
            taken.refuse(_problem_of(error))
            return
        for batch in batches:
            taken.add(batch, number)

    def _made(self, read: Read, system_time: Timestamp) -> tuple[TrialDataset, list[Batch]]:
        """The dataset with all parts, and their batches."""
        dataset, batches = self._dataset, []
        for records in read(dataset.plan):
            batch = dataset.batch(
                records,
                system_time=system_time,
                watermark=self._dataset.watermark,
                preprocess=self._preprocess,
            )
            dataset = dataset.after(batch)
            batches.append(batch)
        return dataset, batches


def source_of(chain: ChainState, name: str | None) -> AddPushSource:
    """The source of that name, or the only one; NotFoundError says which there are."""
    names = ", ".join(source.source_name for source in chain.sources)
    if not names:
        raise NotFoundError("the manifest has no source: neither AddPushSource nor SetPollingSource")
    if name is None and len(chain.sources) == 1:
        return chain.sources[0]
    if name is None:
        raise NotFoundError(f"the manifest has several push sources, name one with --source: {names}")
    found = chain.source(name)
    if found is None:
        raise NotFoundError(f"the manifest has no source {name!r}; it has {names}")
    return found


def _problem_of(error: OdfError) -> Problem:
    """As the ingest job tells it."""
    problem = getattr(error, "problem", None)
    if isinstance(problem, Problem):
        return problem
    if isinstance(error, IncompatibleSchemaError | BadInputSchemaError):
        return Problem(error.code, str(error))
    is_format = isinstance(error, UnsupportedSourceError | UnsupportedMediaTypeError)
    return Problem(Code.WRONG_MEDIA_TYPE if is_format else Code.INVALID_PAYLOAD, str(error))


def _place(letter: Unreadable) -> int | None:
    return None if letter.index is None else letter.index + 1


def _refusing(preprocess: Preprocess) -> Preprocess:
    """Queries whose failure is told like that of other rows."""

    def run(rows: pa.Table) -> pa.Table:
        try:
            return preprocess(rows)
        except OdfError as error:
            raise RefusedRowsError(Problem(Code.PREPROCESS_FAILED, str(error))) from error

    return run


def _read_messages(step: ReadStep, messages: pa.Table, plan: SourcePlan) -> list[Records]:
    return [plan.reader_of(step).read(messages)]


def _together(parts: Iterable[Records]) -> Iterator[Records]:
    """All records at once."""
    found = list(parts)
    if found:
        yield Records.joined(found)


def _is_cuttable(step: ReadStep) -> bool:
    try:
        cut_counted(step, ())
    except UncuttableFormatError:
        return False
    return True


def _messages(values: Sequence[bytes], event_time: Timestamp) -> pa.Table:
    count = len(values)
    arrays = [
        pa.array([0] * count, pa.int32()),
        pa.array(range(count), pa.int64()),
        pa.array([event_time.ns // 1000] * count, pa.int64()).cast(KAFKA_TIME),
        pa.array(values, pa.binary()),
        pa.nulls(count, MESSAGES.field("headers").type),
    ]
    return pa.Table.from_arrays(arrays, schema=MESSAGES)
