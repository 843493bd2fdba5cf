"""How much one JSON text may hold."""

from __future__ import annotations

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import SpecError
from app.spec.amounts import MOST_DIGITS, MOST_VALUES, check_amounts
from app.spec.codec import describe

LONG = b"9" * (MOST_DIGITS + 1)


@pytest.mark.parametrize("item", [b"{}", b"[]", b"1", b'{"a":{}}'])
def test_a_text_of_too_many_values_is_refused(item: bytes) -> None:
    """Whatever the values are, the count and the limit are named."""
    text = b'{"a":[' + b",".join([item] * (MOST_VALUES + 1)) + b"]}"
    with pytest.raises(SpecError, match=f"at most {MOST_VALUES} are read"):
        check_amounts(text)


def test_what_large_commits_hold_is_accepted() -> None:
    """10,000 snapshots with full summaries in one request, and a schema of 50,000 columns."""
    summary = {f"total-of-{number}": "1,000" for number in range(12)}
    snapshot = {"snapshot-id": 1, "sequence-number": 1, "timestamp-ms": 1, "manifest-list": "s3://b/x.avro"}
    updates = [{"action": "add-snapshot", "snapshot": {**snapshot, "summary": summary}}] * 10_000
    check_amounts(json.dumps({"requirements": [], "updates": updates}).encode())
    fields = [{"id": at, "name": f"c{at}", "required": False, "type": "long", "doc": "a, b"} for at in range(50_000)]
    check_amounts(json.dumps({"name": "t", "schema": {"type": "struct", "fields": fields}}).encode())


def test_text_in_strings_is_free() -> None:
    """20 MB of one string are one value."""
    check_amounts(b'{"a":"' + b"x" * 20_000_000 + b'"}')


@pytest.mark.parametrize("text", [LONG, b"-" + LONG, b"0." + LONG, b"1e" + LONG, b'{"\\\\":' + LONG, b'{"\\"":' + LONG])
def test_a_number_of_too_many_digits_is_refused(text: bytes) -> None:
    """As an integer, a fraction or an exponent, and whatever strings stand before it."""
    with pytest.raises(SpecError, match=f"more than {MOST_DIGITS} digits"):
        check_amounts(text)


@pytest.mark.parametrize("text", [b'"%b"', b'{"%b":1}', b'{"a\\"b":"%b"}', b'["\\\\\\"%b"]', b'["%b'])
def test_digits_in_a_string_are_text(text: bytes) -> None:
    """A hexadecimal default, say, also after escaped quotes, and in a string that is never closed."""
    check_amounts(text % LONG)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=4)))
def test_what_json_libraries_write_is_accepted(value: object) -> None:
    """The looks taken never mistake what a string holds for a number."""
    check_amounts(json.dumps(["0" * (MOST_DIGITS + 1), value, '"\\' + "1" * (MOST_DIGITS + 1)]).encode())


def test_the_looks_taken_copy_the_text_a_few_times_at_most() -> None:
    """Hostile text costs memory in proportion to itself."""
    text = (b'"\\""' + LONG + b",") * 4_000
    tracemalloc.start()
    try:
        with pytest.raises(SpecError):
            check_amounts(text)
        assert tracemalloc.get_traced_memory()[1] < 5 * len(text)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("value", ["x" * 10_000_000, ["x"] * 1_000_000, [{"k": "x" * 10_000}] * 10_000], ids=len)
def test_telling_a_value_does_not_depend_on_its_size(value: object) -> None:
    """A message shows 80 characters, and no more than those are made."""
    tracemalloc.start()
    try:
        assert len(describe(value)) == 80
        assert tracemalloc.get_traced_memory()[1] < 200_000
    finally:
        tracemalloc.stop()
