"""The tables of the catalog as SQLAlchemy Core metadata: one definition for both databases.

What is kept here is the pointer and what must be found or listed; nothing of a metadata document is normalised into
columns. Names, paths, keys and locations are compared byte by byte (`Exact`), so both databases order and match them by
code point and never fold case. Times are epoch milliseconds. Maps are JSON text.

A change here needs a migration under `migrations/versions` and its revision in `revisions.py`;
`tests/store/test_migrations.py` compares them.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
)

Exact = Text().with_variant(Text(collation="C"), "postgresql")
"""Text compared by code point: SQLite's BINARY by default, the "C" collation in PostgreSQL."""

RowId = BigInteger().with_variant(Integer, "sqlite")
"""A 64-bit id that the database assigns. SQLite numbers rows itself only when the type is spelled INTEGER."""

metadata = MetaData()


def _exact(name: str, *, nullable: bool = False) -> Column[str]:
    return Column(name, Exact, nullable=nullable)


def _text(name: str, *, nullable: bool = False) -> Column[str]:
    return Column(name, Text, nullable=nullable)


def _long(name: str, *, nullable: bool = False) -> Column[int]:
    return Column(name, BigInteger, nullable=nullable)


def _int(name: str) -> Column[int]:
    return Column(name, Integer, nullable=False)


def _row_id(name: str) -> Column[int]:
    return Column(name, RowId, Identity(), nullable=False)


def _table(name: str, *items: Any) -> Table:
    # Ids that SQLite assigns are never handed out twice, as in PostgreSQL: a swap by id must not hit a later table.
    return Table(name, metadata, *items, sqlite_autoincrement=True)


warehouse = _table(
    "warehouse",
    _exact("name"),
    _text("location"),
    _text("allowed_locations"),
    _text("properties"),
    _text("storage"),
    _text("secrets"),
    _long("version"),
    _long("created_at_ms"),
    _long("updated_at_ms"),
    PrimaryKeyConstraint("name", name="pk_warehouse"),
)

namespace = _table(
    "namespace",
    _row_id("namespace_id"),
    _exact("warehouse"),
    _exact("path"),
    _exact("parent", nullable=True),
    _text("properties"),
    _long("created_at_ms"),
    _long("updated_at_ms"),
    PrimaryKeyConstraint("namespace_id", name="pk_namespace"),
    UniqueConstraint("warehouse", "path", name="uq_namespace_path"),
    ForeignKeyConstraint(["warehouse"], ["warehouse.name"], name="fk_namespace_warehouse"),
    # A top-level namespace has no parent (null), and a null part of a composite key is not checked.
    ForeignKeyConstraint(
        ["warehouse", "parent"], ["namespace.warehouse", "namespace.path"], name="fk_namespace_parent"
    ),
    Index("ix_namespace_children", "warehouse", "parent", "path"),
)

tabular = _table(
    "tabular",
    _row_id("tabular_id"),
    _exact("warehouse"),
    _long("namespace_id"),
    _exact("name"),
    _exact("kind"),
    _exact("uuid"),
    _text("location"),
    _exact("location_key"),
    _exact("metadata_location"),
    _long("version"),
    _int("format_version"),
    _int("last_column_id"),
    _int("current_schema_id"),
    _int("field_count"),
    _long("created_at_ms"),
    _long("updated_at_ms"),
    Column("schema_count", Integer, nullable=True),
    _long("schema_changed_at_ms", nullable=True),
    _text("metadata_checksum", nullable=True),
    PrimaryKeyConstraint("tabular_id", name="pk_tabular"),
    ForeignKeyConstraint(["namespace_id"], ["namespace.namespace_id"], name="fk_tabular_namespace"),
    # Tables and views share one name space.
    UniqueConstraint("namespace_id", "name", name="uq_tabular_name"),
    UniqueConstraint("uuid", "warehouse", name="uq_tabular_uuid"),
    Index("ix_tabular_kind", "namespace_id", "kind", "name"),
    # Of all warehouses: their places may meet.
    Index("ix_tabular_place", "location_key"),
)

# Where else files of a table or view may lie: compared with every location, as its own location is.
tabular_root = _table(
    "tabular_root",
    _long("tabular_id"),
    _exact("warehouse"),
    _exact("root_key"),
    _text("root"),
    PrimaryKeyConstraint("tabular_id", "root_key", name="pk_tabular_root"),
    ForeignKeyConstraint(["tabular_id"], ["tabular.tabular_id"], name="fk_tabular_root_tabular"),
    Index("ix_tabular_root_place", "root_key"),
)

idempotency_key = _table(
    "idempotency_key",
    _exact("warehouse"),
    _exact("key"),
    _exact("fingerprint"),
    _int("status"),
    Column("outcome", LargeBinary, nullable=False),
    _long("created_at_ms"),
    _long("expires_at_ms"),
    PrimaryKeyConstraint("warehouse", "key", name="pk_idempotency_key"),
    Index("ix_idempotency_key_expiry", "expires_at_ms"),
)

purge_job = _table(
    "purge_job",
    _row_id("job_id"),
    _exact("warehouse"),
    _exact("table_uuid"),
    _text("name"),
    _text("location"),
    _text("metadata_location"),
    Column("progress", LargeBinary, nullable=False),
    _long("created_at_ms"),
    _int("attempts"),
    _text("last_error", nullable=True),
    PrimaryKeyConstraint("job_id", name="pk_purge_job"),
    Index("ix_purge_job_order", "attempts", "job_id"),
)

journal = _table(
    "journal",
    _row_id("entry_id"),
    _long("at_ms"),
    _exact("warehouse"),
    _exact("namespace_path"),
    _exact("table_uuid"),
    _text("payload"),
    PrimaryKeyConstraint("entry_id", name="pk_journal"),
    Index("ix_journal_table", "table_uuid", "entry_id"),
    Index("ix_journal_namespace", "warehouse", "namespace_path", "entry_id"),
)

policy_setting = _table(
    "policy_setting",
    _exact("warehouse"),
    _exact("scope"),
    _exact("code"),
    _exact("namespace_path"),
    _exact("table_uuid", nullable=True),
    _exact("severity"),
    _text("set_by"),
    _long("set_at_ms"),
    PrimaryKeyConstraint("warehouse", "scope", "code", name="pk_policy_setting"),
)

waiver = _table(
    "waiver",
    _exact("waiver_id"),
    _exact("table_uuid"),
    _exact("code"),
    _text("reason"),
    _text("granted_by"),
    _long("granted_at_ms"),
    _long("expires_at_ms"),
    _long("used_at_ms", nullable=True),
    PrimaryKeyConstraint("waiver_id", name="pk_waiver"),
    Index("ix_waiver_table", "table_uuid"),
)

sighting = _table(
    "sighting",
    _exact("table_uuid"),
    _exact("client"),
    _exact("client_version"),
    _exact("action"),
    _long("last_seen_ms"),
    PrimaryKeyConstraint("table_uuid", "client", "client_version", "action", name="pk_sighting"),
    Index("ix_sighting_age", "table_uuid", "last_seen_ms"),
)

report = _table(
    "report",
    _row_id("report_id"),
    _exact("table_uuid"),
    _text("kind"),
    _long("received_at_ms"),
    Column("body", LargeBinary, nullable=False),
    PrimaryKeyConstraint("report_id", name="pk_report"),
    Index("ix_report_table", "table_uuid", "report_id"),
)
