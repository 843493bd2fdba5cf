"""How names and locations become comparable columns.

A namespace is stored as its levels joined by U+001F, which no level may contain: `["a.b"]` and `["a", "b"]` differ, and
everything below a namespace is one range of the index. A location is stored beside the client's spelling as a canonical
key, so that overlap is a look-up of its ancestors and one range scan of what lies below.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from app.errors import BadRequest, dotted
from app.iceberg.location import canonical
from app.ports import Levels

SEPARATOR: Final = "\x1f"
_AFTER_SEPARATOR: Final = "\x20"
_AFTER_SLASH: Final = "0"


def storable(text: str) -> bool:
    """Whether both databases can hold `text`: PostgreSQL has no NUL, and neither has lone surrogates."""
    if "\x00" in text:
        return False
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_path(levels: Levels) -> bool:
    """Whether these levels can name a stored namespace."""
    return look_up_path(levels) is not None


def look_up_path(levels: Levels) -> str | None:
    """The stored form of a namespace; None when no namespace can have these levels."""
    path = SEPARATOR.join(levels)
    if path.count(SEPARATOR) + 1 != len(levels) or not all(levels) or not storable(path):
        return None
    return path


def path_of(levels: Levels) -> str:
    """The stored form of a namespace; BadRequest when no namespace can have these levels."""
    path = look_up_path(levels)
    if path is None:
        raise BadRequest(f"Invalid namespace: {dotted(levels)!r}")
    return path


def levels_of(path: str) -> Levels:
    return tuple(path.split(SEPARATOR)) if path else ()


def parent_of(path: str) -> str | None:
    """The path of the namespace above; None at the top level."""
    head, separator, _ = path.rpartition(SEPARATOR)
    return head if separator else None


def below(path: str) -> tuple[str, str]:
    """Bounds (from, to), `to` exclusive, of every path strictly below `path`."""
    return path + SEPARATOR, path + _AFTER_SEPARATOR


def checked_name(name: str) -> str:
    """`name` unless neither database could hold it (BadRequest)."""
    if not name or not storable(name):
        raise BadRequest(f"Invalid name: {name!r}")
    return name


def location_key(location: str) -> str:
    """The canonical form that two spellings of one place share; what `canonical` refuses is refused here."""
    return canonical(location).rstrip("/")


def ancestors(key: str) -> Iterator[str]:
    """`key` and every key above it, segment by segment, nearest last."""
    at = key.find("/")
    while at >= 0:
        yield key[:at]
        at = key.find("/", at + 1)
    yield key


def descendants(key: str) -> tuple[str, str]:
    """Bounds (from, to), `to` exclusive, of every key strictly below `key`."""
    return key + "/", key + _AFTER_SLASH
