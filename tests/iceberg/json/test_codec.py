"""Strict reading of JSON."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import SpecError
from app.iceberg.json import codec
from tests.iceberg.strategies import JSON_VALUES


@given(JSON_VALUES)
def test_decoding_reads_back_what_encoding_wrote(value: Any) -> None:
    """Every JSON value survives encode and decode, with ints and floats kept apart."""
    again = codec.decode(codec.encode(value))
    assert repr(again) == repr(value)


@given(st.binary(max_size=60) | st.text(max_size=30).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_decoding_arbitrary_bytes_only_ever_raises_spec_error(data: bytes) -> None:
    """Garbage is a SpecError, never another exception."""
    with contextlib.suppress(SpecError):
        codec.decode(data)


@pytest.mark.parametrize(
    "data",
    [
        b"", b" ", b"[1", b"1 2", b"{}}", b"nul", b"NaN", b"Infinity", b"-Infinity", b"1e400", b"01", b"'a'",
        b"{'a':1}", b"[1,]", b'"\xff"', b'"\\ud800"', b'{"\\ud800":1}', b'"\x01"', b"\xef\xbb\xbf1", b"\xff\xfe1\x00",
        b"[" * 200_000, b'{"a":' * 200_000, b"9" * 5000,
    ],
    ids=lambda data: repr(data[:12]),
)  # fmt: skip
def test_malformed_json_is_refused(data: bytes) -> None:
    """Truncated, trailing, non-finite, non-Unicode and endlessly nested texts are SpecErrors with their path."""
    with pytest.raises(SpecError) as caught:
        codec.decode(data, "$.schema")
    assert caught.value.path == "$.schema"


@pytest.mark.parametrize("number", [9007199254740993, 8103159149723679873, 2**63 - 1, -(2**63), 2**64, 10**30], ids=str)
def test_large_integers_stay_exact(number: int) -> None:
    """No integer goes through a float, whatever its size (O-33)."""
    assert codec.decode(str(number).encode()) == number
    assert codec.encode({"id": number}) == b'{"id":%d}' % number


def test_text_that_is_no_unicode_is_refused() -> None:
    """A str from elsewhere may hold lone surrogates."""
    with pytest.raises(SpecError, match="Unicode"):
        codec.decode('"\ud800"')


def test_the_last_of_equal_keys_wins() -> None:
    """In stored documents duplicate object keys behave as in the reference implementation."""
    assert codec.decode(b'{"a":1,"b":2,"a":3}') == {"a": 3, "b": 2}


def test_a_float_without_fraction_keeps_its_point() -> None:
    """1.0 is a float when read and is written as 1.0 again."""
    value = codec.decode(b"1.0")
    assert type(value) is float
    assert codec.encode(value) == b"1.0"


def test_what_has_no_json_form_is_a_spec_error() -> None:
    """Encoding refuses lone surrogates, foreign objects and endless nesting."""
    endless: list[Any] = []
    endless.append(endless)
    for value in ("\ud800", object(), endless):
        with pytest.raises(SpecError):
            codec.encode(value)


@pytest.mark.parametrize(
    ("read", "good", "bad"),
    [
        (codec.as_int32, [0, 2**31 - 1, -(2**31)], [True, 1.0, "1", 2**31, -(2**31) - 1, None, [1]]),
        (codec.as_int64, [0, 2**63 - 1, -(2**63)], [False, 1.0, "1", 2**63, -(2**63) - 1, None]),
        (codec.as_str, ["", "a"], [1, True, None, ["a"]]),
        (codec.as_bool, [True, False], [0, 1, "true", None]),
        (codec.as_list, [[], [1]], [(), {}, "[]", None]),
        (codec.as_object, [{}, {"a": 1}], [[], "{}", None]),
        (codec.as_int32_list, [[], [1]], [[True], [1.5], {}, [None]]),
        (codec.as_int64_list, [[], [2**40]], [[True], [2**63], None]),
        (codec.as_str_list, [[], ["a"]], [["a", 1], "a"]),
        (codec.as_str_map, [{}, {"a": "b"}], [{"a": 1}, {"a": None}, []]),
    ],
)
def test_readers_take_their_kind_and_nothing_else(
    read: Callable[[Any, str], Any], good: list[Any], bad: list[Any]
) -> None:
    """A bool is no int, a float is no int, ranges hold, and every refusal names its path."""
    for value in good:
        result = read(value, "$.x")
        assert (list(result) if isinstance(result, tuple) else result) == value
    for value in bad:
        with pytest.raises(SpecError) as caught:
            read(value, "$.x")
        assert caught.value.path.startswith("$.x")


def test_null_counts_as_absent() -> None:
    """required refuses null as it refuses absence; optional takes both for the default (O-21)."""
    for obj in ({}, {"a": None}):
        with pytest.raises(SpecError, match="missing field: a"):
            codec.required(obj, "a")
        assert codec.optional(obj, "a") is None
        assert codec.optional(obj, "a", 5) == 5
        assert codec.optional_int32(obj, "a") is None
        assert codec.optional_int64(obj, "a") is None
        assert codec.optional_str(obj, "a") is None
        assert codec.optional_bool(obj, "a") is None


def test_required_members_name_the_path_of_the_fault() -> None:
    """A wrong member is reported at its own path, a missing one at its object's."""
    not_text: list[Callable[..., Any]]
    not_text = [codec.required_int32, codec.required_int64, codec.required_list, codec.required_object]
    for read in not_text:
        with pytest.raises(SpecError) as caught:
            read({"a": "text"}, "a", "$.t")
        assert caught.value.path == "$.t.a"
    not_number: list[Callable[..., Any]] = [codec.required_str, codec.required_bool]
    for read in not_number:
        with pytest.raises(SpecError) as caught:
            read({"a": 1}, "a", "$.t")
        assert caught.value.path == "$.t.a"
        with pytest.raises(SpecError) as caught:
            read({}, "a", "$.t")
        assert caught.value.path == "$.t"


