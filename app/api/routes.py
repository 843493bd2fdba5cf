"""Every operation in the order in which the router tries it, and what the OpenAPI document says of them all."""

from __future__ import annotations

from typing import Any

from fastapi.routing import APIRoute

from app import __version__
from app.api.config import router as config
from app.api.docs import router as docs
from app.api.health import router as health
from app.api.namespaces import router as namespaces
from app.api.policy import router as policy
from app.api.rules import router as rules
from app.api.schema_changes import router as schema_changes
from app.api.table_ranking import router as table_ranking
from app.api.tables import router as tables
from app.api.transactions import router as transactions
from app.api.views import router as views
from app.api.warehouses import router as warehouses

# Lean routes first: every route that is tried costs a request a microsecond.
ROUTES: tuple[APIRoute, ...] = tuple(
    route
    for router in (
        tables.lean,
        config.lean,
        tables.router,
        namespaces.router,
        views.router,
        transactions.router,
        health.router,
        schema_changes.router,
        table_ranking.router,
        policy.router,
        rules.router,
        warehouses.router,
        docs.router,
    )
    for route in router.routes
    if isinstance(route, APIRoute)
)

_DESCRIPTION = """\
The Iceberg REST protocol under `/v1` and Icekeel's own API under `/icekeel/v1`.

Every answer that is not a success has the body `{"error": {"message", "type", "code"}}`, and `code` equals the HTTP
status. A refused schema change is a 400 of type `SchemaEvolutionException` whose `error.findings` hold every fault
with its rule, field id and fix. Every answer carries `X-Request-Id`.

Paths without `{prefix}` reach the default warehouse. Within a path segment `/` is written `%2F`; levels of a
namespace are joined by `%1F`.
"""
_TAGS = {
    "Configuration": "What a client asks first.",
    "Namespaces": "Nested namespaces and their properties.",
    "Tables": "Tables and their commits.",
    "Transactions": "Commits to several tables at once.",
    "Views": "Views and their versions.",
    "Schema changes": "May I, what would it be, do it, and what has been done.",
    "Evolution": "How strictly the rules are held for a table, and one-shot exceptions.",
    "Rules": "The rules that schema changes are judged by.",
    "Warehouses": "Where tables live.",
    "Operations": "Health and numbers.",
}

DECLARED: dict[str, Any] = {
    "title": "Icekeel",
    "version": __version__,
    "summary": "An Apache Iceberg REST catalog that refuses schema changes which would make stored data unreadable or "
    "wrong.",
    "description": _DESCRIPTION,
    "license_info": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
    "openapi_tags": [{"name": name, "description": text} for name, text in _TAGS.items()],
    "routes": list(ROUTES),
    "redirect_slashes": False,
    "separate_input_output_schemas": False,
    "openapi_url": None,
    "docs_url": None,
    "redoc_url": None,
    # Asking OpenTelemetry for its providers costs 4 us a request; `/metrics` tells these numbers.
    "telemetry": {"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
}


def advertised() -> list[str]:
    """The `endpoints` list of `/v1/config`: every Iceberg operation as verb and path template."""
    return [
        f"{method} {route.path}" for route in ROUTES if route.path.startswith("/v1/") for method in route.methods or ()
    ]
