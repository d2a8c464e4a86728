"""What polling is allowed to do and for how long, from environment variables `ODF_POLLER_…`."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class PollerSettings(BaseSettings):
    """Rights, which are all off, and bounds. The process that adds a source should have the same as the poller."""

    model_config = SettingsConfigDict(env_prefix="ODF_POLLER_", frozen=True, extra="ignore")

    env_allow: str = Field(
        default="", description="Names of environment variables that sources may use, with commas between them."
    )
    allow_pipe: bool = Field(default=False, description="Whether sources may run commands (prepare step Pipe).")
    allow_private_redirects: bool = Field(
        default=False, description="Whether a redirect may lead to an address of a private network."
    )
    files_root: Path | None = Field(
        default=None, description="The folder below which files must lie. Default: anywhere, by absolute paths."
    )
    container_engine: str | None = Field(
        default=None, description="The program that runs containers. Default: podman or docker, if one answers."
    )
    concurrency: int = Field(default=4, ge=1, le=64, description="Datasets that are polled at the same time.")
    connect_timeout_s: float = Field(default=10.0, gt=0, description="How long a connection may take to come about.")
    read_timeout_s: float = Field(default=30.0, gt=0, description="How long the other side may be silent.")
    fetch_timeout_s: float = Field(default=900.0, gt=0, description="How long a whole fetch may take.")
    prepare_timeout_s: float = Field(default=900.0, gt=0, description="How long a command of a Pipe may take.")
    max_size: int = Field(default=4 << 30, ge=1, description="Bytes that may be fetched, and come out of preparing.")
    max_ratio: float = Field(
        default=300.0, gt=1, description="How many times larger than its archive something unpacked may be."
    )
    container_batch_size: int = Field(default=10_000, ge=1, description="The records a container is asked for at most.")
    mqtt_idle_s: float = Field(default=1.0, gt=0, description="The silence after which an MQTT poll ends.")
    mqtt_max_messages: int = Field(default=100_000, ge=1, description="The messages after which an MQTT poll ends.")
    ethereum_nodes: dict[str, str] = Field(
        default_factory=dict, description='Node URLs by chain id for sources that name none: {"1": "https://…"}.'
    )
    ethereum_confirmations: int = Field(
        default=12, ge=0, description="How many blocks must follow one before its logs are taken."
    )
    ethereum_range: int = Field(default=2_000, ge=1, description="The blocks to ask for at once; fewer where refused.")
    ethereum_max_logs: int = Field(default=50_000, ge=1, description="The logs after which a poll ends.")

    @property
    def allowed_names(self) -> frozenset[str]:
        """The environment variables that sources may use."""
        return frozenset(name for each in self.env_allow.split(",") if (name := each.strip()))
