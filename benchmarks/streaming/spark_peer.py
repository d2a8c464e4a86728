"""PySpark the plain way, as a process of its own: topic → from_json → Parquet or Delta.

Imports nothing of this project, as it also runs where only PySpark and Delta are installed. What to do comes as JSON
in the first argument; each line that it prints is JSON.
"""

from __future__ import annotations

import json
import sys
import time
from datetime import datetime
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, from_json

_LOOK_EVERY_S = 0.5  # seldom: it should not slow down what it looks at

SCHEMA = "event_time TIMESTAMP, id BIGINT, device STRING, value DOUBLE, ok BOOLEAN"


def session(task: dict[str, Any]) -> SparkSession:
    """Spark with nothing set but what the task needs."""
    conf = {
        "spark.jars": ",".join(task["jars"]),
        "spark.driver.memory": "1g",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # So that the positions of each batch can be looked up afterwards.
        "spark.sql.streaming.minBatchesToRetain": "100000",
    }
    if task["format"] == "delta":
        conf["spark.sql.extensions"] = "io.delta.sql.DeltaSparkSessionExtension"
        conf["spark.sql.catalog.spark_catalog"] = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    builder = SparkSession.builder.master("local[2]").appName("peer")
    for name, value in conf.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def start(spark: SparkSession, task: dict[str, Any]) -> Any:
    """The query, as fast as it goes."""
    options = {"kafka.bootstrap.servers": task["servers"], "subscribe": task["topic"], "startingOffsets": "earliest"}
    if task.get("max_offsets"):
        options["maxOffsetsPerTrigger"] = str(task["max_offsets"])
    events = (
        spark.readStream.format("kafka")
        .options(**options)
        .load()
        .select(from_json(col("value").cast("string"), SCHEMA).alias("event"))
        .select("event.*")
    )
    return (
        events.writeStream.format(task["format"])
        .option("path", task["out"])
        .option("checkpointLocation", task["checkpoint"])
        .start()
    )


def batches(query: Any) -> list[tuple[float, int]]:
    """The end of each batch in seconds of the wall clock, and its records."""
    found = []
    for progress in (json.loads(each.json) for each in query.recentProgress):
        if progress["numInputRows"]:
            began = datetime.fromisoformat(progress["timestamp"].replace("Z", "+00:00")).timestamp()
            found.append((began + progress["batchDuration"] / 1000, progress["numInputRows"]))
    return found


def tell(**message: Any) -> None:
    """One line."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Run until so many records went through, then, if asked to, until standard input ends."""
    task = json.loads(sys.argv[1])
    spark = session(task)
    query = start(spark, task)
    while not query.lastProgress or sum(rows for _, rows in batches(query)) < task["records"]:
        if query.exception() is not None:
            raise SystemExit(str(query.exception()))
        time.sleep(_LOOK_EVERY_S)
    tell(batches=batches(query), versions={"pyspark": spark.version})
    if task.get("until_told"):
        sys.stdin.read()
    query.stop()
    spark.stop()


if __name__ == "__main__":
    main()
