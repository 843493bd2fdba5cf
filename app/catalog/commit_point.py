"""Landing a unit: the one line where a change happens, what to do when nobody knows whether it did, and the one loop
that starts over when another change was quicker. Which change it is, and its files, belong elsewhere."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from app.catalog.context import Context
from app.catalog.idempotency import Key, Outcome
from app.errors import CommitFailed, CommitStateUnknown, IcekeelError, OutcomeUnknown, SwapLost, Unavailable, dotted
from app.ports import Levels, Warehouse, WriteOp

log = logging.getLogger(__name__)

T = TypeVar("T")

# True: it happened. False: this unit surely did not (so it may be sent again). None: cannot be told.
Landed = Callable[[], Awaitable[bool | None]]

_UNKNOWN = "The database connection was lost while committing; the change may have happened"
_ASKS = 6
_FIRST_WAIT_S = 0.05
_MOST_NAMED = 5


async def swap(
    ctx: Context, warehouse: Warehouse, names: Iterable[tuple[Levels, str]], attempt: Callable[[], Awaitable[T]]
) -> T:
    """Run `attempt`, which reads the present state and lands what follows from it, until its swap is not lost.

    Changes of one process to the same names wait for each other instead of fighting over the swap. CommitFailed when
    other servers were quicker `Limits.commit_attempts` times, TooManyRequests when too many wait already.
    """
    wanted = list(names)
    keys = [(warehouse.name, levels, name) for levels, name in wanted]
    async with ctx.caches.locks.hold(keys, ctx.limits.queue_length):
        for lost in range(ctx.limits.commit_attempts):
            await _wait(ctx, lost)
            try:
                return await attempt()
            except SwapLost:
                continue
    of = ", ".join(dotted(levels, name) for levels, name in wanted[:_MOST_NAMED])
    raise CommitFailed(f"Too many concurrent changes of {of}; nothing was changed. Refresh and try again.")


async def _wait(ctx: Context, lost: int) -> None:
    if lost:
        longest = ctx.limits.retry_wait_ms * min(2**lost, 32)
        await asyncio.sleep(ctx.ids.uniform(0, longest) / 1000)


async def land(ctx: Context, unit: Sequence[WriteOp], key: Key, outcome: Outcome, landed: Landed | None = None) -> None:
    """Write `unit` together with the key's outcome, durably and all or nothing; nothing at all is written as it is.

    Raises what the operations document, Unavailable when surely nothing happened, and CommitStateUnknown when the
    connection died and nothing could settle whether it happened.

    What settles it is a key of our own in the same unit. What the unit made is no witness: others may have renamed,
    dropped or replaced it since, and to take that for "it did not happen" would undo their change, or delete files
    that are live. Nor is the caller's key, which another server may have used for the same request. `landed` spares the
    own key; it is for units whose target keeps a trace.
    """
    whole = [*unit, *key.record(outcome)]
    if not whole:
        return
    if not unit:
        landed = _by_key(key)
    elif landed is None:
        witness = key.witness()
        whole += witness.record({})
        landed = _by_key(witness)
    try:
        await ctx.store.write(whole)
    except OutcomeUnknown as lost:
        log.warning("connection lost while committing; asking again")
        await _settle(ctx, whole, landed, lost)


async def _settle(ctx: Context, whole: Sequence[WriteOp], landed: Landed, lost: OutcomeUnknown) -> None:
    """Ask whether the unit landed; if it surely did not, send the same unit again.

    Sending it again is safe even while the lost transaction is still running in the database: every unit that gets
    here is conditional (an expected pointer or an unused key), so it cannot take effect twice.
    """
    for ask in range(_ASKS):
        await asyncio.sleep(_FIRST_WAIT_S * 2**ask)
        try:
            if await _settled(landed):
                return
            await ctx.store.write(whole)
            return
        except (OutcomeUnknown, Unavailable):
            continue
        except CommitStateUnknown:
            break
        except IcekeelError as refusal:
            if await _refused_by_itself(landed):
                return
            raise refusal
    raise CommitStateUnknown(_UNKNOWN) from lost


async def _settled(landed: Landed) -> bool:
    state = await landed()
    if state is None:
        raise CommitStateUnknown(_UNKNOWN)
    return state


async def _refused_by_itself(landed: Landed) -> bool:
    """Whether a resent unit was refused because the first sending had taken effect after all."""
    try:
        return await _settled(landed)
    except (OutcomeUnknown, Unavailable) as away:
        raise CommitStateUnknown("The database went away while a lost commit was looked up") from away


def _by_key(key: Key) -> Landed:
    async def landed() -> bool | None:
        return await key.find() is not None

    return landed
