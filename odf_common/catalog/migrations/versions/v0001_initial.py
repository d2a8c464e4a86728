"""Accounts, datasets, refs and the journal."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create all tables."""
    op.create_table(
        "accounts",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("name_folded", sa.Text, nullable=False),
        sa.Column("created_at", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="accounts_pk"),
        sa.UniqueConstraint("name_folded", name="accounts_name_folded_uq"),
    )
    op.create_table(
        "datasets",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("account", sa.Text, nullable=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("alias_folded", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("location", sa.Text, nullable=False),
        sa.Column("created_at", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="datasets_pk"),
        sa.UniqueConstraint("alias_folded", name="datasets_alias_folded_uq"),
        sa.CheckConstraint("kind IN ('Root', 'Derivative')", name="datasets_kind_ck"),
    )
    op.create_table(
        "refs",
        sa.Column("dataset_id", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("block_hash", sa.Text, nullable=False),
        sa.Column("updated_at", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("dataset_id", "name", name="refs_pk"),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], name="refs_dataset_id_fk", ondelete="CASCADE"),
    )
    op.create_table(
        "journal",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), autoincrement=True, nullable=False),
        sa.Column("dataset_id", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.Column("created_at", sa.Text, nullable=False),
        sa.Column("published_at", sa.Text, nullable=True),
        sa.PrimaryKeyConstraint("id", name="journal_pk"),
        sqlite_autoincrement=True,
    )
    op.create_index("journal_published_at_id_ix", "journal", ["published_at", "id"])
