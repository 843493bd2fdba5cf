"""Namespaces."""

from __future__ import annotations

from starlette.requests import Request

from app import errors
from app.api import parameters, reading
from app.api.common import ALWAYS, BODY, CHANGE
from app.api.models import wire
from app.api.operations import Operations, Returns
from app.api.rendering import json_answer
from app.catalog import namespaces
from app.catalog.results import Listed, NamespaceView
from app.edge.answer import Answer, no_content
from app.edge.raw_path import decode_segment
from app.errors import BadRequest, NoSuchNamespace
from app.iceberg.json import codec

routes = Operations("Namespaces", ALWAYS)
ALL, ONE = "/v1/{prefix}/namespaces", "/v1/{prefix}/namespaces/{namespace}"
_PATH = (parameters.PREFIX, parameters.NAMESPACE)
_KEY = parameters.IDEMPOTENCY_KEY


@routes.declare(
    "GET",
    ALL,
    "listNamespaces",
    parameters=[parameters.PREFIX, parameters.PARENT, parameters.PAGE_TOKEN, parameters.PAGE_SIZE],
    returns=[Returns(200, "Namespaces in name order, each as its full path.", wire.ListNamespacesResponse)],
    fails=[errors.NoSuchWarehouse, errors.NoSuchNamespace],
)
async def list_namespaces(request: Request) -> Answer:
    """List the direct children of a namespace, or the top level."""
    ctx, given = reading.context(request), reading.query(request)
    parent, page = given.get("parent", ""), reading.page(given)
    listed: Listed[tuple[str, ...]]
    try:
        listed = await namespaces.list_namespaces(ctx, reading.warehouse(request), _parent(parent), page)
    except NoSuchNamespace:
        decoded = _decoded_again(parent)
        if decoded is None:
            raise
        listed = await namespaces.list_namespaces(ctx, reading.warehouse(request), decoded, page)
    return json_answer({"namespaces": listed.items, "next-page-token": listed.next_token})


def _parent(text: str) -> tuple[str, ...]:
    return tuple(text.split("\x1f")) if text else ()


def _decoded_again(text: str) -> tuple[str, ...] | None:
    """What PyIceberg means: it percent-encodes each level before the query string is encoded; Java does not.

    None when the text holds no escapes, so that nothing else can be meant.
    """
    if "%" not in text:
        return None
    try:
        return tuple(decode_segment(level.replace("+", "%2B")) for level in _parent(text))
    except BadRequest:
        return None


@routes.declare(
    "POST",
    ALL,
    "createNamespace",
    parameters=[parameters.PREFIX, _KEY],
    body=wire.CreateNamespaceRequest,
    returns=[
        Returns(200, "The new namespace, with a computed `location` when none was given.", wire.NamespaceResponse)
    ],
    fails=[errors.NoSuchWarehouse, errors.NoSuchNamespace, errors.AlreadyExists, *BODY, *CHANGE],
)
async def create_namespace(request: Request) -> Answer:
    """Create a namespace; the one above it must exist."""
    body, raw = await reading.json_body(request)
    levels = codec.as_str_list(codec.required(body, "namespace"), "$.namespace")
    properties = codec.as_str_map(codec.optional(body, "properties", {}), "$.properties")
    created = await namespaces.create_namespace(
        reading.context(request), reading.caller(request, raw), reading.warehouse(request), levels, properties
    )
    return _namespace(created)


@routes.declare(
    "GET",
    ONE,
    "loadNamespaceMetadata",
    parameters=_PATH,
    returns=[Returns(200, "The namespace and its properties.", wire.NamespaceResponse)],
    fails=[errors.NoSuchWarehouse, errors.NoSuchNamespace],
)
async def load_namespace(request: Request) -> Answer:
    """Load a namespace's properties."""
    return _namespace(
        await namespaces.load_namespace(reading.context(request), reading.warehouse(request), reading.levels(request))
    )


@routes.declare(
    "HEAD",
    ONE,
    "namespaceExists",
    parameters=_PATH,
    returns=[Returns(204, "It exists.")],
    fails=[errors.NoSuchWarehouse, errors.NoSuchNamespace],
)
async def namespace_exists(request: Request) -> Answer:
    """Tell whether a namespace exists."""
    await namespaces.namespace_exists(reading.context(request), reading.warehouse(request), reading.levels(request))
    return no_content()


@routes.declare(
    "DELETE",
    ONE,
    "dropNamespace",
    parameters=[*_PATH, _KEY],
    returns=[Returns(204, "It is gone.")],
    fails=[errors.NoSuchWarehouse, errors.NoSuchNamespace, errors.NamespaceNotEmpty, *CHANGE],
)
async def drop_namespace(request: Request) -> Answer:
    """Drop a namespace that holds no tables, views or namespaces."""
    raw = await reading.no_body(request)
    await namespaces.drop_namespace(
        reading.context(request), reading.caller(request, raw), reading.warehouse(request), reading.levels(request)
    )
    return no_content()


@routes.declare(
    "POST",
    f"{ONE}/properties",
    "updateProperties",
    parameters=[*_PATH, _KEY],
    body=wire.UpdateNamespacePropertiesRequest,
    returns=[
        Returns(200, "What was set, removed, and not there to be removed.", wire.UpdateNamespacePropertiesResponse)
    ],
    fails=[errors.NoSuchWarehouse, errors.NoSuchNamespace, *BODY, *CHANGE],
)
async def update_properties(request: Request) -> Answer:
    """Set and remove properties of a namespace; a name in both lists is refused with 422."""
    body, raw = await reading.json_body(request)
    updates = codec.as_str_map(codec.optional(body, "updates", {}), "$.updates")
    removals = codec.as_str_list(codec.optional(body, "removals", []), "$.removals")
    result = await namespaces.update_properties(
        reading.context(request),
        reading.caller(request, raw),
        reading.warehouse(request),
        reading.levels(request),
        updates,
        removals,
    )
    return json_answer({"updated": result.updated, "removed": result.removed, "missing": result.missing})


def _namespace(found: NamespaceView) -> Answer:
    return json_answer({"namespace": found.levels, "properties": dict(found.properties)})
