"""Names of namespaces, tables and views, and the separator that joins namespace levels in one URL segment.

Names are case sensitive and almost free: dots, slashes, blanks and any script are allowed. Refused is only what no
later request, path or index could carry: the empty name, control characters, lone surrogates, `.` and `..`, and names
of thousands of bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from app.errors import BadRequest

SEPARATOR = "\x1f"
"""Joins namespace levels in a URL segment or query value (percent-encoded as %1F); never part of a name."""

MAX_BYTES = 1_024
"""In UTF-8, of a name and of a whole namespace with its separators. An entry of a PostgreSQL index ends at 2,704 bytes,
and one holds a namespace beside its parent."""

_UNUSABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def validate_level(level: object) -> str:
    """One namespace level, returned as it is. Raises BadRequest with the reason."""
    return _validate(level, "namespace level")


def validate_name(name: object) -> str:
    """The name of a table or view, returned as it is. Raises BadRequest with the reason."""
    return _validate(name, "name")


def validate_levels(levels: Iterable[object]) -> tuple[str, ...]:
    """A whole namespace: at least one level, each valid. Raises BadRequest with the reason."""
    checked = tuple(_validate(level, "namespace level") for level in levels)
    if not checked:
        raise BadRequest("Invalid namespace: it has no levels")
    _check_length(SEPARATOR.join(checked), "namespace")
    return checked


def _validate(text: object, what: str) -> str:
    if not isinstance(text, str):
        raise BadRequest(f"Invalid {what}: not a string")
    if not text:
        raise BadRequest(f"Invalid {what}: it is empty")
    if text in {".", ".."}:
        raise BadRequest(f"Invalid {what}: {text!r} means a directory")
    _check_length(text, what)
    if _UNUSABLE.search(text):
        raise BadRequest(f"Invalid {what}: {text!a} contains a control character")
    return text


def _check_length(text: str, what: str) -> None:
    # A lone surrogate has no UTF-8; what is refused for it is told by the next check.
    size = len(text.encode("utf-8", "surrogatepass")) if 4 * len(text) > MAX_BYTES else 0
    if size > MAX_BYTES:
        raise BadRequest(f"Invalid {what}: it has {size} bytes, and {MAX_BYTES} are allowed")
