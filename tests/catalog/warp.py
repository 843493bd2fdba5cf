"""An event loop in which waiting costs nothing: its clock jumps to whatever is due next."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Jump(selectors.SelectSelector):
    """Instead of waiting, it says how long it would have."""

    def __init__(self) -> None:
        super().__init__()
        self.slept = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("everybody waits, and nothing will ever happen")
        self.slept += max(timeout, 0)
        return super().select(0)


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jump = _Jump()
        super().__init__(self._jump)

    def time(self) -> float:
        return self._jump.slept


def warped(story: Coroutine[Any, Any, T]) -> T:
    """What the coroutine comes to, in no time. RuntimeError when it waits for what never happens."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(story)
