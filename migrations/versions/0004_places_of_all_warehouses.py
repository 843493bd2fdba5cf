"""Locations are compared across warehouses: their indexes no longer begin with one."""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_tabular_place", "tabular", ["location_key"])
    op.create_index("ix_tabular_root_place", "tabular_root", ["root_key"])
    op.drop_index("ix_tabular_location", "tabular")
    op.drop_index("ix_tabular_root_key", "tabular_root")


def downgrade() -> None:
    op.create_index("ix_tabular_location", "tabular", ["warehouse", "location_key"])
    op.create_index("ix_tabular_root_key", "tabular_root", ["warehouse", "root_key"])
    op.drop_index("ix_tabular_place", "tabular")
    op.drop_index("ix_tabular_root_place", "tabular_root")
