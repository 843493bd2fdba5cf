"""Typed facts: what happened, to what, by whom. Plain values; the journal and the log are fed from them."""

from __future__ import annotations

import msgspec


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag=lambda name: name):
    """A fact about one table, view or namespace. `at_ms` is epoch milliseconds, `by` the principal."""

    at_ms: int
    by: str
    client: str
    warehouse: str
    namespace: tuple[str, ...]
    name: str
    uuid: str


class SchemaChanged(Event, frozen=True, kw_only=True):
    """The current schema moved. `changes` is the diff by field ID, as `evolution.diff` renders it (JSON-ready)."""

    metadata_location: str
    from_schema_id: int | None
    to_schema_id: int
    last_column_id: int
    changes: tuple[dict[str, object], ...] = ()
    findings: tuple[dict[str, object], ...] = ()


class SpecChanged(Event, frozen=True, kw_only=True):
    metadata_location: str
    from_spec_id: int | None
    to_spec_id: int


class OrderChanged(Event, frozen=True, kw_only=True):
    metadata_location: str
    from_order_id: int | None
    to_order_id: int


class WaiverUsed(Event, frozen=True, kw_only=True):
    metadata_location: str
    waiver_id: str
    code: str
    reason: str
    granted_by: str


class WaiverGranted(Event, frozen=True, kw_only=True):
    waiver_id: str
    code: str
    reason: str
    expires_at_ms: int


class WaiverRevoked(Event, frozen=True, kw_only=True):
    waiver_id: str
    code: str


class PolicyChanged(Event, frozen=True, kw_only=True):
    """A rule's severity was set (or reset with None) on a table, or on a namespace (empty `name` and `uuid`)."""

    code: str
    severity: str | None


class Created(Event, frozen=True, kw_only=True):
    """A table or view was created or registered here. `findings` are the judge's, of a file that was registered over
    another version; nothing was refused for them when it `restores` an older version, `descends` from the one that it
    replaced, or `repairs` one that nobody could read (`relation`)."""

    kind: str
    metadata_location: str
    registered: bool = False
    relation: str | None = None
    findings: tuple[dict[str, object], ...] = ()


class Dropped(Event, frozen=True, kw_only=True):
    """A table or view was dropped or unregistered."""

    kind: str
    metadata_location: str
    purge: bool = False


class ParentCreated(Event, frozen=True, kw_only=True):
    """A namespace (empty `name` and `uuid`) that nobody asked for by name: the one above `wanted`, which was made."""

    wanted: tuple[str, ...]


class Renamed(Event, frozen=True, kw_only=True):
    kind: str
    to_namespace: tuple[str, ...]
    to_name: str


class Purged(Event, frozen=True, kw_only=True):
    """A purge job ended. `refused` says why nothing more was deleted; None means that every file is gone."""

    location: str
    deleted: int
    refused: str | None = None


AnyEvent = (
    SchemaChanged
    | SpecChanged
    | OrderChanged
    | WaiverUsed
    | WaiverGranted
    | WaiverRevoked
    | PolicyChanged
    | Created
    | Dropped
    | ParentCreated
    | Renamed
    | Purged
)
