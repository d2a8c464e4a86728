"""The Structured Streaming query of one source: Kafka → micro-batches of raw messages, handed over as Arrow."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pyarrow as pa

from streaming_jobs.spark_session import scratch_checkpoint

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from odf_common.catalog.records import PushSourceBinding

OnMessages = Callable[[pa.Table], None]

_COLUMNS = ("partition", "offset", "timestamp", "value", "headers")


class SourceQuery:
    """A running query. It starts at given positions and keeps nothing for the next start: the chain knows those."""

    def __init__(
        self,
        spark: SparkSession,
        bootstrap_servers: str,
        binding: PushSourceBinding,
        *,
        positions: Mapping[int, int],
        max_messages: int,
        on_messages: OnMessages,
    ) -> None:
        self.binding = binding
        self._on_messages = on_messages
        self._resources = ExitStack()
        checkpoint = self._resources.enter_context(scratch_checkpoint())
        name = f"{binding.dataset_id.multibase[-8:]}/{binding.source_name}"
        # Each source gets its share of the tasks, however much another one has to read.
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", name)
        messages = (
            spark.readStream.format("kafka")
            .options(**_options(bootstrap_servers, binding, positions, max_messages))
            .load()
            .select(*_COLUMNS)
        )
        self._query = (
            messages.writeStream.foreachBatch(self._hand_over)
            .option("checkpointLocation", str(checkpoint))
            .trigger(processingTime="0 seconds")
            .start()
        )

    @property
    def is_running(self) -> bool:
        """Whether the query still reads."""
        return self._query.isActive

    def failure(self) -> str | None:
        """Why the query stopped, None if it runs or was stopped on purpose."""
        error = self._query.exception()
        return None if error is None else str(error).strip()

    def stop(self) -> None:
        """Stop reading; a batch that is being handed over is given up."""
        try:
            self._query.stop()
        finally:
            self._resources.close()

    def _hand_over(self, messages: DataFrame, _batch_id: int) -> None:
        self._on_messages(messages.toArrow())


def _options(
    bootstrap_servers: str, binding: PushSourceBinding, positions: Mapping[int, int], max_messages: int
) -> dict[str, str]:
    options = {
        "kafka.bootstrap.servers": bootstrap_servers,
        "subscribe": binding.topic,
        "startingOffsets": json.dumps({binding.topic: {str(key): value for key, value in positions.items()}}),
        "failOnDataLoss": "true",
        "maxOffsetsPerTrigger": str(max_messages),
        "includeHeaders": "true",
        "kafka.isolation.level": "read_committed",
        # A fetch on a partition without news must not keep the batch waiting.
        "kafka.fetch.max.wait.ms": "5",
        "kafka.max.partition.fetch.bytes": str(8 << 20),
    }
    if binding.settings.batch_time_s > 0:
        # Wait until the batch is full or its time is over, counted from the last one: so a lone event goes at once.
        options["minOffsetsPerTrigger"] = str(max_messages)
        options["maxTriggerDelay"] = f"{round(binding.settings.batch_time_s * 1000)}ms"
    return options
