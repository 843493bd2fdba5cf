"""Work that outlives its request."""

from __future__ import annotations

import asyncio

import pytest

from app.catalog.tasks import Tasks


def test_work_goes_on_when_the_caller_is_cancelled() -> None:
    """A client that disconnects does not stop a commit half-way."""

    async def story() -> None:
        tasks, steps = Tasks(), []

        async def work() -> None:
            steps.append("begin")
            await asyncio.sleep(0.01)
            steps.append("end")

        caller = asyncio.create_task(tasks.unbroken(work()))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        assert steps == ["begin"]
        await tasks.drain()
        assert steps == ["begin", "end"]

    asyncio.run(story())


def test_the_caller_sees_result_and_failure() -> None:
    """Shielding changes neither."""

    async def story() -> None:
        tasks = Tasks()

        async def good() -> int:
            return 3

        async def bad() -> int:
            raise ValueError("no")

        assert await tasks.unbroken(good()) == 3
        with pytest.raises(ValueError, match="no"):
            await tasks.unbroken(bad())

    asyncio.run(story())


def test_a_failure_beside_the_request_reaches_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged, and draining ends normally."""

    async def story() -> None:
        tasks = Tasks()

        async def bad() -> None:
            raise ValueError("no")

        tasks.spawn(bad(), "sweeping")
        await tasks.drain()

    asyncio.run(story())
    assert "sweeping failed" in caplog.text
