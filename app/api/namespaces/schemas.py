"""Bodies of the namespace operations."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from app.api.shapes import Answered, Properties, Shape, Strings

Namespace = Annotated[list[str], Field(description="Levels of a namespace, outermost first.")]


class ListNamespacesResponse(Answered):
    """A page of namespaces, each as its full path."""

    namespaces: list[Namespace]
    next_page_token: str | None = None


class CreateNamespaceRequest(Shape):
    """A new namespace."""

    namespace: Strings
    properties: Properties | None = None


class NamespaceResponse(Answered):
    """A namespace and its properties."""

    namespace: Namespace
    properties: dict[str, str]


class UpdateNamespacePropertiesRequest(Shape):
    """Properties to set and to remove; no name may be in both."""

    removals: Strings | None = None
    updates: Properties | None = None


class UpdateNamespacePropertiesResponse(Answered):
    """What was done; `missing` are removals of properties that were not set."""

    updated: list[str]
    removed: list[str]
    missing: list[str]
