"""The journal in SQL: events as JSON, with the columns they are looked up by."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from app.events import AnyEvent
from app.ports import AppendJournal, JournalEntry, Levels
from app.store.paths import SEPARATOR, below
from app.store.program import Call, Params, Program, Row, Statement

_events = msgspec.json.Decoder(AnyEvent)
# By what is asked for: (table, warehouse, namespace).
_QUERIES: Final = {
    (False, False, False): Statement("journals.NEWEST.all"),
    (True, False, False): Statement("journals.NEWEST.table"),
    (False, True, False): Statement("journals.NEWEST.warehouse"),
    (False, False, True): Statement("journals.NEWEST.namespace"),
    (True, True, False): Statement("journals.NEWEST.table+warehouse"),
    (True, False, True): Statement("journals.NEWEST.table+namespace"),
    (False, True, True): Statement("journals.NEWEST.warehouse+namespace"),
    (True, True, True): Statement("journals.NEWEST.table+warehouse+namespace"),
}
_INSERT: Final = Statement("journals.INSERT")
_NO_BOUND: Final = 2**63 - 1


def query(
    table_uuid: str | None, warehouse: str | None, namespace: Levels | None, before_id: int | None, limit: int
) -> tuple[Statement, Params]:
    """What to run for a page of the journal. An empty namespace asks for nothing in particular."""
    path = SEPARATOR.join(namespace) if namespace else None
    statement = _QUERIES[(table_uuid is not None, warehouse is not None, path is not None)]
    params: dict[str, Any] = {"before_id": _NO_BOUND if before_id is None else before_id, "limit": limit}
    if table_uuid is not None:
        params["table_uuid"] = table_uuid
    if warehouse is not None:
        params["warehouse"] = warehouse
    if path is not None:
        params["path"] = path
        params["below_from"], params["below_to"] = below(path)
    return statement, params


def entry_of(row: Row) -> JournalEntry:
    return JournalEntry(entry_id=row[0], event=_events.decode(row[1]))


ENTRY: Final = ("at_ms", "warehouse", "path", "table_uuid", "payload")
"""What is stored of an event."""


def entry_params(op: AppendJournal) -> Params:
    event = op.event
    return {
        "at_ms": event.at_ms,
        "warehouse": event.warehouse,
        "path": SEPARATOR.join(event.namespace),
        "table_uuid": event.uuid,
        "payload": msgspec.json.encode(event).decode(),
    }


def append(op: AppendJournal) -> Program[None]:
    yield Call(_INSERT, entry_params(op))
