"""Hot statements run on an index on both databases, so their cost does not grow with the catalog."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]  # it ships no types
import pytest

from app.store import (
    batches,
    journals,
    keys,
    migrate,
    namespaces,
    observations,
    overlaps,
    policies,
    tabulars,
    waivers,
    warehouses,
)
from app.store.program import Statement, Statements
from tests.postgres import Postgres

STATEMENTS: dict[str, Statement] = {
    "warehouse": warehouses.ONE,
    "namespace": namespaces.ONE,
    "top-level namespaces": namespaces.TOP_LEVEL,
    "child namespaces": namespaces.CHILDREN,
    "table by name": tabulars.BY_NAME,
    "pointer": tabulars.POINTER,
    "table by id": tabulars.BY_ID,
    "table names": tabulars.NAMES,
    "locations above": overlaps.AT_OR_ABOVE,
    "locations below": overlaps.BELOW,
    "roots above": overlaps.ROOTS_AT_OR_ABOVE,
    "roots below": overlaps.ROOTS_BELOW,
    "roots of a table": tabulars.ROOTS_OF,
    "swap": tabulars.SWAP,
    "idempotency key": keys.ONE,
    "settings": policies.IN_SCOPES,
    "waivers": waivers.OF_TABLE,
    "sightings": observations.SIGHTINGS,
    "reports": observations.REPORTS,
    "journal of a table": journals.query("u", None, None, None, 10)[0],
    "journal of a namespace": journals.query(None, "default", ("n",), None, 10)[0],
    "journal": journals.query(None, None, None, None, 10)[0],
}
BATCHES: dict[str, Statement] = {
    "warehouses together": batches.WAREHOUSES,
    "pointers together": batches.POINTERS,
    "tables together": batches.TABULARS,
    "swaps together": batches.SWAPS,
    "swaps with journal together": batches.NOTED_SWAPS,
    "swap with journal": batches.NOTED_SWAP,
    "swap with key": batches.KEYED_SWAP,
}
"""Of PostgreSQL alone."""
ONE_PAGE = (
    "top-level namespaces", "child namespaces", "table names", "locations below", "roots below",
    "journal of a table", "journal",
)  # fmt: skip
"""What must come in order from the index, so that a page stops at its limit."""

NUMBERS = frozenset({
    "limit", "id", "besides", "before_id", "now_ms", "format_version", "last_column_id", "current_schema_id",
    "field_count", "schema_count", "schema_changed_at_ms", "status", "created_at_ms", "expires_at_ms",
})  # fmt: skip


def values(statement: Statement, statements: Statements) -> tuple[str, tuple[Any, ...]]:
    asked = statements[statement]
    given: dict[str, Any] = {name: 5 if name in NUMBERS else "x" for name in asked.names} | {"outcome": b""}
    for at, name in enumerate(asked.names, 1):
        if f"${at} AS TEXT[])" in asked.sql:
            given[name] = ["5", "6", "7"]
    compiled, args = statements.bind(statement, given)
    return compiled.sql, args


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plans") / "catalog.db"
    migrate(f"sqlite:///{path}")
    return path


@pytest.mark.parametrize("name", STATEMENTS)
def test_sqlite_searches_an_index(file: Path, name: str) -> None:
    """No scan of a whole table; no sorting where a page is asked for."""
    sql, args = values(STATEMENTS[name], Statements.of_sqlite())
    with closing(sqlite3.connect(file)) as connection:
        steps = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", args).fetchall()]
    scans = [step for step in steps if step.startswith("SCAN") and "CONSTANT ROW" not in step]
    # The whole journal is read from its newest entry on, which is its primary key backwards.
    assert scans == (["SCAN journal"] if name == "journal" and scans else []), steps
    if name in ONE_PAGE:
        assert not [step for step in steps if "TEMP B-TREE" in step], steps


FILL = """
INSERT INTO warehouse SELECT 'w' || i, '/w', '[]', '{}', '{}', '{}', 1, 0, 0 FROM generate_series(1, 3000) i;
INSERT INTO namespace (warehouse, path, parent, properties, created_at_ms, updated_at_ms)
SELECT 'w' || (1 + i % 3), 'n' || i, NULL, '{}', 0, 0 FROM generate_series(1, 6000) i;
INSERT INTO namespace (warehouse, path, parent, properties, created_at_ms, updated_at_ms)
SELECT warehouse, path || E'\\x1f' || j, path, '{}', 0, 0 FROM namespace, generate_series(1, 2) j;
INSERT INTO tabular (warehouse, namespace_id, name, kind, uuid, location, location_key, metadata_location, version,
                     format_version, last_column_id, current_schema_id, field_count, created_at_ms, updated_at_ms)
SELECT 'w1', 1 + i % 5, 't' || i, CASE WHEN i % 10 = 0 THEN 'view' ELSE 'table' END, 'u' || i, '/w/' || i,
       'file:///w/' || i, 'm', 1, 2, 1, 0, 1, 0, 0 FROM generate_series(1, 20000) i;
INSERT INTO tabular_root SELECT tabular_id, 'w1', 'file:///r/' || tabular_id, '/r' FROM tabular;
INSERT INTO idempotency_key SELECT 'w1', 'k' || i, 'f', 200, ''::bytea, 0, i FROM generate_series(1, 5000) i;
INSERT INTO journal (at_ms, warehouse, namespace_path, table_uuid, payload)
SELECT i, 'w' || (i % 3), 'n' || (i % 500), 'u' || (i % 700), '{}' FROM generate_series(1, 20000) i;
INSERT INTO policy_setting SELECT 'w1', 'namespace:n' || i, 'ICE1', 'n' || i, NULL, 'warn', 'me', 0
FROM generate_series(1, 5000) i;
INSERT INTO waiver SELECT 'w' || i, 'u' || i, 'c', 'r', 'me', 0, 1, NULL FROM generate_series(1, 5000) i;
INSERT INTO sighting SELECT 'u' || i, 'c', 'v', 'load', i FROM generate_series(1, 5000) i;
INSERT INTO report (table_uuid, kind, received_at_ms, body)
SELECT 'u' || i, 'k', i, ''::bytea FROM generate_series(1, 5000) i;
ANALYZE
"""


@pytest.fixture(scope="module")
def filled(postgres_server: Postgres) -> str:
    url = postgres_server.database()
    postgres_server.execute(FILL, url.rpartition("/")[2])
    return url


def nodes(plan: dict[str, Any]) -> list[str]:
    return [plan["Node Type"], *(node for child in plan.get("Plans", ()) for node in nodes(child))]


@pytest.mark.parametrize("name", [*STATEMENTS, *BATCHES])
def test_postgresql_searches_an_index(filled: str, name: str) -> None:
    """On a filled and analysed database: no sequential scan; no sorting where a page is asked for."""
    sql, args = values({**STATEMENTS, **BATCHES}[name], Statements.of_postgresql())

    async def explain() -> str:
        connection = await asyncpg.connect(filled)
        try:
            # The plan that a prepared statement ends with, which cannot know the values.
            await connection.execute("SET plan_cache_mode = force_generic_plan")
            return str(await connection.fetchval(f"EXPLAIN (FORMAT JSON) {sql}", *args))
        finally:
            await connection.close()

    found = nodes(json.loads(asyncio.run(explain()))[0]["Plan"])
    assert "Seq Scan" not in found, found
    if name in ONE_PAGE:
        assert "Sort" not in found, found
