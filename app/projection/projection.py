"""Column projection: what answers for each field that a reader requests of one data file.

The law is the spec's section Column Projection. A file column is found by field id alone. For an id that the file
lacks, in this order: the value of an identity partition field, a column that the name mapping gives this id (only in
files without any ids), the initial-default, null. Files with neither ids nor a mapping are read by position, as the
reference implementation does. The plan is a value; the tests carry it out on files.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from app.errors import SpecError
from app.iceberg.name_mapping import MappedField, NameMapping
from app.iceberg.partition import PartitionSpec
from app.iceberg.promotion import promote_value
from app.iceberg.schema import Schema
from app.iceberg.types import (
    ListType,
    MapType,
    NestedField,
    StructType,
    Type,
    UnknownType,
    VariantType,
)
from app.projection.defaults import effective_default
from app.projection.file_schema import LIST_CHILDREN, MAP_CHILDREN, FileField, FileSchema, Shape
from app.projection.widening import readable


class Answer(enum.Enum):
    """What answers for a field."""

    FIELD_ID = "the file column with the field's ID"
    PARTITION = "the value of an identity partition field"
    NAME_MAPPING = "the file column that the name mapping gives the field's ID"
    POSITION = "the file column at the field's position"
    INITIAL_DEFAULT = "the initial-default"
    NULL = "null"


class Column(msgspec.Struct, frozen=True):
    """A file column answers. `position` is its index among its siblings in the file.

    `stored` is its type if that is a single value; where it differs from the field's type, values are widened.
    `children` are the plans of a struct's fields, a list's element, or a map's key and value, in requested order.
    """

    field: NestedField
    answer: Answer
    position: int
    stored: Type | None = None
    children: tuple[Projected, ...] = ()

    @property
    def promoted(self) -> bool:
        return self.stored is not None and self.stored != self.field.field_type


class Constant(msgspec.Struct, frozen=True):
    """One value answers in every row: canonical (`app.iceberg.values`), None for null."""

    field: NestedField
    answer: Answer
    value: Any = None


class Unreadable(msgspec.Struct, frozen=True):
    """Nothing may answer. `path` is the field's full dotted name."""

    field: NestedField
    path: str
    reason: str


Projected = Column | Constant | Unreadable


class PartitionValue(msgspec.Struct, frozen=True):
    """A canonical value of an identity partition field, with the type that it was written as."""

    value_type: Type
    value: Any


class Projection(msgspec.Struct, frozen=True):
    """The plan for one file, in the order of the requested schema.

    `matched_by` tells how file columns were recognised: by FIELD_ID, NAME_MAPPING or POSITION.
    """

    fields: tuple[Projected, ...]
    matched_by: Answer

    def walk(self) -> Iterator[Projected]:
        """Every plan at any depth, parents before children."""
        return _walk(self.fields)

    def find(self, field_id: int) -> Projected | None:
        """The plan of a field; None for an id that was not requested or lies inside a constant."""
        return next((plan for plan in self.walk() if plan.field.field_id == field_id), None)

    @property
    def faults(self) -> tuple[Unreadable, ...]:
        """Everything that keeps the file from being read."""
        return tuple(plan for plan in self.walk() if isinstance(plan, Unreadable))

    @property
    def positions(self) -> tuple[int, ...]:
        """The top-level file columns that have to be read, in file order."""
        return tuple(sorted({plan.position for plan in self.fields if isinstance(plan, Column)}))


def _walk(plans: Iterable[Projected]) -> Iterator[Projected]:
    for plan in plans:
        yield plan
        if isinstance(plan, Column):
            yield from _walk(plan.children)


_NO_PARTITION: Final[Mapping[int, PartitionValue]] = {}


