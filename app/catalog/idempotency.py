"""Idempotency: one key, one effect, one answer.

A success is recorded in the same unit as its change, a deterministic refusal in a unit of its own. What depends on
the moment (a full queue, a store that is away, an expired token) is never recorded. Before any refusal leaves, the key
is looked up once more: a client that hears "refused" deletes its files, and they may be the live ones.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import msgspec

from app import errors
from app.catalog import warehouses
from app.catalog.context import Caller, Context
from app.errors import (
    EvolutionRefused,
    IcekeelError,
    KeyAlreadyUsed,
    OutcomeUnknown,
    TooManyRequests,
    Unavailable,
    Unprocessable,
)
from app.ports import KeyRecord, OutcomeKind, RecordKey, Warehouse, WriteOp
from app.rules import Finding

log = logging.getLogger(__name__)

T = TypeVar("T")
P = ParamSpec("P")
Outcome = Mapping[str, Any]

# Refusals that the same request on the same state always meets.
FINAL: tuple[type[IcekeelError], ...] = (
    errors.BadRequest,
    errors.NoSuchNamespace,
    errors.NoSuchTable,
    errors.NoSuchView,
    errors.AlreadyExists,
    errors.NamespaceNotEmpty,
    errors.CommitFailed,
    errors.Unprocessable,
    errors.Unsupported,
)
_KINDS: Mapping[str, type[IcekeelError]] = {
    kind.__name__: kind
    for kind in (*FINAL, errors.IllegalArgument, errors.SpecError, errors.ValidationFailed, errors.EvolutionRefused)
}


@dataclass(frozen=True, slots=True)
class Key:
    """The caller's idempotency key in one warehouse, or the absence of one (`text` None)."""

    ctx: Context
    warehouse: str
    text: str | None
    fingerprint: str

    def witness(self) -> Key:
        """A key that stands for one unit alone. The caller's own may have landed with another server's unit."""
        return Key(self.ctx, self.warehouse, self.ctx.ids.uuid4(), self.fingerprint)

    async def find(self) -> KeyRecord | None:
        if self.text is None:
            return None
        return await self.ctx.store.key(self.warehouse, self.text, self.ctx.clock.now_ms())

    def record(self, outcome: Outcome, kind: OutcomeKind = "done") -> tuple[WriteOp, ...]:
        """The operation that belongs into the unit of the change; nothing without a key."""
        if self.text is None:
            return ()
        now, limits = self.ctx.clock.now_ms(), self.ctx.limits
        return (
            RecordKey(
                record=KeyRecord(
                    key=self.text,
                    warehouse=self.warehouse,
                    fingerprint=self.fingerprint,
                    kind=kind,
                    outcome=msgspec.json.encode(outcome),
                    created_at_ms=now,
                    expires_at_ms=now + limits.idempotency_lifetime_ms + limits.idempotency_grace_ms,
                )
            ),
        )


def idempotent(
    replay: Callable[..., Awaitable[T]],
) -> Callable[
    [Callable[Concatenate[Context, Caller, Warehouse, Key, P], Awaitable[T]]],
    Callable[Concatenate[Context, Caller, str, P], Coroutine[Any, Any, T]],
]:
    """Make a mutation run once under the caller's key, and be answered from its record when it is sent again.

    What is decorated takes (ctx, caller, warehouse, key, ...) and puts `key.record(outcome)` into its unit. Callers
    give the warehouse by name and no key. `replay` takes (ctx, warehouse, outcome, ...), the rest being the same
    arguments, and answers from a recorded outcome; `nothing` where a success has no content. The mutation runs to its
    end even when the caller goes away. NoSuchWarehouse; Unprocessable when the key stands for another request.
    """

    def decorated(
        act: Callable[Concatenate[Context, Caller, Warehouse, Key, P], Awaitable[T]],
    ) -> Callable[Concatenate[Context, Caller, str, P], Coroutine[Any, Any, T]]:
        @wraps(act)
        async def run(ctx: Context, caller: Caller, warehouse: str, /, *args: P.args, **kwargs: P.kwargs) -> T:
            home = await warehouses.fresh_warehouse(ctx, warehouse)
            key = Key(ctx, home.name, caller.key.lower() if caller.key else None, caller.fingerprint)
            return await ctx.caches.tasks.unbroken(
                _once(
                    key,
                    lambda: act(ctx, caller, home, key, *args, **kwargs),
                    lambda outcome: replay(ctx, home, outcome, *args, **kwargs),
                )
            )

        return run

    return decorated


async def nothing(*_: object, **__: object) -> None:
    """The replay of an operation whose success has no content."""


Act = Callable[[], Awaitable[T]]
Again = Callable[[Outcome], Awaitable[T]]


async def _once(key: Key, act: Act[T], again: Again[T]) -> T:
    if key.text is None:
        return await act()
    async with key.ctx.caches.keys.hold([(key.warehouse, key.text)], key.ctx.limits.queue_length):
        found = await key.find()
        if found is not None:
            return await _replay(key, found, again)
        try:
            return await act()
        except KeyAlreadyUsed:
            return await _replay(key, await key.find(), again)
        except FINAL as refusal:
            found = await key.find() or await _record_refusal(key, refusal)
            if found is None:
                raise
            return await _replay(key, found, again)


async def _replay(key: Key, found: KeyRecord | None, again: Again[T]) -> T:
    if found is None:
        raise TooManyRequests("The Idempotency-Key expired while its request was running; nothing was done. Try again.")
    if found.fingerprint != key.fingerprint:
        raise Unprocessable("Idempotency-Key was already used for another request")
    outcome: dict[str, Any] = msgspec.json.decode(found.outcome)
    if found.kind == "refused":
        raise _rebuilt(outcome)
    return await again(outcome)


async def _record_refusal(key: Key, refusal: IcekeelError) -> KeyRecord | None:
    """Record a refusal; answers the record of a concurrent duplicate that came first. Losing the record is harmless."""
    try:
        await key.ctx.store.write(key.record(_refusal(refusal), "refused"))
    except KeyAlreadyUsed:
        return await key.find()
    except (Unavailable, OutcomeUnknown):
        log.warning("could not record the refusal of an idempotency key", exc_info=True)
    return None


def _refusal(refusal: IcekeelError) -> Outcome:
    kind = next(kind.__name__ for kind in type(refusal).__mro__ if kind.__name__ in _KINDS)
    findings = msgspec.to_builtins(refusal.findings) if isinstance(refusal, EvolutionRefused) else ()
    return {"kind": kind, "message": refusal.message, "findings": findings}


def _rebuilt(outcome: Outcome) -> IcekeelError:
    kind = _KINDS[outcome["kind"]]
    if kind is EvolutionRefused:
        return EvolutionRefused(msgspec.convert(outcome["findings"], tuple[Finding, ...]))
    return kind(outcome["message"])


def recorded_findings(findings: Sequence[Finding]) -> list[Any]:
    """Findings as an outcome keeps them."""
    return [msgspec.to_builtins(finding) for finding in findings]


def findings_of(outcome: Outcome) -> tuple[Finding, ...]:
    return msgspec.convert(outcome.get("findings", ()), tuple[Finding, ...])
