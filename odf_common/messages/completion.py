"""Between the jobs and the committer: a finished micro-batch, and why one was not committed."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from odf_common.identity.did import DatasetId
from odf_common.messages.base import Message
from odf_common.metadata.events import AddData, SetDataSchema
from odf_common.timestamp import Timestamp


class Completion(Message):
    """A micro-batch that was staged and asks to be committed: topic `odf.completions`, key = dataset id.

    Its slice, if it has one, lies durably in the staging area under the name that `odf_common.staging` gives it. The
    block's position in the chain and `prev_checkpoint` are the committer's business; everything else of the event is
    final, as the slice's offsets and its system time were written with it.
    """

    version: Literal[1] = 1
    id: Annotated[str, Field(min_length=1, max_length=200)]
    dataset_id: DatasetId
    system_time: Timestamp
    """The system time of the blocks; the slice's column holds it in milliseconds."""
    set_data_schema: SetDataSchema | None = None
    """The first schema of the dataset, or one evolved by new columns, to be committed with the data."""
    add_data: AddData
    """`new_source_state` holds the positions that the batch covers (`KafkaOffsets`)."""


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
