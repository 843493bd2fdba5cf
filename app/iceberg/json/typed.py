"""Decoding JSON straight into typed structs, with the JSON path of a fault in the error.

The counterpart of `codec` for documents that are large or only partly looked at: the rest of the bytes stays raw.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import msgspec

from app.errors import SpecError

T = TypeVar("T")

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]

_AT = " - at `$"


def decode_typed(decoder: msgspec.json.Decoder[T], data: bytes | msgspec.Raw, path: str) -> T:
    """Decode JSON bytes; SpecError (with `path` as the place of the whole value) when they do not fit."""
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise spec_error(error, path) from error


def convert_typed(value: object, kind: type[T], path: str) -> T:
    """Fit an already decoded JSON value into `kind`; members that are null count as absent."""
    if not isinstance(value, dict):
        raise SpecError("Expected an object", path)
    try:
        return msgspec.convert({key: item for key, item in value.items() if item is not None}, kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise spec_error(error, path) from error


def spec_error(error: Exception, path: str) -> SpecError:
    """The fault that msgspec reports, in our terms."""
    if isinstance(error, RecursionError):
        return SpecError("JSON is nested too deeply", path)
    reason, at, inner = str(error).partition(_AT)
    return SpecError(reason, path + inner.rstrip("`") if at else path)


def drop_nulls(value: Any, path: str = "$") -> Any:
    """`value` without object members that are null, at every depth; list items stay as they are."""
    try:
        return _without_nulls(value)
    except RecursionError as error:
        raise spec_error(error, path) from error


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value
