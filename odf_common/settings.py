"""Where everything lies, from environment variables `ODF_…`; each process reads it once and passes it down."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """What all processes of one installation agree on."""

    model_config = SettingsConfigDict(env_prefix="ODF_", frozen=True, extra="ignore")

    data_dir: Path = Field(default=Path(".odf"), description="The folder for everything that is kept.")
    kafka_bootstrap_servers: str | None = Field(
        default=None, description="A Kafka cluster to use; without it an embedded broker is started."
    )
    repository: str | None = Field(
        default=None, description="The datasets' root: a folder or s3://bucket/prefix. Default: DATA_DIR/datasets."
    )
    catalog: str | None = Field(
        default=None, description="sqlite:///path or postgresql://…. Default: DATA_DIR/catalog.sqlite."
    )
    staging: Path | None = Field(
        default=None,
        description="The folder, shared by jobs and committer, in which slices wait. Default: DATA_DIR/staging.",
    )
    uploads: Path | None = Field(
        default=None,
        description="The folder, shared by all services, for large payloads. Default: DATA_DIR/uploads.",
    )
    max_upload_size: int = Field(default=4 << 30, ge=1, description="Bytes that an uploaded payload may have.")

    @property
    def repository_location(self) -> str:
        """The root of the datasets."""
        return self.repository or str(self.data_dir / "datasets")

    @property
    def catalog_url(self) -> str:
        """The catalog's database."""
        return self.catalog or f"sqlite:///{self.data_dir.absolute() / 'catalog.sqlite'}"

    @property
    def staging_folder(self) -> Path:
        """Where slices wait for their commit."""
        return self.staging or self.data_dir / "staging"

    @property
    def uploads_folder(self) -> Path:
        """Where large payloads wait for the ingest job."""
        return self.uploads or self.data_dir / "uploads"
