"""Sightings of clients and metrics reports in SQL, both in bounded number per table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from app.ports import Report, Sighting
from app.store.program import Call, Program, Row, Statement

SIGHTINGS_KEPT: Final = 200
REPORTS_KEPT: Final = 50
SIGHTINGS: Final = Statement("observations.SIGHTINGS")
REPORTS: Final = Statement("observations.REPORTS")
_EXISTS: Final = Statement("observations.EXISTS")
_SEE: Final = Statement("observations.SEE")
_TRIM_SIGHTINGS: Final = Statement("observations.TRIM_SIGHTINGS")
_REPORT: Final = Statement("observations.REPORT")
_TRIM_REPORTS: Final = Statement("observations.TRIM_REPORTS")
_FORGET: Final = (Statement("observations.FORGET_SIGHTINGS"), Statement("observations.FORGET_REPORTS"))


def sighting_of(row: Row) -> Sighting:
    table_uuid, client, client_version, action, last_seen_ms = row
    return Sighting(
        table_uuid=table_uuid, client=client, client_version=client_version, action=action, last_seen_ms=last_seen_ms
    )


def report_of(row: Row) -> Report:
    table_uuid, kind, received_at_ms, body = row
    return Report(table_uuid=table_uuid, kind=kind, received_at_ms=received_at_ms, body=body)


def note(sightings: Sequence[Sighting], reports: Sequence[Report]) -> Program[None]:
    """Keep what was seen of tables that still exist, and trim each to its bound.

    Rows are touched in the order of their keys, so that two servers noting the same tables cannot deadlock.
    """
    alive: dict[str, bool] = {}
    for table_uuid in sorted({s.table_uuid for s in sightings} | {r.table_uuid for r in reports}):
        found = yield Call(_EXISTS, {"table_uuid": table_uuid})
        alive[table_uuid] = bool(found.rows)
    seen = sorted(sightings, key=lambda s: (s.table_uuid, s.client, s.client_version, s.action, s.last_seen_ms))
    for one in seen:
        if alive[one.table_uuid]:
            yield Call(
                _SEE,
                {
                    "table_uuid": one.table_uuid,
                    "client": one.client,
                    "client_version": one.client_version,
                    "action": one.action,
                    "last_seen_ms": one.last_seen_ms,
                },
            )
    for each in reports:
        if alive[each.table_uuid]:
            yield Call(
                _REPORT,
                {
                    "table_uuid": each.table_uuid,
                    "kind": each.kind,
                    "received_at_ms": each.received_at_ms,
                    "body": each.body,
                },
            )
    for table_uuid in sorted({s.table_uuid for s in sightings}):
        yield Call(_TRIM_SIGHTINGS, {"table_uuid": table_uuid})
    for table_uuid in sorted({r.table_uuid for r in reports}):
        yield Call(_TRIM_REPORTS, {"table_uuid": table_uuid})


def forget_table(table_uuid: str) -> Program[None]:
    """Drop what was seen of a table that no warehouse holds any more."""
    for statement in _FORGET:
        yield Call(statement, {"table_uuid": table_uuid})
