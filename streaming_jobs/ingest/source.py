"""One source as the job runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from odf_common.catalog.records import PushSourceBinding
from odf_common.errors import MalformedBytesError
from odf_common.ingest.source import SourcePlan
from odf_common.messages.kafka_offsets import KafkaOffsets
from odf_common.timestamp import Timestamp

if TYPE_CHECKING:
    from odf_common.identity.multihash import Multihash
    from odf_common.metadata.fragments import DatasetVocabulary


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedBlock:
    """A block that covers positions of a source."""

    source_name: str
    next: Mapping[int, int]
    system_time: Timestamp
    block_hash: Multihash
    next_offset: int | None
    """Behind its last row; None if it has none."""
    watermark: Timestamp | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What is known of a source when its query starts."""

    dataset: str
    """The dataset's alias, for people."""
    binding: PushSourceBinding
    topic_id: str
    plan: SourcePlan
    preprocess: Callable[[pa.Table], pa.Table] | None
    read_before: KafkaOffsets | None
    """What the chain says of it; None if nothing was read yet."""

    @property
    def name(self) -> str:
        """The source's name in its dataset."""
        return self.binding.source_name

    @property
    def vocabulary(self) -> DatasetVocabulary:
        """The names of the dataset's system columns."""
        return self.plan.vocabulary

    def watermark(self, max_event_time: Timestamp | None) -> Timestamp | None:
        """The watermark that rows with this largest event time stand for; the chain keeps the largest one ever."""
        if max_event_time is None:
            return None
        try:
            return max_event_time.plus_seconds(-self.binding.settings.watermark_delay_s)
        except MalformedBytesError:  # before the year 1
            return None

    def with_schema(self, data_schema: pa.Schema) -> Source:
        """The source after the dataset got new columns."""
        return replace(self, plan=self.plan.evolved(data_schema))