def project(
    file: FileSchema | Schema,
    requested: Schema,
    mapping: NameMapping | None = None,
    partition: Mapping[int, PartitionValue] = _NO_PARTITION,
) -> Projection:
    """Plan the reading of a file under the requested schema.

    `file` is the file's own schema, or the table schema that a conforming writer used. `partition` holds what the
    manifest tells of the file's identity partition fields, by source field id; a null there is a value.
    """
    stored = FileSchema.of(file) if isinstance(file, Schema) else file
    if stored.has_ids or isinstance(file, Schema):
        return _Planner(Answer.FIELD_ID, partition).plan(stored, requested)
    if mapping is not None:
        return _Planner(Answer.NAME_MAPPING, partition).plan(mapped(stored, mapping), requested)
    return _Planner(Answer.POSITION, partition).plan(_numbered(stored), requested)


def identity_values(spec: PartitionSpec, values: Mapping[int, Any], schema: Schema) -> dict[int, PartitionValue]:
    """Partition values by source field id, from a partition tuple by partition field id.

    `schema` gives the types that the tuple was written with. Fields with another transform than identity say nothing
    about the column, and neither do fields that the tuple lacks.
    """
    return {
        part.source_id: PartitionValue(schema.by_id[part.source_id].field_type, values[part.field_id])
        for part in spec.fields
        if part.transform.is_identity and part.field_id in values and part.source_id in schema.by_id
    }


def mapped(file: FileSchema, mapping: NameMapping) -> FileSchema:
    """The file with the field ids that the mapping gives its columns; columns it does not name have none."""
    return FileSchema(_mapped_all(file.fields, [field.name for field in file.fields], mapping.fields))


def _mapped_all(
    fields: Sequence[FileField], names: Sequence[str], entries: tuple[MappedField, ...]
) -> tuple[FileField, ...]:
    here = NameMapping(entries)
    return tuple(_mapped(field, here.find((name,))) for field, name in zip(fields, names, strict=True))


def _mapped(field: FileField, entry: MappedField | None) -> FileField:
    names: Sequence[str] = [child.name for child in field.children]
    if field.shape == "list":
        names = LIST_CHILDREN
    elif field.shape == "map":
        names = MAP_CHILDREN
    return msgspec.structs.replace(
        field,
        field_id=None if entry is None else entry.field_id,
        children=_mapped_all(field.children, names, () if entry is None else entry.fields),
    )


def _numbered(file: FileSchema) -> FileSchema:
    """The file with 1, 2, ... as ids of its top-level columns; what is inside them is matched by position."""
    return FileSchema(tuple(msgspec.structs.replace(field, field_id=at) for at, field in enumerate(file.fields, 1)))


