"""Epochs, which fence writers off, and the topics of push sources."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create both tables."""
    op.create_table(
        "epochs",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("name", name="epochs_pk"),
    )
    op.create_table(
        "push_sources",
        sa.Column("dataset_id", sa.Text, nullable=False),
        sa.Column("source_name", sa.Text, nullable=False),
        sa.Column("topic", sa.Text, nullable=False),
        sa.Column("settings", sa.Text, nullable=False),
        sa.Column("problem", sa.Text, nullable=True),
        sa.PrimaryKeyConstraint("dataset_id", "source_name", name="push_sources_pk"),
        sa.UniqueConstraint("topic", name="push_sources_topic_uq"),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], name="push_sources_dataset_id_fk", ondelete="CASCADE"),
    )
