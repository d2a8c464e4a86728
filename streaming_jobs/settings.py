"""How the jobs run, from environment variables `ODF_SPARK_…`."""

from __future__ import annotations

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class SparkSettings(BaseSettings):
    """Spark's master and size."""

    model_config = SettingsConfigDict(env_prefix="ODF_SPARK_", frozen=True, extra="ignore")

    master: str = Field(default="local[*]", description="Where Spark runs: local[*], spark://host:7077, …")
    driver_memory: str = Field(default="1g", description="The heap of the JVM beside the job, as -Xmx has it.")
    log_level: str = Field(default="ERROR", description="What Spark itself logs.")
