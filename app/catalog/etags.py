"""Entity tags: one per version, representation and client configuration of a table."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

import msgspec

ALL = "all"
REFS = "refs"

_GZIP = "-gzip"
# Nothing is looked at twice: the header may be 16 KB of anything. The second group is what does not belong there.
_TAG = re.compile(r'(?:W/)?("[^"]*"|[^",\s]++)([^,]*+)')


def etag(metadata_location: str, representation: str, config: Mapping[str, str]) -> str:
    """A strong tag, quotes included. It changes with anything that a client would keep with the table."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(msgspec.json.encode([metadata_location, representation, sorted(config.items())]))
    return f'"{digest.hexdigest()}"'


def of_gzip(tag: str) -> str:
    """The tag of the same representation in gzip: other bytes, so another strong tag (RFC 9110 8.8.3)."""
    return f'{tag[:-1]}{_GZIP}"'


def matched(if_none_match: str | None, tag: str) -> str | None:
    """The tag that an If-None-Match header has in common with `tag` or its gzip form, or None.

    A client's copy is current in whichever coding it came, so either is good for a 304, which names the one that the
    client has. `*`, lists, weak and unquoted tags count (RFC 9110 13.1.2).
    """
    if if_none_match is None:
        return None
    if if_none_match.strip() == "*":
        return tag
    bare = tag.strip('"')
    packed = bare + _GZIP
    for found in _TAG.finditer(if_none_match):
        given = found.group(1).strip('"')
        if given in (bare, packed) and not found.group(2).strip():
            return f'"{given}"'
    return None
