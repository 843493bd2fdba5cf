"""Which content codings a client takes (RFC 9110 12.5.3)."""

from __future__ import annotations

import re

from starlette.requests import Request

_ELEMENT = re.compile(r"\s*([^\s;,]+)\s*(?:;\s*[qQ]\s*=\s*([01](?:\.[0-9]{0,3})?)\s*)?")
_GZIP = frozenset({"gzip", "x-gzip"})


def accepts_gzip(request: Request) -> bool:
    """Whether the answer may be gzip. Without the header it may not: such a client might not know how to unpack it."""
    lines = request.headers.getlist("accept-encoding")
    return bool(lines) and _takes_gzip(",".join(lines))


def _takes_gzip(header: str) -> bool:
    """A weight of zero refuses, `*` stands for what is not named, and what cannot be understood is not there."""
    any_other = False
    named: bool | None = None
    for element in header.split(","):
        found = _ELEMENT.fullmatch(element)
        if found is None:
            continue
        takes = float(found.group(2) or 1) > 0
        coding = found.group(1).lower()
        if coding in _GZIP:
            named = takes or bool(named)
        elif coding == "*":
            any_other = takes
    return any_other if named is None else named
