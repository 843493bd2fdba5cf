"""The path operations of namespaces."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from app import errors
from app.api import deps
from app.api.namespaces.schemas import (
    CreateNamespaceRequest,
    ListNamespacesResponse,
    NamespaceResponse,
    UpdateNamespacePropertiesRequest,
    UpdateNamespacePropertiesResponse,
)
from app.api.responses import BODY, CHANGE, fails, success
from app.api.route import StrictRoute
from app.catalog import namespaces
from app.catalog.results import Listed, NamespaceView
from app.edge.answer import Answer, no_content
from app.edge.raw_path import decode_segment
from app.errors import BadRequest, NoSuchNamespace

ALL, ONE = "/v1/{prefix}/namespaces", "/v1/{prefix}/namespaces/{namespace}"

router = APIRouter(route_class=StrictRoute, tags=["Namespaces"])

_SEEN = (errors.NoSuchWarehouse, errors.NoSuchNamespace)


@router.get(
    ALL,
    operation_id="listNamespaces",
    responses={**success(200, "Namespaces in name order, each as its full path."), **fails(*_SEEN)},
)
async def list_namespaces(
    catalog: deps.Catalog,
    prefix: deps.Prefix,
    page: deps.Page,
    parent: Annotated[
        str,
        Query(
            description="Namespace whose children to list, levels joined by 0x1F; the top level when absent or empty."
        ),
    ] = "",
) -> ListNamespacesResponse:
    """List the direct children of a namespace, or the top level."""
    listed: Listed[tuple[str, ...]]
    try:
        listed = await namespaces.list_namespaces(catalog, prefix, _parent(parent), page)
    except NoSuchNamespace:
        decoded = _decoded_again(parent)
        if decoded is None:
            raise
        listed = await namespaces.list_namespaces(catalog, prefix, decoded, page)
    return ListNamespacesResponse(
        namespaces=[list(levels) for levels in listed.items], next_page_token=listed.next_token
    )


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


@router.post(
    ALL,
    operation_id="createNamespace",
    responses={
        **success(200, "The new namespace, with a computed `location` when none was given."),
        **fails(*_SEEN, errors.AlreadyExists, *BODY, *CHANGE),
    },
)
async def create_namespace(
    catalog: deps.Catalog, prefix: deps.Prefix, caller: deps.Writer, body: CreateNamespaceRequest
) -> NamespaceResponse:
    """Create a namespace, and those above it that are missing."""
    created = await namespaces.create_namespace(catalog, caller, prefix, tuple(body.namespace), body.properties or {})
    return _namespace(created)


@router.get(
    ONE,
    operation_id="loadNamespaceMetadata",
    responses={**success(200, "The namespace and its properties."), **fails(*_SEEN)},
)
async def load_namespace(catalog: deps.Catalog, prefix: deps.Prefix, levels: deps.Levels) -> NamespaceResponse:
    """Load a namespace's properties."""
    return _namespace(await namespaces.load_namespace(catalog, prefix, levels))


@router.head(
    ONE,
    operation_id="namespaceExists",
    status_code=204,
    responses={**success(204, "It exists."), **fails(*_SEEN, head=True)},
)
async def namespace_exists(catalog: deps.Catalog, prefix: deps.Prefix, levels: deps.Levels) -> Answer:
    """Tell whether a namespace exists."""
    await namespaces.namespace_exists(catalog, prefix, levels)
    return no_content()


@router.delete(
    ONE,
    operation_id="dropNamespace",
    status_code=204,
    responses={**success(204, "It is gone."), **fails(*_SEEN, errors.NamespaceNotEmpty, *CHANGE)},
)
async def drop_namespace(
    catalog: deps.Catalog, prefix: deps.Prefix, levels: deps.Levels, caller: deps.Writer
) -> Answer:
    """Drop a namespace that holds no tables, views or namespaces."""
    await namespaces.drop_namespace(catalog, caller, prefix, levels)
    return no_content()


@router.post(
    f"{ONE}/properties",
    operation_id="updateProperties",
    responses={
        **success(200, "What was set, removed, and not there to be removed."),
        **fails(*_SEEN, *BODY, *CHANGE),
    },
)
async def update_properties(
    catalog: deps.Catalog,
    prefix: deps.Prefix,
    levels: deps.Levels,
    caller: deps.Writer,
    body: UpdateNamespacePropertiesRequest,
) -> UpdateNamespacePropertiesResponse:
    """Set and remove properties of a namespace; a name in both lists is refused with 422."""
    result = await namespaces.update_properties(
        catalog, caller, prefix, levels, body.updates or {}, tuple(body.removals or ())
    )
    return UpdateNamespacePropertiesResponse(
        updated=list(result.updated), removed=list(result.removed), missing=list(result.missing)
    )


def _namespace(found: NamespaceView) -> NamespaceResponse:
    return NamespaceResponse(namespace=list(found.levels), properties=dict(found.properties))
