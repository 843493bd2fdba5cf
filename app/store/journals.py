"""The journal in SQL: events as JSON, with the columns they are looked up by."""

from __future__ import annotations

from itertools import product
from typing import Any, Final

import msgspec
from sqlalchemy import insert, or_, select

from app.events import AnyEvent
from app.ports import AppendJournal, JournalEntry, Levels
from app.store.paths import SEPARATOR, below
from app.store.program import Call, Program, Row
from app.store.schema import journal
from app.store.statements import Params, Statement, param

_events = msgspec.json.Decoder(AnyEvent)
_OF_TABLE = journal.c.table_uuid == param("table_uuid")
_OF_WAREHOUSE = journal.c.warehouse == param("warehouse")
_OF_NAMESPACE: Any = or_(
    journal.c.namespace_path == param("path"),
    (journal.c.namespace_path >= param("below_from")) & (journal.c.namespace_path < param("below_to")),
)


def _newest_first(*asked: bool) -> Statement:
    where = [clause for clause, wanted in zip((_OF_TABLE, _OF_WAREHOUSE, _OF_NAMESPACE), asked, strict=True) if wanted]
    return Statement(
        select(journal.c.entry_id, journal.c.payload)
        .where(journal.c.entry_id < param("before_id"), *where)
        .order_by(journal.c.entry_id.desc())
        .limit(param("limit"))
    )


# One statement for each combination of what is asked for: (table, warehouse, namespace).
_QUERIES: Final = {asked: _newest_first(*asked) for asked in product((False, True), repeat=3)}
_INSERT: Final = Statement(
    insert(journal)
    .inline()
    .values(
        at_ms=param("at_ms"),
        warehouse=param("warehouse"),
        namespace_path=param("path"),
        table_uuid=param("table_uuid"),
        payload=param("payload"),
    )
)

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
