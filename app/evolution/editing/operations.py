"""Operations on a schema as a person thinks of them, and their JSON form.

An operation names columns by path: a full dotted name (`address.zip`, `lines.element.price`; engines' short form
`lines.price` works too), or a list of names where a name itself holds a dot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET

from app.errors import BadRequest
from app.evolution.editing.schema_builder import Path, shown
from app.evolution.editing.schema_input import Wanted, wanted_schema, wanted_type
from app.iceberg.json.codec import (
    Json,
    as_list,
    as_object,
    as_str,
    optional_bool,
    optional_int32,
    optional_str,
    required,
    required_int64,
    required_str,
)
from app.iceberg.types import Type

MOST_OPERATIONS: Final = 20_000
"""Operations of one plan: each column of a table of 10,000 renamed and moved."""
MOST_DECLARATIONS: Final = 10
"""Of them, those that go through the whole schema."""

Where = Literal["first", "before", "after"]


class Position(msgspec.Struct, frozen=True):
    """A place among siblings. `sibling` is a full path or the name alone; None for `first`."""

    where: Where
    sibling: Path | None = None


class Add(msgspec.Struct, frozen=True):
    """A new column. Defaults are decoded JSON, UNSET for none."""

    path: Path
    type: Type
    required: bool = False
    doc: str | None = None
    initial_default: Any = UNSET
    write_default: Any = UNSET
    position: Position | None = None


class Drop(msgspec.Struct, frozen=True):
    path: Path


class Rename(msgspec.Struct, frozen=True):
    path: Path
    to: str


class Move(msgspec.Struct, frozen=True):
    path: Path
    position: Position


class Promote(msgspec.Struct, frozen=True):
    path: Path
    type: Type


class Require(msgspec.Struct, frozen=True):
    """Make a column optional, or required where nothing was written yet."""

    path: Path
    required: bool


class SetDoc(msgspec.Struct, frozen=True):
    path: Path
    doc: str | None


class SetWriteDefault(msgspec.Struct, frozen=True):
    """`value` is decoded JSON; None takes the default back."""

    path: Path
    value: Any


class SetIdentifierFields(msgspec.Struct, frozen=True):
    paths: tuple[Path, ...]


class UnionByName(msgspec.Struct, frozen=True):
    """Add what the wanted schema has more, widen what it has wider; nothing else."""

    wanted: Wanted


class Declare(msgspec.Struct, frozen=True):
    """Become the wanted schema: matched by name (a field may say `renamed-from`), or by its own field IDs."""

    wanted: Wanted
    match: Literal["name", "id"]


class Restore(msgspec.Struct, frozen=True):
    """Bring a dropped column back under its old ID, found by that ID or by the last name it had."""

    field_id: int | None = None
    path: Path | None = None
    name: str | None = None
    required: bool = False
    position: Position | None = None


class RollbackTo(msgspec.Struct, frozen=True):
    """Set a branch back to a snapshot, and the schema to the one that the snapshot was written under.

    `main` may be gone, as after a replacement; it is made again.
    """

    snapshot_id: int
    branch: str = "main"


class ReplaceAs(msgspec.Struct, frozen=True):
    """Another type where no promotion is legal: the old column is kept under `keep_as`, a new one takes its name."""

    path: Path
    type: Type
    keep_as: str
    doc: str | None = None


Operation = (
    Add
    | Drop
    | Rename
    | Move
    | Promote
    | Require
    | SetDoc
    | SetWriteDefault
    | SetIdentifierFields
    | UnionByName
    | Declare
    | Restore
    | RollbackTo
    | ReplaceAs
)

_Obj = dict[str, Json]


def parse_operations(value: Json, path: str = "$.operations") -> tuple[Operation, ...]:
    """From decoded JSON. BadRequest for an unknown operation, SpecError for its form."""
    items = as_list(value, path)
    if not items:
        raise BadRequest("No operations are given")
    if len(items) > MOST_OPERATIONS:
        raise BadRequest(
            f"{len(items)} operations are given, and at most {MOST_OPERATIONS} make one plan. Apply it in several parts"
        )
    operations = tuple(_operation(item, f"{path}[{at}]") for at, item in enumerate(items))
    declared = sum(isinstance(operation, Declare) for operation in operations)
    if declared > MOST_DECLARATIONS:
        raise BadRequest(f"{declared} schemas are declared, and at most {MOST_DECLARATIONS} are in one plan")
    return operations


def describe(operation: Operation) -> str:
    """A few words for messages: `rename sku`, `add address.zip`."""
    verb = _VERBS[type(operation)]
    if isinstance(operation, Require):
        verb = "make-required" if operation.required else "make-optional"
    path = getattr(operation, "path", None)
    if path is not None:
        return f"{verb} {shown(path)}"
    if isinstance(operation, Restore):
        return f"{verb} field {operation.field_id}"
    if isinstance(operation, RollbackTo):
        return f"{verb} {operation.snapshot_id}"
    return verb


def _operation(item: Json, path: str) -> Operation:
    obj = as_object(item, path)
    name = required_str(obj, "op", path).lower()
    reader = _READERS.get(name)
    if reader is None:
        raise BadRequest(f"Unknown operation: {name} (at {path}.op). There are {', '.join(sorted(_READERS))}")
    return reader(obj, path)


def _path(value: Json, path: str) -> Path:
    if type(value) is list:
        parts = tuple(as_str(part, path) for part in value)
        if parts:
            return parts
    elif type(value) is str and value:
        return value
    raise BadRequest(f'Not the path of a column: write `a.b` or ["a", "b"] (at {path})')


def _own(obj: _Obj, path: str) -> Path:
    return _path(required(obj, "path", path), f"{path}.path")


def _type(obj: _Obj, path: str) -> Type:
    return wanted_type(required(obj, "type", path), f"{path}.type")


def _position(obj: _Obj, path: str) -> Position | None:
    """`"first": true`, `"after": path` or `"before": path`, at most one of them."""
    given = [key for key in ("first", "before", "after") if obj.get(key) not in (None, False)]
    if len(given) > 1:
        raise BadRequest(f"Only one of first, before and after can hold (at {path})")
    if not given:
        return None
    if given[0] == "first":
        optional_bool(obj, "first", path)
        return Position("first")
    where: Where = "before" if given[0] == "before" else "after"
    return Position(where, _path(obj[where], f"{path}.{where}"))


def _add(obj: _Obj, path: str) -> Add:
    both = obj.get("default")
    initial, write = obj.get("initial-default", both), obj.get("write-default", both)
    return Add(
        _own(obj, path),
        _type(obj, path),
        optional_bool(obj, "required", path) or False,
        optional_str(obj, "doc", path),
        UNSET if initial is None else initial,
        UNSET if write is None else write,
        _position(obj, path),
    )


def _move(obj: _Obj, path: str) -> Move:
    position = _position(obj, path)
    if position is None:
        raise BadRequest(f"One of first, before and after is needed (at {path})")
    return Move(_own(obj, path), position)


def _set_doc(obj: _Obj, path: str) -> SetDoc:
    if "doc" not in obj:
        raise BadRequest(f"Missing field: doc (null takes it away) (at {path})")
    return SetDoc(_own(obj, path), optional_str(obj, "doc", path))


def _set_write_default(obj: _Obj, path: str) -> SetWriteDefault:
    if "value" not in obj:
        raise BadRequest(f"Missing field: value (null takes the default back) (at {path})")
    return SetWriteDefault(_own(obj, path), obj["value"])


def _set_identifiers(obj: _Obj, path: str) -> SetIdentifierFields:
    paths = as_list(required(obj, "paths", path), f"{path}.paths")
    return SetIdentifierFields(tuple(_path(item, f"{path}.paths[{at}]") for at, item in enumerate(paths)))


def _declare(obj: _Obj, path: str) -> Declare:
    return declare(wanted_schema(obj, path), optional_str(obj, "match", path), path)


def declare(wanted: Wanted, match: str | None = None, path: str = "$") -> Declare:
    """A declaration, matched by ID when every field has one and nothing else is said."""
    if match is None:
        return Declare(wanted, "id" if wanted.numbered else "name")
    if match == "id" and wanted.numbered:
        return Declare(wanted, "id")
    if match == "name":
        return Declare(wanted, "name")
    raise BadRequest(f"Invalid match: {match} (name, or id when every field has an id) (at {path}.match)")


def _restore(obj: _Obj, path: str) -> Restore:
    field_id, column = optional_int32(obj, "field-id", path), obj.get("path")
    if (field_id is None) == (column is None):
        raise BadRequest(f"Exactly one of field-id and path is needed (at {path})")
    return Restore(
        field_id,
        None if column is None else _path(column, f"{path}.path"),
        optional_str(obj, "as", path),
        optional_bool(obj, "required", path) or False,
        _position(obj, path),
    )


_READERS: Mapping[str, Callable[[_Obj, str], Operation]] = {
    "add": _add,
    "drop": lambda obj, path: Drop(_own(obj, path)),
    "rename": lambda obj, path: Rename(_own(obj, path), required_str(obj, "to", path)),
    "move": _move,
    "promote": lambda obj, path: Promote(_own(obj, path), _type(obj, path)),
    "make-optional": lambda obj, path: Require(_own(obj, path), False),
    "make-required": lambda obj, path: Require(_own(obj, path), True),
    "set-doc": _set_doc,
    "set-write-default": _set_write_default,
    "set-identifier-fields": _set_identifiers,
    "union-by-name": lambda obj, path: UnionByName(wanted_schema(obj, path)),
    "declare": _declare,
    "restore": _restore,
    "rollback-to": lambda obj, path: RollbackTo(
        required_int64(obj, "snapshot-id", path), optional_str(obj, "branch", path) or "main"
    ),
    "replace-as": lambda obj, path: ReplaceAs(
        _own(obj, path), _type(obj, path), required_str(obj, "keep-as", path), optional_str(obj, "doc", path)
    ),
}
_VERBS: Mapping[type[Any], str] = {
    Add: "add",
    Drop: "drop",
    Rename: "rename",
    Move: "move",
    Promote: "promote",
    Require: "make-optional",
    SetDoc: "set-doc",
    SetWriteDefault: "set-write-default",
    SetIdentifierFields: "set-identifier-fields",
    UnionByName: "union-by-name",
    Declare: "declare",
    Restore: "restore",
    RollbackTo: "rollback-to",
    ReplaceAs: "replace-as",
}
