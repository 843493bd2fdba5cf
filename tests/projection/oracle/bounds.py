"""Column bounds of a data file, decoded under the schema that a reader uses (table spec: Appendix D, Schema Evolution).

Bounds are bytes without a type, written before any later promotion; their length tells what they were written as.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from app.errors import SpecError
from app.iceberg.bounds import from_bytes
from app.iceberg.schema import Schema
from app.iceberg.types import is_primitive


class Bounds(msgspec.Struct, frozen=True):
    """Canonical values; None where a side has no bound. Bounds of strings and bytes may be cut short."""

    lower: Any = None
    upper: Any = None


class DecodedBounds(msgspec.Struct, frozen=True):
    """`by_id` holds fields with at least one bound; `faults` why a bound was left out, by field id."""

    by_id: Mapping[int, Bounds]
    faults: Mapping[int, str]


def decode_bounds(schema: Schema, lower: Mapping[int, bytes], upper: Mapping[int, bytes]) -> DecodedBounds:
    """The bounds of the schema's primitive fields, from the maps of a manifest entry.

    Ids that the schema lacks are dropped columns and skipped. A bound that cannot be decoded counts as no bound, so
    that it never hides a row, and is reported as a fault.
    """
    found: dict[int, Bounds] = {}
    faults: dict[int, str] = {}
    for field_id in dict.fromkeys((*lower, *upper)):
        field = schema.by_id.get(field_id)
        if field is None or not is_primitive(field.field_type):
            continue
        try:
            bounds = Bounds(
                *(
                    None if data is None else from_bytes(field.field_type, data)
                    for data in (lower.get(field_id), upper.get(field_id))
                )
            )
        except SpecError as fault:
            faults[field_id] = fault.reason
            continue
        if bounds != Bounds():
            found[field_id] = bounds
    return DecodedBounds(found, faults)