def test_unknown_members_are_set_aside() -> None:
    """extra_of keeps what is not known, nulls included, and shares one empty value."""
    known = frozenset({"a"})
    assert codec.extra_of({"a": 1, "b": None, "c": [2]}, known) == {"b": None, "c": [2]}
    assert codec.extra_of({"a": 1}, known) is codec.NO_EXTRA


def test_descriptions_are_short_and_never_fail() -> None:
    """Any value can be put into a message."""
    assert codec.describe({"a": [1, None]}) == '{"a":[1,null]}'
    assert len(codec.describe("x" * 1000)) == 80
    assert codec.describe(msgspec) != ""


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1,"a":2}', '{"a":null,"a":1}', '{"a":[{"b":{"c":1 , "c" : 1}}]}', '{"a":"x:y","a":"z"}',
        '{"a":1,"\\u0061":2}', '{"a":1,"a":2,"b":"\\u003a"}', '{"a":1,"a":2,"b":"\\u003A","c:":"\\u003c"}',
        '{"a":123456789012345678901234567890,"a":2}', '{"":1,"":1}', '[{"a":1},{"a":1,"b":2,"a":3}]',
    ],
)  # fmt: skip
def test_a_request_names_no_member_twice(text: str) -> None:
    """At any depth, however the name is written, and whatever the strings hold."""
    with pytest.raises(SpecError, match="an object has more than one member named"):
        codec.decode_request(text.encode())


@pytest.mark.parametrize(
    "text",
    [
        '{"a":"a:a:a","b:":{"a":[":"]}}', '{"a":"\\u003a\\u003c"}', '{"a" : 1 ,\n"b": "\\"c\\":1"}', "[]", '":"',
        '{"a":123456789012345678901234567890,"b":1e3}', '{"a":{"a":{"a":1}}}',
    ],
)  # fmt: skip
def test_colons_in_strings_are_no_members(text: str) -> None:
    """What looks like a member to a careless count is read as it stands."""
    assert codec.decode_request(text.encode()) == codec.decode(text)


@given(JSON_VALUES)
def test_a_request_reads_as_any_document(value: Any) -> None:
    """Without a name twice there is no difference."""
    assert repr(codec.decode_request(codec.encode(value))) == repr(value)


@given(st.dictionaries(st.text(max_size=5), JSON_VALUES, min_size=1), st.data())
def test_a_member_written_again_is_always_found(members: dict[str, Any], data: st.DataObject) -> None:
    """Wherever in the object it is repeated."""
    name = data.draw(st.sampled_from(sorted(members)))
    pieces = [codec.encode({key: item})[1:-1] for key, item in members.items()]
    pieces.insert(data.draw(st.integers(0, len(pieces))), codec.encode({name: data.draw(JSON_VALUES)})[1:-1])
    with pytest.raises(SpecError, match="more than one member"):
        codec.decode_request(b'{"outer":[{' + b",".join(pieces) + b"}]}")


def test_a_twin_among_many_members_is_found_at_once() -> None:
    """Time grows with the text, not with its square: nobody else is answered meanwhile."""
    members = ",".join(f'"k{at}":1' for at in range(100_000))
    began = time.process_time()
    with pytest.raises(SpecError, match="k99999"):
        codec.decode_request(f'{{{members},"k99999":2}}'.encode())
    assert time.process_time() - began < 2


def test_a_request_that_is_no_json_is_refused_alike() -> None:
    """Garbage, and nesting that is too deep for one reader or the other."""
    for data in (b"", b"{", b'{"a":1}}', b"[" * 200_000, b"[" * 900 + b"123456789012345678901234567890" + b"]" * 900):
        with contextlib.suppress(SpecError):
            codec.decode_request(data)
