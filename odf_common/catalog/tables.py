"""The catalog's tables. A change here needs a migration; a test compares the two."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
)

REVISION = "0002"
"""The newest migration: what an up-to-date catalog says in `alembic_version`."""

METADATA = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pk",
        "uq": "%(table_name)s_%(column_0_name)s_uq",
        "ix": "%(table_name)s_%(column_0_name)s_ix",
        "fk": "%(table_name)s_%(column_0_name)s_fk",
        "ck": "%(table_name)s_%(constraint_name)s_ck",
    }
)

ACCOUNTS = Table(
    "accounts",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("name_folded", Text, nullable=False, unique=True),
    Column("created_at", Text, nullable=False),
)

DATASETS = Table(
    "datasets",
    METADATA,
    Column("id", Text, primary_key=True),
    # By name, not by id: the folders from which a lost catalog is rebuilt know only names.
    Column("account", Text, nullable=True),
    Column("name", Text, nullable=False),
    Column("alias_folded", Text, nullable=False, unique=True),
    Column("kind", Text, nullable=False),
    Column("location", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    CheckConstraint("kind IN ('Root', 'Derivative')", name="kind"),
)

REFS = Table(
    "refs",
    METADATA,
    Column("dataset_id", Text, ForeignKey("datasets.id", ondelete="CASCADE"), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("block_hash", Text, nullable=False),
    Column("updated_at", Text, nullable=False),
)

JOURNAL = Table(
    "journal",
    METADATA,
    # SQLite numbers rows by itself only in a column of exactly this type.
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    # Not a foreign key: the journal outlives the dataset whose deletion it reports.
    Column("dataset_id", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("payload", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    Column("published_at", Text, nullable=True),
    Index("journal_published_at_id_ix", "published_at", "id"),
    sqlite_autoincrement=True,
)

EPOCHS = Table(
    "epochs",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("epoch", BigInteger, nullable=False),
)

PUSH_SOURCES = Table(
    "push_sources",
    METADATA,
    Column("dataset_id", Text, ForeignKey("datasets.id", ondelete="CASCADE"), primary_key=True),
    Column("source_name", Text, primary_key=True),
    Column("topic", Text, nullable=False, unique=True),
    Column("settings", Text, nullable=False),
    # Why the source does not run, written by the job for people; none while it runs.
    Column("problem", Text, nullable=True),
)
