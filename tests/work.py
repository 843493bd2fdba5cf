"""Work counted in lines of Python that are run: the same on every machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

MOST_GROWTH = 2.5
"""How much more work a list of twice the length may be."""


def lines(work: Callable[[], object]) -> int:
    """How many lines `work` runs, every turn of a loop counted."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def growth(work: Callable[[int], Callable[[], object]], size: int = 100) -> float:
    """How many times the work of `size` that of twice the size is. What is made beforehand is not counted."""
    return lines(work(2 * size)) / lines(work(size))