class _Planner:
    def __init__(self, matched_by: Answer, partition: Mapping[int, PartitionValue]) -> None:
        self._matched_by = matched_by
        self._partition = partition

    def plan(self, file: FileSchema, requested: Schema) -> Projection:
        return Projection(self._fields(requested.fields, file.fields, "", top=True), self._matched_by)

    def _fields(
        self, wanted: tuple[NestedField, ...], siblings: tuple[FileField, ...], prefix: str, *, top: bool
    ) -> tuple[Projected, ...]:
        if self._matched_by is Answer.POSITION and not top:
            places = {field.field_id: [at] for at, field in enumerate(wanted) if at < len(siblings)}
        else:
            places = {}
            for at, sibling in enumerate(siblings):
                if sibling.field_id is not None:
                    places.setdefault(sibling.field_id, []).append(at)
        return tuple(
            self._field(field, [(at, siblings[at]) for at in places.get(field.field_id, ())], prefix + field.name)
            for field in wanted
        )

    def _field(self, field: NestedField, found: list[tuple[int, FileField]], path: str) -> Projected:
        if isinstance(field.field_type, UnknownType):
            return Constant(field, Answer.NULL)
        by_id = self._matched_by is Answer.FIELD_ID
        if field.field_id in self._partition and not (by_id and found):
            return self._from_partition(field, path)
        if len(found) > 1:
            names = " and ".join(repr(column.name) for _, column in found)
            return Unreadable(field, path, f"file columns {names} both have its ID")
        if found:
            position, stored = found[0]
            plan = self._from_file(field, position, stored, path)
            if plan is not None:
                return plan
        return self._absent(field, path)

    def _from_partition(self, field: NestedField, path: str) -> Projected:
        known = self._partition[field.field_id]
        if known.value is None and field.required:
            return Unreadable(field, path, "it is required and its partition value is null")
        try:
            value = promote_value(known.value_type, known.value, field.field_type)
        except SpecError as fault:
            return Unreadable(field, path, f"its partition value does not fit: {fault.reason}")
        return Constant(field, Answer.PARTITION, value)

    def _absent(self, field: NestedField, path: str) -> Projected:
        try:
            value = effective_default(field, "initial", self._known_inside(field.field_type))
        except SpecError as fault:
            return Unreadable(field, path, f"the file lacks it and its initial-default does not hold: {fault.reason}")
        if value is not None:
            return Constant(field, Answer.INITIAL_DEFAULT, value)
        if field.required:
            return Unreadable(field, path, "it is required, the file lacks it, and it has no initial-default")
        return Constant(field, Answer.NULL)

    def _known_inside(self, struct: Type) -> dict[int, Any]:
        """The partition values of a struct's fields at any depth, as the types they are requested with."""
        if not self._partition or not isinstance(struct, StructType):
            return {}
        known: dict[int, Any] = {}
        for child in struct.fields:
            value = self._partition.get(child.field_id)
            if value is not None:
                known[child.field_id] = promote_value(value.value_type, value.value, child.field_type)
            known.update(self._known_inside(child.field_type))
        return known

    def _from_file(self, field: NestedField, position: int, stored: FileField, path: str) -> Projected | None:
        """None for a list or map whose elements have other ids than requested: it is another list or map."""
        wanted = field.field_type
        if stored.value_type is not None and isinstance(stored.value_type, UnknownType):
            return Column(field, self._matched_by, position, stored.value_type)
        if isinstance(wanted, VariantType) and stored.shape == "struct":
            return self._variant(field, position, stored, path)
        if stored.shape != _shape_of(wanted):
            return Unreadable(field, path, f"the file stores it as {stored.text}, which cannot be read as {wanted}")
        match wanted:
            case StructType(fields=fields):
                children = self._fields(fields, stored.children, f"{path}.", top=False)
                return Column(field, self._matched_by, position, None, children)
            case ListType():
                return self._collection(field, position, stored, (wanted.element_field,), path)
            case MapType():
                return self._collection(field, position, stored, (wanted.key_field, wanted.value_field), path)
        if stored.value_type is None or not readable(stored.value_type, wanted):
            return Unreadable(field, path, f"the file stores it as {stored.text}, which cannot be read as {wanted}")
        return Column(field, self._matched_by, position, stored.value_type)

    def _variant(self, field: NestedField, position: int, stored: FileField, path: str) -> Projected:
        names = {child.name for child in stored.children}
        if names == {"metadata", "value"}:
            return Column(field, self._matched_by, position, field.field_type)
        reason = "its variants are shredded, which this reader does not put together"
        if "typed_value" not in names:
            reason = f"the file stores it as {stored.text}, which cannot be read as {field.field_type}"
        return Unreadable(field, path, reason)

    def _collection(
        self, field: NestedField, position: int, stored: FileField, wanted: tuple[NestedField, ...], path: str
    ) -> Projected | None:
        positional = self._matched_by is Answer.POSITION
        children = []
        for at, (inner, child) in enumerate(zip(wanted, stored.children, strict=True)):
            if not positional and child.field_id != inner.field_id:
                return None
            children.append(self._field(inner, [(at, child)], f"{path}.{inner.name}"))
        return Column(field, self._matched_by, position, None, tuple(children))


def _shape_of(wanted: Type) -> Shape:
    match wanted:
        case StructType():
            return "struct"
        case ListType():
            return "list"
        case MapType():
            return "map"
    return "value"
