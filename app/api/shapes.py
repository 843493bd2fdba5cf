"""What the shapes of all resources share: member names in kebab case, strict values, embedded Iceberg documents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, FailFast, Field, GetCoreSchemaHandler, ValidationInfo, model_validator
from pydantic_core import CoreSchema, core_schema

from app.errors import BadRequest, SpecError, dotted
from app.iceberg.json import codec

Int32 = Annotated[int, Field(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]


def kebab(name: str) -> str:
    """`snapshot_id` as `snapshot-id`; a trailing underscore keeps a member off a Python name."""
    return name.rstrip("_").replace("_", "-")


class Shape(BaseModel):
    """Base of every request. Values are taken as they are: no text becomes a number. Unknown members are ignored."""

    model_config = ConfigDict(alias_generator=kebab, strict=True, extra="ignore")


class OwnShape(Shape):
    """Base of the requests of our own API: an unknown member is a misspelling, so it is refused."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _known(cls, given: Any) -> Any:
        """The first unknown member alone: pydantic would write a fault for each of a hundred thousand."""
        members = {field.alias or name for name, field in cls.model_fields.items()}
        unknown = next((name for name in given if name not in members), None) if isinstance(given, dict) else None
        if unknown is not None:
            raise BadRequest(f"Unknown field: {unknown!a}. There are {', '.join(sorted(members))}")
        return given


class Answered(Shape):
    """Base of the answers that are made here, by the names of Python."""

    model_config = ConfigDict(populate_by_name=True)


class _Read:
    """Marks a member that one of our own parsers reads: it stops at the first fault, and knows its place.

    pydantic collects a fault for every element, which for half a million of them takes seconds and hundreds of MB.
    """

    def __init__(self, parse: Callable[[Any, str], Any]) -> None:
        self._parse = parse

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        documented = handler(source)

        def read(value: Any, info: ValidationInfo) -> Any:
            name = kebab(info.field_name or "")
            if value is None:
                raise SpecError(f"Cannot parse missing field: {name}")
            return self._parse(value, f"$.{name}")

        return core_schema.with_info_plain_validator_function(
            read,
            metadata={"pydantic_js_annotation_functions": [lambda _, document: document(documented)]},
            serialization=core_schema.wrap_serializer_function_ser_schema(lambda v, h: h(v), schema=documented),
        )


def _as_it_came(value: Any, path: str) -> Any:
    return value


def _changes(value: Any, path: str) -> dict[str, str | None]:
    found = codec.as_object(value, path)
    return {name: None if item is None else codec.as_str(item, f"{path}.{name}") for name, item in found.items()}


def _strings(value: Any, path: str) -> list[str]:
    return list(codec.as_str_list(value, path))


ShapeT = TypeVar("ShapeT")

Embedded = Annotated[ShapeT, _Read(_as_it_came)]
"""A document inside a body: documented as its shape, taken as it came, and read by a parser of `app.iceberg`."""

Properties = Annotated[dict[str, str], _Read(codec.as_str_map)]
PropertyChanges = Annotated[dict[str, str | None], _Read(_changes)]
"""What to set; null removes."""

Strings = Annotated[list[str], _Read(_strings)]
Some = Annotated[list[ShapeT], FailFast()]
"""A list whose first fault is the only one that is told."""


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

    namespace: Strings
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
