"""Locations: URIs or absolute local paths, compared by a canonical form, stored in the client's spelling.

`file:/x`, `file:///x`, `file://localhost/x` and `/x` are one place; so are s3, s3a and s3n, and abfs and abfss.
Percent signs are literal, as in every engine's file layer. What could name another place than it seems to
(`..`, also percent-encoded, control characters, a query or fragment on an object store) has no canonical form.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final
from urllib.parse import unquote

from app.errors import BadRequest

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):(//)?")
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_FAMILIES: Final = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "wasbs": "wasb"}
_CASELESS_AUTHORITY: Final = frozenset({"abfs", "wasb"})
_LOCAL: Final = "file"
_AUTHORITY: Final = re.compile(r"\$?[A-Za-z0-9][A-Za-z0-9._-]*(?:@[A-Za-z0-9][A-Za-z0-9.-]*)?")
_MAX_DECODINGS: Final = 4

MAX_CHARS: Final = 8_192
"""Of a location that is compared with others, in the client's spelling. No store takes keys that long."""


def scheme(location: str) -> str:
    """The URI scheme in lower case, `file` for a plain path."""
    match = _SCHEME.match(location)
    return match[1].lower() if match else _LOCAL


def is_local(location: str) -> bool:
    return scheme(location) == _LOCAL


def is_absolute(location: str) -> bool:
    """Whether the location names one place by itself: `/path`, `file:/path` or `scheme://authority[/path]`."""
    match = _SCHEME.match(location)
    if match is None:
        return location.startswith("/")
    rest = location[match.end() :]
    if match[1].lower() == _LOCAL:
        return bool(match[2]) or rest.startswith("/")
    return bool(match[2]) and bool(rest) and not rest.startswith("/")


def is_plain_authority(authority: str) -> bool:
    """Whether it is `bucket` or `container@account-host`, of characters that name no other host when they become part
    of the host name that requests, and the server's credentials, go to."""
    return _AUTHORITY.fullmatch(authority) is not None


def strip_trailing_slash(location: str) -> str:
    """Without trailing slashes; the root of a scheme or of the local file system keeps its own."""
    stripped = location.rstrip("/")
    if not stripped:
        return "/" if location else location
    if stripped.endswith(":"):
        match = _SCHEME.fullmatch(stripped)
        if match is not None:
            return location[: len(stripped) + 3]
    return stripped


def join(location: str, *parts: str) -> str:
    """`location` and `parts` joined by single slashes; slashes around the parts do not count."""
    base = strip_trailing_slash(location)
    tail = "/".join(part.strip("/") for part in parts if part.strip("/"))
    if not tail:
        return base
    return base + tail if base.endswith("/") else f"{base}/{tail}"


def canonical(location: str) -> str:
    """The one spelling of a place, for comparing only. Raises BadRequest for what names no safe absolute place.

    Local places become `file:///path`; others keep authority and path, with the scheme of their family.
    """
    family, authority, segments = _resolve(location)
    if family == _LOCAL:
        return "file:///" + "/".join(segments)
    return "/".join((f"{family}://{authority}", *segments))


def contains(parent: str, child: str) -> bool:
    """Whether `child` is `parent` or below it, by whole path segments. Raises BadRequest as `canonical` does."""
    parent_family, parent_authority, parent_segments = _resolve(parent)
    child_family, child_authority, child_segments = _resolve(child)
    return (
        parent_family == child_family
        and parent_authority == child_authority
        and child_segments[: len(parent_segments)] == parent_segments
    )


def overlaps(one: str, other: str) -> bool:
    """Whether a file could lie below both. Raises BadRequest as `canonical` does."""
    return contains(one, other) or contains(other, one)


def local_path(location: str) -> str:
    """The absolute path on this machine. Raises BadRequest if the location is not a safe local one."""
    family, _, segments = _resolve(location)
    if family != _LOCAL:
        raise BadRequest(f"Not a local location: {location!a}")
    return "/" + "/".join(segments)


@lru_cache(maxsize=4096)
def _resolve(location: str) -> tuple[str, str, tuple[str, ...]]:
    """(scheme family, authority, path segments without empty ones)."""
    if len(location) > MAX_CHARS:
        raise BadRequest(
            f"Invalid location: {location[:80]!a}... has {len(location)} characters, and {MAX_CHARS} are allowed"
        )
    if _CONTROL.search(location):
        raise BadRequest(f"Invalid location: {location!a} contains a control character")
    if not is_absolute(location):
        raise BadRequest(f"Invalid location: {location!a} is not absolute")
    match = _SCHEME.match(location)
    if match is None:
        return _LOCAL, "", _segments(location, location)
    family = match[1].lower()
    rest = location[match.end() :]
    authority, path = "", rest
    if match[2]:
        authority, _, path = rest.partition("/")
    if family == _LOCAL:
        if authority not in ("", "localhost"):
            raise BadRequest(f"Invalid location: {location!a} is on another host")
        return _LOCAL, "", _segments(path, location)
    if "?" in rest or "#" in rest:
        raise BadRequest(f"Invalid location: {location!a} has a query or fragment")
    if "\\" in authority or "%" in authority:
        raise BadRequest(f"Invalid location: {location!a} has no plain authority")
    family = _FAMILIES.get(family, family)
    if family in _CASELESS_AUTHORITY:
        authority = authority.lower()
    return family, authority, _segments(path, location)


def _segments(path: str, location: str) -> tuple[str, ...]:
    segments = tuple(segment for segment in path.split("/") if segment)
    for segment in segments:
        if _climbs(segment):
            raise BadRequest(f"Invalid location: {location!a} contains '.' or '..' as a path segment")
    return segments


def _climbs(segment: str) -> bool:
    """Whether any reader, decoding percent signs or taking a backslash for a slash, could see `.` or `..`."""
    if segment in (".", ".."):
        return True
    if "%" not in segment and "\\" not in segment:
        return False
    for _ in range(_MAX_DECODINGS):
        if any(part in (".", "..") for part in segment.replace("\\", "/").split("/")):
            return True
        decoded = unquote(segment)
        if decoded == segment:
            return False
        segment = decoded
    return True
