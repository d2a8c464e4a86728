"""Between the jobs and the committer: a finished micro-batch, and why one was not committed."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from odf_common.identity.did import DatasetId
from odf_common.messages.base import Message
from odf_common.metadata.events import AddData, SetDataSchema
from odf_common.metadata.fragments import DataSlice
from odf_common.timestamp import Timestamp

MAX_EVENTS = 10_000

BatchEvent = Annotated[SetDataSchema | AddData, Field(discriminator="kind")]


class Completion(Message):
    """A micro-batch that was staged and asks to be committed: topic `odf.completions`, key = dataset id.

    Its slices lie durably in the staging area under the names that `odf_common.staging` gives them. The blocks'
    positions in the chain and `prev_checkpoint` are the committer's business; everything else of the events is final,
    as the slices' offsets and their system time were written with them. All of it becomes visible at once.
    """

    version: Literal[1] = 1
    id: Annotated[str, Field(min_length=1, max_length=200)]
    dataset_id: DatasetId
    system_time: Timestamp
    """The system time of the blocks; the slice's column holds it in milliseconds."""
    events: Annotated[tuple[BatchEvent, ...], Field(min_length=1, max_length=MAX_EVENTS)]
    """In their order; the last one is an AddData. A SetDataSchema is the dataset's first, or has new columns.

    `new_source_state` of each AddData are `KafkaOffsets`. Where a large payload makes several slices, all but the last
    cover nothing yet: `next` is where the batch starts.
    """

    @model_validator(mode="after")
    def _end_with_data(self) -> Self:
        if not isinstance(self.events[-1], AddData):
            raise ValueError("the last event must be an AddData")
        return self

    @property
    def add_data(self) -> AddData:
        """The last event, which says what the batch covers."""
        last = self.events[-1]
        assert isinstance(last, AddData)
        return last

    @property
    def slices(self) -> tuple[DataSlice, ...]:
        """All slices, in the order of their records."""
        added = (event.new_data for event in self.events if isinstance(event, AddData))
        return tuple(data for data in added if data is not None)


class RejectionReason(StrEnum):
    """Why a completion was not committed."""

    STALE = "Stale"  # the chain went on from elsewhere: build the batch again on the chain as it is
    SOURCE_INACTIVE = "SourceInactive"  # the source was disabled or does not exist
    REFUSED = "Refused"  # a rule of the chain forbids it; the same batch will never be accepted
    MISSING_SLICE = "MissingSlice"  # the staged slice is gone or not of the promised size
    NO_DATASET = "NoDataset"  # the dataset does not exist (any more)


class Rejection(Message):
    """The answer to a completion that was not committed: topic `odf.rejections`, key = dataset id."""

    version: Literal[1] = 1
    completion_id: str
    dataset_id: DatasetId
    source_name: str | None = None
    reason: RejectionReason
    message: str
