"""Arrow IPC schema messages, as Arrow itself writes them."""

from __future__ import annotations

import struct
from contextlib import suppress

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import BadRequest
from app.evolution.arrow_ipc import fields_of


@pytest.mark.parametrize(
    ("arrow", "iceberg"),
    [
        (pa.bool_(), "boolean"), (pa.int8(), "int"), (pa.int16(), "int"), (pa.int32(), "int"), (pa.int64(), "long"),
        (pa.uint8(), "int"), (pa.uint16(), "int"), (pa.uint32(), "long"), (pa.float16(), "float"),
        (pa.float32(), "float"), (pa.float64(), "double"), (pa.decimal128(9, 2), "decimal(9, 2)"),
        (pa.date32(), "date"), (pa.time64("us"), "time"), (pa.timestamp("us"), "timestamp"),
        (pa.timestamp("us", "UTC"), "timestamptz"), (pa.timestamp("ns"), "timestamp_ns"),
        (pa.timestamp("ns", "Europe/Berlin"), "timestamptz_ns"), (pa.timestamp("s"), "timestamp"),
        (pa.string(), "string"), (pa.large_string(), "string"), (pa.string_view(), "string"), (pa.binary(), "binary"),
        (pa.large_binary(), "binary"), (pa.binary(16), "fixed[16]"), (pa.uuid(), "uuid"), (pa.null(), "unknown"),
    ],
)  # fmt: skip
def test_a_type_becomes_that_of_iceberg(arrow: pa.DataType, iceberg: str) -> None:
    """The narrowest that holds every value."""
    (found,) = fields_of(pa.schema([("a", arrow)]).serialize().to_pybytes())
    assert found == {"name": "a", "required": False, "type": iceberg}


def test_nesting_is_kept() -> None:
    """Structs, lists of every kind and maps, with what is required inside."""
    inner = pa.struct([pa.field("x", pa.int32(), nullable=False)])
    made = pa.schema([
        pa.field("s", inner, nullable=False, metadata={"doc": "a struct"}),
        ("l", pa.large_list(pa.field("item", pa.string(), nullable=False))),
        ("m", pa.map_(pa.string(), inner)),
    ])  # fmt: skip
    struct = {"type": "struct", "fields": [{"name": "x", "required": True, "type": "int"}]}
    assert fields_of(made.serialize().to_pybytes()) == [
        {"name": "s", "required": True, "type": struct, "doc": "a struct"},
        {"name": "l", "required": False, "type": {"type": "list", "element": "string", "element-required": True}},
        {"name": "m", "required": False, "type": {
            "type": "map", "key": "string", "value": struct, "value-required": False}},
    ]  # fmt: skip


def test_the_start_of_a_stream_will_do() -> None:
    """What an Arrow program writes first."""
    made = pa.schema([("a", pa.int64()), ("ä.b", pa.string())])
    sink = pa.BufferOutputStream()
    pa.ipc.new_stream(sink, made).close()
    assert fields_of(sink.getvalue().to_pybytes()) == fields_of(made.serialize().to_pybytes())
    assert [f["name"] for f in fields_of(made.serialize().to_pybytes())] == ["a", "ä.b"]


@pytest.mark.parametrize("arrow", [pa.uint64(), pa.duration("s"), pa.month_day_nano_interval()])
def test_a_type_that_iceberg_lacks_is_refused(arrow: pa.DataType) -> None:
    """By the column's name."""
    with pytest.raises(BadRequest, match="Column price has the Arrow type"):
        fields_of(pa.schema([("price", arrow)]).serialize().to_pybytes())


GOOD = pa.schema([("a", pa.int64()), ("l", pa.list_(pa.struct([("x", pa.string())])))]).serialize().to_pybytes()


@given(st.binary(max_size=200) | st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)))
def test_any_bytes_are_a_schema_or_a_bad_request(given_bytes: bytes | tuple[int, int]) -> None:
    """Random bytes, and a good message with one byte changed: no crash, no endless reading."""
    if isinstance(given_bytes, tuple):
        at, value = given_bytes
        given_bytes = GOOD[:at] + bytes([value]) + GOOD[at + 1 :]
    with suppress(BadRequest):
        fields_of(given_bytes)


def _shared(levels: int, width: int, name: bytes = b"x") -> bytes:
    """A schema of `levels` structs, each with one field `width` times: offsets that all lead to the same place."""
    out = bytearray(struct.pack("<I", 0))

    def table(*slots: int) -> int:
        """A table of offset members; where it starts."""
        vtable = len(out)
        out.extend(struct.pack(f"<HH{len(slots)}H", 4 + 2 * len(slots), 4 + 4 * len(slots), *slots))
        out.extend(b"\0" * (-len(out) % 4))
        at = len(out)
        out.extend(struct.pack("<i", at - vtable) + b"\0" * 4 * len(slots))
        return at

    def point(place: int, target: int) -> None:
        struct.pack_into("<I", out, place, target - place)

    message = table(0, 4, 8)
    out[message + 4] = 1
    schema = table(0, 4)
    point(message + 8, schema)
    holder = schema + 4
    for level in range(levels + 1):
        vector = len(out)
        out.extend(struct.pack("<I", width) + b"\0" * 4 * width)
        point(holder, vector)
        field = table(4, 0, 8, 0, 0, 12)
        struct.pack_into("<B", out, field + 8, 13 if level < levels else 1)
        for at in range(width):
            point(vector + 4 + 4 * at, field)
        text = len(out)
        out.extend(struct.pack("<I", len(name)) + name + b"\0" * (-len(name) % 4))
        point(field + 4, text)
        holder = field + 12
    struct.pack_into("<I", out, 0, message)
    return bytes(out)


def test_what_is_told_once_may_be_meant_more_than_once() -> None:
    """Fields may share their text."""
    assert fields_of(_shared(0, 1)) == [{"name": "x", "required": True, "type": "unknown"}]
    assert len(fields_of(_shared(0, 3))) == 3


@pytest.mark.parametrize(("levels", "width", "name"), [(60, 2, b"x"), (1, 2_000, b"x"), (0, 50_000, b"x" * 50_000)])
def test_a_message_cannot_spell_more_than_it_holds(levels: int, width: int, name: bytes) -> None:
    """Fields that lead to one place again and again are refused: 60 levels of two would be 10^18 fields."""
    with pytest.raises(BadRequest, match="share so much"):
        fields_of(_shared(levels, width, name))
