"""What the pipelines of one job process share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from odf_common.catalog.catalog import Catalog
    from odf_common.repository.repository import Repository
    from odf_common.uploads import UploadArea
    from streaming_jobs.ingest.messenger import Messenger
    from streaming_jobs.ingest.topics import PushTopics


@dataclass(frozen=True, slots=True, kw_only=True)
class JobContext:
    """Spark, Kafka, the repository and the folders of this machine."""

    spark: SparkSession
    bootstrap_servers: str
    repository: Repository
    topics: PushTopics
    messenger: Messenger
    staging: Path
    indexes: Path
    uploads: UploadArea
    max_payload_size: int
    """Bytes."""

    @property
    def catalog(self) -> Catalog:
        """The repository's catalog."""
        return self.repository.catalog
