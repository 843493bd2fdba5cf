"""The OpenAPI document, from the declarations and nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from app.api.models.wire import ErrorResponse
from app.api.operations import Operation

_REF = "#/components/schemas/{name}"
_SUMMARY = (
    "An Apache Iceberg REST catalog that refuses schema changes which would make stored data unreadable or wrong."
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


class _Shapes:
    """JSON schemas of the declared shapes: a reference for each, and the components they refer to."""

    def __init__(self) -> None:
        self._wanted: dict[str, type] = {}

    def reference(self, model: type) -> dict[str, Any]:
        if not (isinstance(model, type) and issubclass(model, msgspec.Struct)):
            return msgspec.json.schema(model)
        self._wanted[model.__name__] = model
        return {"$ref": _REF.format(name=model.__name__)}

    def components(self) -> dict[str, Any]:
        _, found = msgspec.json.schema_components([*self._wanted.values(), ErrorResponse], ref_template=_REF)
        return {name: found[name] for name in sorted(found)}


def document(operations: Iterable[Operation], version: str) -> dict[str, Any]:
    """The whole document; equal declarations give equal documents."""
    shapes = _Shapes()
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = operation.document(shapes.reference)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Icekeel",
            "summary": _SUMMARY,
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            "version": version,
        },
        "paths": paths,
        "tags": [{"name": name, "description": text} for name, text in _TAGS.items()],
        "components": {
            "schemas": shapes.components(),
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "The value of ICEKEEL_TOKEN, where set."}
            },
        },
        "security": [{"token": []}, {}],
    }
