"""Typed decoding and its errors."""

from __future__ import annotations

import msgspec
import pytest

from app.errors import SpecError
from app.iceberg.json.typed import Int32, convert_typed, decode_typed, drop_nulls


class Point(msgspec.Struct, rename="kebab"):
    left_x: Int32
    label: str = "none"


def test_faults_carry_their_path() -> None:
    """The path of the value and the path inside it are joined."""
    with pytest.raises(SpecError) as caught:
        decode_typed(msgspec.json.Decoder(list[Point]), b'[{"left-x":1},{"left-x":"2"}]', "$.points")
    assert caught.value.path == "$.points[1].left-x"
    with pytest.raises(SpecError) as caught:
        convert_typed({"left-x": 2**31}, Point, "$.p")
    assert caught.value.path == "$.p.left-x"


def test_null_members_count_as_absent() -> None:
    """At the top of the converted value, and at every depth when asked."""
    assert convert_typed({"left-x": 1, "label": None}, Point, "$") == Point(1)
    assert drop_nulls({"a": None, "b": [None, {"c": None}]}) == {"b": [None, {}]}


@pytest.mark.parametrize("value", [None, [], "x", 1])
def test_only_objects_convert(value: object) -> None:
    """Anything else is a fault of form."""
    with pytest.raises(SpecError):
        convert_typed(value, Point, "$")
