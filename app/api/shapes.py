"""What the shapes of all resources share: member names in kebab case, strict values, embedded Iceberg documents."""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, SkipValidation

from app.errors import BadRequest, dotted

Int32 = Annotated[int, Field(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]
Properties = dict[str, str]


def kebab(name: str) -> str:
    """`snapshot_id` as `snapshot-id`; a trailing underscore keeps a member off a Python name."""
    return name.rstrip("_").replace("_", "-")


class Shape(BaseModel):
    """Base of every body. Values are taken as they are: no text becomes a number. Unknown members are ignored."""

    model_config = ConfigDict(alias_generator=kebab, populate_by_name=True, strict=True, extra="ignore")


class OwnShape(Shape):
    """Base of the bodies of our own API: an unknown member is a misspelling, so it is refused."""

    model_config = ConfigDict(extra="forbid")


ShapeT = TypeVar("ShapeT")

Embedded = SkipValidation[ShapeT]
"""A document inside a body: documented as its shape, taken as it came, and read by a parser of `app.iceberg`."""


class FindingModel(Shape):
    """One fault of a schema change, with the rule that found it and a fix."""

    code: str
    rule: str
    severity: str
    message: str
    fix: str
    spec: str
    field_id: int | None = None
    path: str | None = None
    before: str | None = None
    after: str | None = None
    waived_by: str | None = None


class ErrorModel(Shape):
    """What went wrong. `code` equals the HTTP status; `findings` come with refused schema changes."""

    message: str
    type: str
    code: int
    findings: list[FindingModel] | None = None


class ErrorResponse(Shape):
    """The body of every answer that is not a success."""

    error: ErrorModel


class TableIdentifier(Shape):
    """A table or view by namespace and name."""

    namespace: list[str]
    name: str


class ListTablesResponse(Shape):
    """A page of tables or views."""

    identifiers: list[TableIdentifier]
    next_page_token: str | None = None


class RenameTableRequest(Shape):
    """From where to where."""

    source: TableIdentifier
    destination: TableIdentifier


def identifier(of: TableIdentifier) -> tuple[tuple[str, ...], str]:
    """Levels and name."""
    return tuple(of.namespace), of.name


def check_identifier(said: TableIdentifier | None, levels: tuple[str, ...], name: str) -> None:
    """BadRequest unless the `identifier` of a commit, which may be absent, is what the path names."""
    if said is not None and identifier(said) != (levels, name):
        raise BadRequest(
            f"Invalid commit: $.identifier is {dotted(said.namespace, said.name)}, "
            f"but the path of the request names {dotted(levels, name)}"
        )
