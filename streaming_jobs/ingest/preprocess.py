"""The preprocess step: Spark SQL over the table `input`, in one or several steps (ODF 0.36, AddPushSource)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from odf_common.ingest.queries import check_preprocess
from streaming_jobs.spark_session import own_session

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from odf_common.metadata.transforms import Transform

_INPUT = "input"


def preprocess_of(spark: SparkSession, transform: Transform) -> Callable[[pa.Table], pa.Table]:
    """The function that applies a transform's queries to the rows of a batch.

    What Spark says against the rows of a batch is raised as it is: the caller finds out which rows it is about.
    """
    queries = check_preprocess(transform)
    # Views are of a session: sources that run beside each other must not see each other's `input`.
    session = own_session(spark)

    def run(rows: pa.Table) -> pa.Table:
        session.createDataFrame(rows).createOrReplaceTempView(_INPUT)
        *steps, last = queries
        for step in steps:
            session.sql(step.query).createOrReplaceTempView(step.alias or "")
        return session.sql(last.query).toArrow()

    return run
