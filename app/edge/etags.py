"""Entity tags on the wire (RFC 9110 8.8.3, 13.1.2): how a version's tag is written, and what If-None-Match means."""

from __future__ import annotations

import re

_GZIP = "-gzip"
# Nothing is looked at twice: the header may be 16 KB of anything. The second group is what does not belong there.
_TAG = re.compile(r'(?:W/)?("[^"]*"|[^",\s]++)([^,]*+)')


def written(tag: str, *, gzip: bool = False) -> str:
    """The strong tag of a representation. As gzip it has other bytes, so another tag."""
    return f'"{tag}{_GZIP}"' if gzip else f'"{tag}"'


class IfNoneMatch:
    """The versions that a client holds, in whichever coding they came: `tag in held` says that its copy is current.

    `*`, lists, weak and unquoted tags count.
    """

    __slots__ = ("_any", "_given")

    def __init__(self, header: str) -> None:
        self._any = header.strip() == "*"
        self._given = [m.group(1).strip('"') for m in _TAG.finditer(header) if not m.group(2).strip()]

    def __contains__(self, tag: object) -> bool:
        return self._any or tag in self._given or f"{tag}{_GZIP}" in self._given

    def written(self, tag: str) -> str:
        """The tag for the 304: the one that the client has."""
        return written(tag, gzip=not self._any and tag not in self._given)
