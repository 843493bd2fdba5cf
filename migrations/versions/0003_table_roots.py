"""Beside each table or view: the places outside its location that its path properties name."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

EXACT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    # Empty for tables that are there already: their next change of a path property or location fills it.
    op.create_table(
        "tabular_root",
        sa.Column("tabular_id", sa.BigInteger(), nullable=False),
        sa.Column("warehouse", EXACT, nullable=False),
        sa.Column("root_key", EXACT, nullable=False),
        sa.Column("root", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tabular_id", "root_key", name="pk_tabular_root"),
        sa.ForeignKeyConstraint(["tabular_id"], ["tabular.tabular_id"], name="fk_tabular_root_tabular"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_tabular_root_key", "tabular_root", ["warehouse", "root_key"])


def downgrade() -> None:
    op.drop_table("tabular_root")
