"""Views over plain HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import httpx

from tests.cases.shorthand import schema
from tests.cases.wire import Catalog, now_ms

Json = Any


def view_version(sql: str, version_id: int = 1, *, schema_id: int = 0, dialect: str = "spark") -> Json:
    return {
        "version-id": version_id,
        "timestamp-ms": now_ms(),
        "schema-id": schema_id,
        "summary": {"engine-name": "test"},
        "default-namespace": ["ns"],
        "representations": [{"type": "sql", "sql": sql, "dialect": dialect}],
    }


def create_view(catalog: Catalog, namespace: Sequence[str], name: str, sql: str, **body: Json) -> httpx.Response:
    return catalog.http.post(
        f"{catalog.namespace_path(namespace)}/views",
        json={"name": name, "schema": schema("1:id long", schema_id=0), "view-version": view_version(sql), **body},
    )


def view_path(catalog: Catalog, namespace: Sequence[str], name: str) -> str:
    return f"{catalog.namespace_path(namespace)}/views/{quote(name, safe='')}"


def replace_view(
    catalog: Catalog, namespace: Sequence[str], name: str, updates: Sequence[Json], requirements: Sequence[Json] = ()
) -> httpx.Response:
    return catalog.http.post(
        view_path(catalog, namespace, name), json={"requirements": list(requirements), "updates": list(updates)}
    )
