"""Measures the readers of `grammars` one after another, in a process of its own that may be ended.

Prints a line of JSON before each grammar, and one for each text whose work grew faster than the text.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from contextlib import suppress
from types import FrameType
from typing import Any

from app.errors import IcekeelError
from tests.growth.grammars import GRAMMARS, Reader, spoiled

# Characters. The first two are counted in lines of Python, which is exact; the others timed, for what runs in C.
SHORT, LONG = 128, 512
SMALL, LARGE = 2_000, 32_000
_CPU_LIMIT_S = 240
# Linear is LONG / SHORT = 4; the square is 16.
_MOST_LINES = 8
# Linear is LARGE / SMALL = 16; the square is 256. What is quicker than this, in seconds, is not worth a measure.
_MOST_TIME, _QUICK_S = 80, 0.02


def lines(read: Reader, text: str) -> int:
    """Lines of Python that reading the text runs."""
    seen = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal seen
        seen += event == "line"
        return trace

    sys.settrace(trace)
    try:
        _try(read, text)
    finally:
        sys.settrace(None)
    return seen


def seconds(read: Reader, text: str, attempts: int) -> float:
    """Processor time of the quickest of some attempts."""
    took = []
    for _ in range(attempts):
        began = time.process_time()
        _try(read, text)
        took.append(time.process_time() - began)
    return min(took)


def _try(read: Reader, text: str) -> None:
    with suppress(IcekeelError):
        read(text)


def main() -> None:
    """Measure every grammar."""
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_LIMIT_S, _CPU_LIMIT_S))
    for grammar in GRAMMARS:
        _say(grammar=grammar.name)
        for short, long in zip(spoiled(grammar, SHORT), spoiled(grammar, LONG), strict=True):
            few, many = lines(grammar.read, short), lines(grammar.read, long)
            if many > _MOST_LINES * max(few, 50):
                _say(grammar=grammar.name, text=short[:80], lines=[few, many])
        for small, large in zip(spoiled(grammar, SMALL), spoiled(grammar, LARGE), strict=True):
            took = seconds(grammar.read, large, 1)
            if took < _QUICK_S:
                continue
            took = seconds(grammar.read, large, 3)
            before = seconds(grammar.read, small, 9)
            if took > max(_QUICK_S, _MOST_TIME * before):
                _say(grammar=grammar.name, text=small[:80], seconds=[before, took])
    _say(grammar=None)


def _say(**found: object) -> None:
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
