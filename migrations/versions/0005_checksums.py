"""Beside each table's pointer: the checksum of its metadata file, where this catalog wrote it."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Null until the next commit, and for files that others wrote: those are not checked.
    op.add_column("tabular", sa.Column("metadata_checksum", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("tabular", "metadata_checksum")
