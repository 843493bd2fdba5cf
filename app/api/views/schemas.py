"""Bodies of the view operations. Embedded documents are read by the parsers of `app.iceberg`, not here."""

from __future__ import annotations

from app.api.documents import Schema, ViewMetadata, ViewVersion
from app.api.shapes import Embedded, Properties, Shape, TableIdentifier
from app.api.updates import ViewRequirement, ViewUpdate


class CreateViewRequest(Shape):
    """A new view; the schema id inside `view-version` is replaced by the one given to `schema`."""

    name: str
    schema_: Embedded[Schema]
    view_version: Embedded[ViewVersion]
    location: str | None = None
    properties: Properties | None = None


class CommitViewRequest(Shape):
    """Updates of a view."""

    updates: Embedded[list[ViewUpdate]]
    requirements: Embedded[list[ViewRequirement]] | None = None
    identifier: TableIdentifier | None = None


class RegisterViewRequest(Shape):
    """An existing view metadata file to be known under a name."""

    name: str
    metadata_location: str


class LoadViewResult(Shape):
    """A view as it is now."""

    metadata_location: str
    metadata: ViewMetadata
    config: Properties | None = None
