"""What one gateway can be told, from environment variables `ODF_GATEWAY_…`."""

from __future__ import annotations

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

DEFAULT_PORT = 8321

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class GatewaySettings(BaseSettings):
    """Addresses, and bounds of everything that requests can make grow."""

    model_config = SettingsConfigDict(env_prefix="ODF_GATEWAY_", frozen=True, extra="ignore")

    host: str = Field(default="127.0.0.1", description="The address to listen on.")
    port: int | None = Field(
        default=None, ge=0, le=65_535, description=f"The port. Default: {DEFAULT_PORT}, or a free one if that is taken."
    )
    allowed_hosts: tuple[str, ...] = Field(
        default=(),
        description="Names by which browsers may ask, against DNS rebinding. Default: the loopback's names when "
        "listening there, otherwise any.",
    )
    max_publishing: int = Field(default=256, ge=1, description="Payloads under way at the same time.")
    max_publishing_size: int = Field(
        default=256 << 20, ge=1, description="Bytes of memory for all payloads under way; a large one takes 4 MiB."
    )
    max_uploads_size: int = Field(
        default=64 << 30, ge=1, description="Bytes that may wait in the upload area before it takes no more."
    )
    max_waiting: int = Field(default=1_000, ge=1, description="Requests that wait for a commit at the same time.")
    max_subscribers: int = Field(default=200, ge=1, description="Streams of server-sent events at the same time.")
    max_pending_events: int = Field(default=10_000, ge=1, description="Blocks that one stream may lag behind.")
    body_timeout_s: float = Field(default=60.0, gt=0, description="How long each MiB of a payload may take to come in.")
    publish_timeout_s: float = Field(default=5.0, gt=0, description="How long the broker may take.")
    send_timeout_s: float = Field(default=30.0, gt=0, description="How long a subscriber may take for one event.")
    heartbeat_s: float = Field(default=15.0, gt=0, description="The time between comments on a quiet stream.")
    cache_s: float = Field(default=1.0, ge=0, description="How long a dataset's sources are believed unchanged.")

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names under which requests are answered; none means any."""
        if self.allowed_hosts or self.host not in _LOOPBACK:
            return self.allowed_hosts
        return _LOOPBACK
