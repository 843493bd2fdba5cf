"""Beside each table's pointer: how many schemas it keeps, and when its current one last changed."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Null until the table's next commit: nothing but its metadata file knows better.
    op.add_column("tabular", sa.Column("schema_count", sa.Integer(), nullable=True))
    op.add_column("tabular", sa.Column("schema_changed_at_ms", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    op.drop_column("tabular", "schema_changed_at_ms")
    op.drop_column("tabular", "schema_count")
