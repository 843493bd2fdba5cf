"""Kinds of failure: what went wrong, with context, and whether trying again may help.

No kind knows HTTP; `app.edge.errors` is the only table from kind to status and wire type. The wording that
client suites match verbatim (Iceberg's REST Compatibility Kit, PyIceberg) is written here once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    from app.rules import Finding


MESSAGE_CHARS: Final = 8_192
"""Of a message that are kept. Logs, journals and clients keep messages too."""

# The end of a message says where the fault is and what to do.
_TAIL_CHARS: Final = 1_024


def dotted(levels: Iterable[str], name: str | None = None) -> str:
    """A namespace or identifier as engines print it: levels and name joined by dots."""
    parts = [*levels] if name is None else [*levels, name]
    return ".".join(parts)


def shortened(message: str) -> str:
    """`message` with its middle left out when it is longer than MESSAGE_CHARS: it may quote what a client sent."""
    if len(message) <= MESSAGE_CHARS:
        return message
    left_out = len(message) - MESSAGE_CHARS
    return f"{message[: -_TAIL_CHARS - left_out]} [{left_out} characters left out] {message[-_TAIL_CHARS:]}"


class IcekeelError(Exception):
    """Base of every failure that the product raises on purpose."""

    retryable: ClassVar[bool] = False

    def __init__(self, message: str, **context: object) -> None:
        message = shortened(message)
        super().__init__(message)
        self.message = message
        self.context: Mapping[str, object] = context


class BadRequest(IcekeelError):
    """The request cannot be understood or asks for something that is never legal."""


class IllegalArgument(BadRequest):
    """A bad request that the reference suites expect under the name IllegalArgumentException."""


class SpecError(BadRequest):
    """A document that no conforming reader could load; `path` is the JSON path of the fault."""

    def __init__(self, message: str, path: str = "$", **context: object) -> None:
        super().__init__(f"{message} (at {path})" if path != "$" else message, **context)
        self.reason = message
        self.path = path


class ValidationFailed(BadRequest):
    """The updates are well-formed but may not be applied to this table or view."""


class EvolutionRefused(BadRequest):
    """The evolution engine refused the change; `findings` holds every fault, refusing ones first."""

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        super().__init__("; ".join(f.message for f in findings if f.refuses) or "schema evolution refused")
        self.findings = findings


class NotAuthenticated(IcekeelError):
    """No token, or one that is not accepted."""


class Forbidden(IcekeelError):
    """The caller is known, but this is not allowed (a foreign Host or Origin, for example)."""


class NoSuchWarehouse(IcekeelError):
    @classmethod
    def named(cls, warehouse: str) -> NoSuchWarehouse:
        return cls(f"Warehouse does not exist: {warehouse}", warehouse=warehouse)


class NoSuchNamespace(IcekeelError):
    @classmethod
    def named(cls, levels: Iterable[str]) -> NoSuchNamespace:
        return cls(f"Namespace does not exist: {dotted(levels)}")


class NoSuchTable(IcekeelError):
    @classmethod
    def named(cls, levels: Iterable[str], name: str) -> NoSuchTable:
        return cls(f"Table does not exist: {dotted(levels, name)}")


class NoSuchView(IcekeelError):
    @classmethod
    def named(cls, levels: Iterable[str], name: str) -> NoSuchView:
        return cls(f"View does not exist: {dotted(levels, name)}")


class NotFound(IcekeelError):
    """A thing that is neither namespace, table nor view: a vanished file, an unknown rule, an unknown route."""


class AlreadyExists(IcekeelError):
    """The name is taken. Tables and views share one name space."""

    @classmethod
    def namespace(cls, levels: Iterable[str]) -> AlreadyExists:
        return cls(f"Namespace already exists: {dotted(levels)}")

    @classmethod
    def table(cls, levels: Iterable[str], name: str) -> AlreadyExists:
        return cls(f"Table already exists: {dotted(levels, name)}")

    @classmethod
    def view(cls, levels: Iterable[str], name: str) -> AlreadyExists:
        return cls(f"View already exists: {dotted(levels, name)}")

    @classmethod
    def same_name(cls, kind: str, levels: Iterable[str], name: str) -> AlreadyExists:
        """`kind` ("table" or "view") is what already has the name that the other kind asks for."""
        return cls(f"{kind.capitalize()} with same name already exists: {dotted(levels, name)}")


class UuidInUse(AlreadyExists):
    """Another table or view of the warehouse has the uuid; the name may be free."""


class NamespaceNotEmpty(IcekeelError):
    @classmethod
    def named(cls, levels: Iterable[str], holds: str) -> NamespaceNotEmpty:
        return cls(f"Namespace {dotted(levels)} is not empty. It contains {holds}")


class CommitFailed(IcekeelError):
    """The caller did not see the present state; a refresh and a new attempt may succeed."""

    retryable = True

    @classmethod
    def requirement(cls, reason: str) -> CommitFailed:
        return cls(f"Requirement failed: {reason}")


class CommitStateUnknown(IcekeelError):
    """The swap may or may not have happened; clients keep their files."""


class Unprocessable(IcekeelError):
    """Understood, but contradictory (one key both set and removed; a reused idempotency key)."""


class Unsupported(IcekeelError):
    """A kind of operation this catalog does not offer."""


class PayloadTooLarge(IcekeelError):
    """The body exceeds the configured limit."""


class TooManyRequests(IcekeelError):
    """A queue is full; nothing was done. `retry_after_s` is in seconds."""

    retryable = True

    def __init__(self, message: str, retry_after_s: int = 1, **context: object) -> None:
        super().__init__(message, **context)
        self.retry_after_s = retry_after_s


class Unavailable(IcekeelError):
    """A backing service is away and surely nothing was changed."""

    retryable = True


class SwapLost(IcekeelError):
    """The pointer was not what the commit expected: reload, re-check, try again. Never leaves `catalog`."""

    retryable = True


class KeyAlreadyUsed(IcekeelError):
    """An idempotency key was recorded by a concurrent request: replay it. Never leaves `catalog`."""


class OutcomeUnknown(IcekeelError):
    """The database connection died while committing. Never leaves `catalog` as it is."""


class ObjectMissing(IcekeelError):
    """No object at this location."""

    def __init__(self, location: str) -> None:
        super().__init__(f"Failed to open input stream for file: {location}", location=location)
        self.location = location


class ObjectExists(IcekeelError):
    """A create-only write found an object at this location."""


class ObjectsUnavailable(Unavailable):
    """The object store did not answer or refused; nothing may be assumed about the object."""


class CorruptMetadata(IcekeelError):
    """The stored metadata file of a table or view that is here cannot be read, or is another's: not the caller's
    doing, and nothing that a new attempt cures. `path` is the JSON path of the fault, `cure` what mends it."""

    def __init__(self, location: str, reason: str, path: str = "$", cure: str = "") -> None:
        message = f"Stored metadata file {location} is damaged: {reason} (at {path})"
        super().__init__(f"{message}. {cure}" if cure else message, location=location)
        self.path = path


class BadSettings(IcekeelError):
    """A wrong setting; stops the start with one clear line."""


class SchemaOutOfDate(IcekeelError):
    """The database schema is older or newer than this server."""
