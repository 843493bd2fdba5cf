"""Entity tags: one per version, representation and client configuration of a table."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

import msgspec

ALL = "all"
REFS = "refs"

_TAG = re.compile(r'\s*(?:W/)?("[^"]*"|[^",\s]+)\s*(?:,|$)')


def etag(metadata_location: str, representation: str, config: Mapping[str, str]) -> str:
    """A strong tag, quotes included. It changes with anything that a client would keep with the table."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(msgspec.json.encode([metadata_location, representation, sorted(config.items())]))
    return f'"{digest.hexdigest()}"'


def matches(if_none_match: str | None, tag: str) -> bool:
    """Whether an If-None-Match header names `tag`; `*`, lists, weak and unquoted tags count (RFC 9110 13.1.2)."""
    if if_none_match is None:
        return False
    if if_none_match.strip() == "*":
        return True
    bare = tag.strip('"')
    return any(found.group(1).strip('"') == bare for found in _TAG.finditer(if_none_match))
