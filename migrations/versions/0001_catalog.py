"""The catalog: warehouses, namespaces, tables and views, keys, jobs, journal, policy, observations."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

EXACT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
ROW_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _column(name: str, kind: sa.types.TypeEngine, *, nullable: bool = False) -> sa.Column:
    return sa.Column(name, kind, nullable=nullable)


def _row_id(name: str) -> sa.Column:
    return sa.Column(name, ROW_ID, sa.Identity(), nullable=False)


def upgrade() -> None:
    _create_warehouse()
    _create_namespace()
    _create_tabular()
    _create_idempotency_key()
    _create_purge_job()
    _create_journal()
    _create_policy()
    _create_observations()


def downgrade() -> None:
    for table in (
        "report",
        "sighting",
        "waiver",
        "policy_setting",
        "journal",
        "purge_job",
        "idempotency_key",
        "tabular",
        "namespace",
        "warehouse",
    ):
        op.drop_table(table)


def _create_warehouse() -> None:
    op.create_table(
        "warehouse",
        _column("name", EXACT),
        _column("location", sa.Text()),
        _column("allowed_locations", sa.Text()),
        _column("properties", sa.Text()),
        _column("storage", sa.Text()),
        _column("secrets", sa.Text()),
        _column("version", sa.BigInteger()),
        _column("created_at_ms", sa.BigInteger()),
        _column("updated_at_ms", sa.BigInteger()),
        sa.PrimaryKeyConstraint("name", name="pk_warehouse"),
        sqlite_autoincrement=True,
    )


def _create_namespace() -> None:
    op.create_table(
        "namespace",
        _row_id("namespace_id"),
        _column("warehouse", EXACT),
        _column("path", EXACT),
        _column("parent", EXACT, nullable=True),
        _column("properties", sa.Text()),
        _column("created_at_ms", sa.BigInteger()),
        _column("updated_at_ms", sa.BigInteger()),
        sa.PrimaryKeyConstraint("namespace_id", name="pk_namespace"),
        sa.UniqueConstraint("warehouse", "path", name="uq_namespace_path"),
        sa.ForeignKeyConstraint(["warehouse"], ["warehouse.name"], name="fk_namespace_warehouse"),
        sa.ForeignKeyConstraint(
            ["warehouse", "parent"], ["namespace.warehouse", "namespace.path"], name="fk_namespace_parent"
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_namespace_children", "namespace", ["warehouse", "parent", "path"])


def _create_tabular() -> None:
    op.create_table(
        "tabular",
        _row_id("tabular_id"),
        _column("warehouse", EXACT),
        _column("namespace_id", sa.BigInteger()),
        _column("name", EXACT),
        _column("kind", EXACT),
        _column("uuid", EXACT),
        _column("location", sa.Text()),
        _column("location_key", EXACT),
        _column("metadata_location", EXACT),
        _column("version", sa.BigInteger()),
        _column("format_version", sa.Integer()),
        _column("last_column_id", sa.Integer()),
        _column("current_schema_id", sa.Integer()),
        _column("field_count", sa.Integer()),
        _column("created_at_ms", sa.BigInteger()),
        _column("updated_at_ms", sa.BigInteger()),
        sa.PrimaryKeyConstraint("tabular_id", name="pk_tabular"),
        sa.ForeignKeyConstraint(["namespace_id"], ["namespace.namespace_id"], name="fk_tabular_namespace"),
        sa.UniqueConstraint("namespace_id", "name", name="uq_tabular_name"),
        sa.UniqueConstraint("uuid", "warehouse", name="uq_tabular_uuid"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_tabular_kind", "tabular", ["namespace_id", "kind", "name"])
    op.create_index("ix_tabular_location", "tabular", ["warehouse", "location_key"])


def _create_idempotency_key() -> None:
    op.create_table(
        "idempotency_key",
        _column("warehouse", EXACT),
        _column("key", EXACT),
        _column("fingerprint", EXACT),
        _column("status", sa.Integer()),
        _column("outcome", sa.LargeBinary()),
        _column("created_at_ms", sa.BigInteger()),
        _column("expires_at_ms", sa.BigInteger()),
        sa.PrimaryKeyConstraint("warehouse", "key", name="pk_idempotency_key"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_idempotency_key_expiry", "idempotency_key", ["expires_at_ms"])


def _create_purge_job() -> None:
    op.create_table(
        "purge_job",
        _row_id("job_id"),
        _column("warehouse", EXACT),
        _column("table_uuid", EXACT),
        _column("name", sa.Text()),
        _column("location", sa.Text()),
        _column("metadata_location", sa.Text()),
        _column("progress", sa.LargeBinary()),
        _column("created_at_ms", sa.BigInteger()),
        _column("attempts", sa.Integer()),
        _column("last_error", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("job_id", name="pk_purge_job"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_purge_job_order", "purge_job", ["attempts", "job_id"])


def _create_journal() -> None:
    op.create_table(
        "journal",
        _row_id("entry_id"),
        _column("at_ms", sa.BigInteger()),
        _column("warehouse", EXACT),
        _column("namespace_path", EXACT),
        _column("table_uuid", EXACT),
        _column("payload", sa.Text()),
        sa.PrimaryKeyConstraint("entry_id", name="pk_journal"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_journal_table", "journal", ["table_uuid", "entry_id"])
    op.create_index("ix_journal_namespace", "journal", ["warehouse", "namespace_path", "entry_id"])


def _create_policy() -> None:
    op.create_table(
        "policy_setting",
        _column("warehouse", EXACT),
        _column("scope", EXACT),
        _column("code", EXACT),
        _column("namespace_path", EXACT),
        _column("table_uuid", EXACT, nullable=True),
        _column("severity", EXACT),
        _column("set_by", sa.Text()),
        _column("set_at_ms", sa.BigInteger()),
        sa.PrimaryKeyConstraint("warehouse", "scope", "code", name="pk_policy_setting"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "waiver",
        _column("waiver_id", EXACT),
        _column("table_uuid", EXACT),
        _column("code", EXACT),
        _column("reason", sa.Text()),
        _column("granted_by", sa.Text()),
        _column("granted_at_ms", sa.BigInteger()),
        _column("expires_at_ms", sa.BigInteger()),
        _column("used_at_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("waiver_id", name="pk_waiver"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_waiver_table", "waiver", ["table_uuid"])


def _create_observations() -> None:
    op.create_table(
        "sighting",
        _column("table_uuid", EXACT),
        _column("client", EXACT),
        _column("client_version", EXACT),
        _column("action", EXACT),
        _column("last_seen_ms", sa.BigInteger()),
        sa.PrimaryKeyConstraint("table_uuid", "client", "client_version", "action", name="pk_sighting"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_sighting_age", "sighting", ["table_uuid", "last_seen_ms"])
    op.create_table(
        "report",
        _row_id("report_id"),
        _column("table_uuid", EXACT),
        _column("kind", sa.Text()),
        _column("received_at_ms", sa.BigInteger()),
        _column("body", sa.LargeBinary()),
        sa.PrimaryKeyConstraint("report_id", name="pk_report"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_report_table", "report", ["table_uuid", "report_id"])
