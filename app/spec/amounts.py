"""How much one JSON text may hold, told by its bytes before it is decoded.

Decoding holds the interpreter for as long as it takes, and a few bytes can ask for much of it: 63 MB of `{}` are 21
million objects, and the time for an integer grows with the square of its digits. Every look taken here is one pass.
"""

from __future__ import annotations

from typing import Final

from app.errors import SpecError

MOST_VALUES: Final = 500_000
"""Commas and opening brackets of one request: twice what 10,000 snapshots or 50,000 columns need."""

MOST_FILE_VALUES: Final = 10_000_000
"""As `MOST_VALUES`, for a metadata file that somebody else wrote: about 300,000 snapshots."""

MOST_DIGITS: Final = 400
"""Digits of a number in one run; the longest double written out in full has 325."""

_SAME: Final = bytes.maketrans(b"123456789", b"0" * 9)
_TOO_LONG: Final = b"0" * (MOST_DIGITS + 1)


def check_amounts(text: bytes, path: str = "$", *, most: int = MOST_VALUES) -> None:
    """SpecError for more values than `most`, or a number of more than 400 digits. Text may be no JSON at all.

    Commas and brackets inside of strings count too, digits there do not.
    """
    found = text.count(b",") + text.count(b"{") + text.count(b"[")
    if found > most:
        raise SpecError(
            f"Too much in one JSON document: {found} commas, brackets and braces, and at most {most} are read. "
            "Send it in several parts",
            path,
        )
    if len(text) > MOST_DIGITS and _TOO_LONG in text.translate(_SAME) and _has_long_number(text):
        raise SpecError(f"Malformed JSON: a number has more than {MOST_DIGITS} digits", path)


def _has_long_number(text: bytes) -> bool:
    """Whether such a run stands outside of strings. In JSON a backslash stands inside of one alone."""
    text = text.replace(rb"\\", b"").replace(rb"\"", b"").translate(_SAME)
    at, inside = 0, False
    while (found := text.find(_TOO_LONG, at)) >= 0:
        inside ^= text.count(b'"', at, found) % 2 == 1
        if not inside:
            return True
        at = text.find(b'"', found)
        if at < 0:
            return False
    return False
