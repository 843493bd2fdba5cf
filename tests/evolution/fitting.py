"""Which transforms take which types, written down from the spec's table of partition transforms and from nothing else.

Independent of `app.spec.transforms`, so that a mistake there does not excuse itself here.
"""

from __future__ import annotations

import re
from typing import Final

from app.spec.table import TableMetadata

_TIMESTAMPS: Final = {"timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"}
_BUCKETED: Final = {"int", "long", "decimal", "date", "time", "string", "uuid", "fixed", "binary"} | _TIMESTAMPS
_NO_BUCKET: Final = {"boolean", "float", "double", "unknown"}

TAKEN: Final = {
    "identity": _BUCKETED | _NO_BUCKET,
    "bucket": _BUCKETED,
    "truncate": {"int", "long", "decimal", "string", "binary"},
    "year": {"date"} | _TIMESTAMPS,
    "month": {"date"} | _TIMESTAMPS,
    "day": {"date"} | _TIMESTAMPS,
    "hour": _TIMESTAMPS,
    "void": _BUCKETED | _NO_BUCKET | {"geometry", "geography", "variant", "struct", "list", "map"},
}
TYPES: Final = (
    "boolean", "int", "long", "float", "double", "decimal(9, 2)", "date", "time", "timestamp", "timestamptz",
    "timestamp_ns", "timestamptz_ns", "string", "uuid", "fixed[16]", "binary", "unknown",
)  # fmt: skip
V2_TYPES: Final = tuple(kind for kind in TYPES if not kind.endswith("_ns") and kind != "unknown")
TRANSFORMS: Final = ("identity", "bucket[8]", "truncate[4]", "year", "month", "day", "hour", "void")


def takes(transform: str, kind: str) -> bool:
    """Whether the transform is defined for the type, both in their wire spelling."""
    return _root(kind) in TAKEN[_root(transform)]


def unbound(table: TableMetadata) -> list[int]:
    """The specs of which a field has a source in the current schema that its transform does not take."""
    types = {field_id: str(field.field_type) for field_id, field in table.schema.by_id.items()}
    found = []
    for spec in table.partition_specs:
        sources = [(str(part.transform), types[i]) for part in spec.fields for i in part.source_ids if i in types]
        nested = any(
            _root(types[above.field_id]) in ("list", "map")
            for part in spec.fields
            for i in part.source_ids
            if i in types and not part.transform.is_void
            for above in table.schema.ancestors(i)
        )
        if nested or not all(takes(*source) for source in sources):
            found.append(spec.spec_id)
    return found


def _root(text: str) -> str:
    return re.match(r"\w+", text)[0]  # type: ignore[index]
