"""Reading decoded JSON strictly, with the JSON path of every fault.

Numbers keep their kind: an integer token is an `int`, a token with fraction or exponent is a `float`, and a `bool`
is neither. Integers are exact at any size that JSON text can carry into Python. A null member counts as absent.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from app.errors import SpecError

Json = Any
"""A decoded JSON value: None, bool, int, float, str, list or dict with str keys."""

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

NO_EXTRA: Mapping[str, Json] = MappingProxyType({})
"""The shared value of `extra` for a document without unknown keys."""

# Characters of a value that a message shows.
_SHOWN = 80

_decoder = msgspec.json.Decoder()
_encoder = msgspec.json.Encoder()


def decode(data: bytes | str, path: str = "$") -> Json:
    """Decode one JSON text (UTF-8). The last of two equal keys wins.

    Raises SpecError for anything else: invalid UTF-8, a byte order mark, NaN and infinities, numbers outside the
    range of a double, truncated text, text after the value, nesting beyond what the interpreter can follow.
    """
    try:
        return _decoder.decode(data)
    except msgspec.MsgspecError as fault:
        raise SpecError(f"Malformed JSON: {fault}", path) from fault
    except RecursionError as fault:
        raise SpecError("Malformed JSON: nested too deeply", path) from fault
    except UnicodeError as fault:
        raise SpecError("Malformed JSON: not valid Unicode", path) from fault


def decode_request(data: bytes, path: str = "$") -> Json:
    """As `decode`, but no object may name a member twice (RFC 8259: names should be unique).

    What stands between client and catalog may read the other one of two equal names; a stored document is past that.
    The check costs an encoding: what was read, written again, has as many colons as the text unless a member was lost.
    """
    value = decode(data, path)
    if b"\\u003" not in data:
        try:
            if _encoder.encode(value).count(b":") == data.count(b":"):
                return value
        except (msgspec.MsgspecError, OverflowError, UnicodeError, RecursionError):
            pass  # an integer beyond 64 bits, for example: read it the slow way
    _refuse_twins(data, path)
    return value


def _refuse_twins(data: bytes, path: str) -> None:
    def members(pairs: list[tuple[str, None]]) -> None:
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise SpecError(f"Malformed JSON: an object has more than one member named {describe(name)}", path)
            seen.add(name)

    def number(_: str) -> None:
        """Of no interest here, however long."""

    try:
        json.loads(data, object_pairs_hook=members, parse_int=number, parse_float=number)
    except (ValueError, RecursionError) as fault:
        raise SpecError(f"Malformed JSON: {fault}", path) from fault


def encode(value: object) -> bytes:
    """Encode a decoded JSON value or msgspec struct as compact UTF-8.

    Raises SpecError for what has no JSON form or cannot be read back: integers beyond 64 bits, lone surrogates,
    nesting beyond what the interpreter can follow. Floats must be finite (JSON has no other).
    """
    try:
        return _encoder.encode(value)
    except (msgspec.MsgspecError, OverflowError, UnicodeError, TypeError) as fault:
        raise SpecError(f"Value has no JSON form: {fault}") from fault
    except RecursionError as fault:
        raise SpecError("Value has no JSON form: nested too deeply") from fault


def describe(value: Json) -> str:
    """A decoded value as JSON text for messages, cut to 80 characters. The price does not depend on its size."""
    shown = _beginning(value, [_SHOWN + 1])
    try:
        text = _encoder.encode(shown).decode()
    except Exception:  # a message must never fail; any value has a repr
        text = repr(shown)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _beginning(value: Json, left: list[int]) -> Json:
    """The first values of a value, `left[0]` at most; each is at least one character of the text."""
    left[0] -= 1
    if type(value) is str:
        return value[: _SHOWN + 1]
    if type(value) is list:
        return [_beginning(item, left) for item in itertools.takewhile(lambda _: left[0] > 0, value)]
    if type(value) is dict:
        shown = itertools.takewhile(lambda _: left[0] > 0, value.items())
        return {_beginning(key, left): _beginning(item, left) for key, item in shown}
    return value


def required(obj: Mapping[str, Json], key: str, path: str = "$") -> Json:
    """The member `key`, which must be present and not null."""
    value = obj.get(key)
    if value is None:
        raise SpecError(f"Cannot parse missing field: {key}", path)
    return value


def optional(obj: Mapping[str, Json], key: str, default: Json = None) -> Json:
    """The member `key`, or `default` when it is absent or null."""
    value = obj.get(key)
    return default if value is None else value


def as_int32(value: Json, path: str = "$") -> int:
    if type(value) is int and INT32_MIN <= value <= INT32_MAX:
        return value
    raise SpecError(f"Cannot parse to a 32-bit integer: {describe(value)}", path)


def as_int64(value: Json, path: str = "$") -> int:
    if type(value) is int and INT64_MIN <= value <= INT64_MAX:
        return value
    raise SpecError(f"Cannot parse to a 64-bit integer: {describe(value)}", path)


def as_str(value: Json, path: str = "$") -> str:
    if type(value) is str:
        return value
    raise SpecError(f"Cannot parse to a string: {describe(value)}", path)


def as_bool(value: Json, path: str = "$") -> bool:
    if type(value) is bool:
        return value
    raise SpecError(f"Cannot parse to a boolean: {describe(value)}", path)


def as_list(value: Json, path: str = "$") -> list[Json]:
    if type(value) is list:
        return value
    raise SpecError(f"Cannot parse to a list: {describe(value)}", path)


def as_object(value: Json, path: str = "$") -> dict[str, Json]:
    if type(value) is dict:
        return value
    raise SpecError(f"Cannot parse to an object: {describe(value)}", path)


def as_int32_list(value: Json, path: str = "$") -> tuple[int, ...]:
    return tuple(as_int32(item, f"{path}[{at}]") for at, item in enumerate(as_list(value, path)))


def as_int64_list(value: Json, path: str = "$") -> tuple[int, ...]:
    return tuple(as_int64(item, f"{path}[{at}]") for at, item in enumerate(as_list(value, path)))


def as_str_list(value: Json, path: str = "$") -> tuple[str, ...]:
    return tuple(as_str(item, f"{path}[{at}]") for at, item in enumerate(as_list(value, path)))


def as_str_map(value: Json, path: str = "$") -> dict[str, str]:
    """An object whose values are all strings (properties, config, summary)."""
    obj = as_object(value, path)
    for key, item in obj.items():
        if type(item) is not str:
            raise SpecError(f"Cannot parse to a string: {describe(item)}", f"{path}.{key}")
    return obj


def required_int32(obj: Mapping[str, Json], key: str, path: str = "$") -> int:
    return as_int32(required(obj, key, path), f"{path}.{key}")


def required_int64(obj: Mapping[str, Json], key: str, path: str = "$") -> int:
    return as_int64(required(obj, key, path), f"{path}.{key}")


def required_str(obj: Mapping[str, Json], key: str, path: str = "$") -> str:
    return as_str(required(obj, key, path), f"{path}.{key}")


def required_bool(obj: Mapping[str, Json], key: str, path: str = "$") -> bool:
    return as_bool(required(obj, key, path), f"{path}.{key}")


def required_list(obj: Mapping[str, Json], key: str, path: str = "$") -> list[Json]:
    return as_list(required(obj, key, path), f"{path}.{key}")


def required_object(obj: Mapping[str, Json], key: str, path: str = "$") -> dict[str, Json]:
    return as_object(required(obj, key, path), f"{path}.{key}")


def optional_int32(obj: Mapping[str, Json], key: str, path: str = "$") -> int | None:
    value = obj.get(key)
    return None if value is None else as_int32(value, f"{path}.{key}")


def optional_int64(obj: Mapping[str, Json], key: str, path: str = "$") -> int | None:
    value = obj.get(key)
    return None if value is None else as_int64(value, f"{path}.{key}")


def optional_str(obj: Mapping[str, Json], key: str, path: str = "$") -> str | None:
    value = obj.get(key)
    return None if value is None else as_str(value, f"{path}.{key}")


def optional_bool(obj: Mapping[str, Json], key: str, path: str = "$") -> bool | None:
    value = obj.get(key)
    return None if value is None else as_bool(value, f"{path}.{key}")


def extra_of(obj: Mapping[str, Json], known: frozenset[str]) -> Mapping[str, Json]:
    """The members of `obj` that this product does not know, to be written back as they came."""
    if obj.keys() <= known:
        return NO_EXTRA
    return {key: value for key, value in obj.items() if key not in known}
