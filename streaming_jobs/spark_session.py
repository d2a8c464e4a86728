"""The one Spark session of a job process."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from odf_common.jars import find_java, jars_in, retrieve_jars
from streaming_jobs.settings import SparkSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CHECKPOINT = "odf-checkpoint-"
_CHECKPOINT_FILES = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"

_SESSION_CONF = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",
    # A query's FROM may name tables only: not files, whatever the SQL of a manifest says.
    "spark.sql.runSQLOnFiles": "false",
    # Two tasks' worth: batches are small, and an empty shuffle partition costs as much as a full one.
    "spark.sql.shuffle.partitions": "2",
}
"""What every session of ours has, also those that queries get for themselves."""


def start_spark(
    settings: SparkSettings, *, app_name: str, on_progress: Callable[[str], None] = lambda _: None
) -> SparkSession:
    """Start Spark with the Kafka connector; retrieves its jars the first time, and says so to `on_progress`."""
    from pyspark.sql import SparkSession

    remove_stale_checkpoints()
    find_java()  # says what to do where there is none, which Spark does not
    jars = jars_in(retrieve_jars("spark-kafka", on_progress))
    conf = _SESSION_CONF | {
        "spark.jars": ",".join(map(str, jars)),
        "spark.driver.memory": settings.driver_memory,
        # Threads that collect in parallel and wake up often gain nothing for batches of this size, and hold memory.
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:MaxHeapFreeRatio=40",
        "spark.scheduler.mode": "FAIR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.streaming.checkpointFileManagerClass": _CHECKPOINT_FILES,
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
        # A batch of more bytes than this fails in Spark before it fills this process; the query then takes less.
        "spark.driver.maxResultSize": "512m",
        "spark.sql.warehouse.dir": tempfile.gettempdir() + "/odf-spark-warehouse",
    }
    builder = SparkSession.builder.master(settings.master).appName(app_name)
    for name, value in conf.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel(settings.log_level)
    return session


def own_session(spark: SparkSession) -> SparkSession:
    """A session with temporary views of its own on the same Spark."""
    session = spark.newSession()
    for name, value in _SESSION_CONF.items():
        session.conf.set(name, value)
    return session


@contextmanager
def scratch_checkpoint() -> Iterator[Path]:
    """A folder for a query's checkpoint, in memory where the machine has a folder for that.

    It lives as long as the query: where to go on after that is in the chain (docs/decisions/0012-ingest-job.md).
    """
    prefix = f"{_CHECKPOINT}{os.getpid()}-"
    with tempfile.TemporaryDirectory(prefix=prefix, dir=_scratch_folder(), ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def remove_stale_checkpoints(folder: Path | None = None) -> None:
    """Remove what processes left that were killed: it would fill the memory."""
    for left in (folder or _scratch_folder()).glob(f"{_CHECKPOINT}*"):
        named = re.fullmatch(rf"{_CHECKPOINT}(\d+)-.*", left.name)
        if named is not None and not _is_running(int(named[1])):
            shutil.rmtree(left, ignore_errors=True)


def _scratch_folder() -> Path:
    memory = Path("/dev/shm")  # noqa: S108 (a fresh folder is made below it)
    return memory if memory.is_dir() else Path(tempfile.gettempdir())


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # of another user
        return True
    return True
