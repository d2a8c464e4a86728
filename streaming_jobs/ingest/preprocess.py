"""The preprocess step: Spark SQL over the table `input`, in one or several steps (ODF 0.36, AddPushSource)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from odf_common.errors import OdfError
from odf_common.ingest.queries import INPUT, check_preprocess
from streaming_jobs.spark_session import own_session

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from odf_common.metadata.transforms import TransformSql

_SHOWN_CHARACTERS = 1_000


class PreprocessError(OdfError):
    """A query failed on the rows that it was given."""


def preprocess_of(spark: SparkSession, transform: TransformSql) -> Callable[[pa.Table], pa.Table]:
    """The function that applies a transform's queries to rows; it raises PreprocessError where Spark cannot."""
    *steps, last = check_preprocess(transform)
    # Views are of a session: sources that run beside each other must not see each other's `input`.
    session = own_session(spark)

    def run(rows: pa.Table) -> pa.Table:
        from pyspark.errors import PySparkException

        try:
            session.createDataFrame(rows).createOrReplaceTempView(INPUT)
            for step in steps:
                assert step.alias is not None
                session.sql(step.query).createOrReplaceTempView(step.alias)
            return session.sql(last.query).toArrow()
        except PySparkException as error:
            raise PreprocessError(f"the preprocess query failed: {str(error)[:_SHOWN_CHARACTERS]}") from error

    return run
