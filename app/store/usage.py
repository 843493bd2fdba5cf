"""Sightings of clients and metrics reports in SQL, both in bounded number per table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import delete, exists, insert, literal_column, not_, select

from app.ports import Report, Sighting
from app.store.program import Call, Program, Row
from app.store.schema import report, sighting, tabular
from app.store.statements import DialectInsert, Statement, param

SIGHTINGS_KEPT: Final = 200
REPORTS_KEPT: Final = 50

_SEEN = sighting.c.table_uuid == param("table_uuid")
_REPORTED = report.c.table_uuid == param("table_uuid")
_GONE = not_(exists().where(tabular.c.uuid == param("table_uuid")))
SIGHTINGS: Final = Statement(
    select(
        sighting.c.table_uuid,
        sighting.c.client,
        sighting.c.client_version,
        sighting.c.action,
        sighting.c.last_seen_ms,
    )
    .where(_SEEN)
    .order_by(sighting.c.last_seen_ms.desc(), sighting.c.client, sighting.c.client_version, sighting.c.action)
)
REPORTS: Final = Statement(
    select(report.c.table_uuid, report.c.kind, report.c.received_at_ms, report.c.body)
    .where(_REPORTED)
    .order_by(report.c.report_id.desc())
)


def _see(dialect_insert: DialectInsert) -> Any:
    statement = (
        dialect_insert(sighting)
        .inline()
        .values(
            table_uuid=param("table_uuid"),
            client=param("client"),
            client_version=param("client_version"),
            action=param("action"),
            last_seen_ms=param("last_seen_ms"),
        )
    )
    return statement.on_conflict_do_update(
        index_elements=list(sighting.primary_key.columns),
        set_={"last_seen_ms": statement.excluded.last_seen_ms},
        where=sighting.c.last_seen_ms < statement.excluded.last_seen_ms,
    )


_EXISTS: Final = Statement(
    select(tabular.c.tabular_id).where(tabular.c.uuid == param("table_uuid")).limit(literal_column("1"))
)
_SEE: Final = Statement(_see)
_TRIM_SIGHTINGS: Final = Statement(
    delete(sighting).where(
        _SEEN,
        sighting.c.last_seen_ms
        <= select(sighting.c.last_seen_ms)
        .where(_SEEN)
        .order_by(sighting.c.last_seen_ms.desc())
        .limit(literal_column("1"))
        .offset(literal_column(str(SIGHTINGS_KEPT)))
        .scalar_subquery(),
    )
)
_REPORT: Final = Statement(
    insert(report)
    .inline()
    .values(
        table_uuid=param("table_uuid"),
        kind=param("kind"),
        received_at_ms=param("received_at_ms"),
        body=param("body"),
    )
)
_TRIM_REPORTS: Final = Statement(
    delete(report).where(
        _REPORTED,
        report.c.report_id
        <= select(report.c.report_id)
        .where(_REPORTED)
        .order_by(report.c.report_id.desc())
        .limit(literal_column("1"))
        .offset(literal_column(str(REPORTS_KEPT)))
        .scalar_subquery(),
    )
)
_FORGET: Final = (Statement(delete(sighting).where(_SEEN, _GONE)), Statement(delete(report).where(_REPORTED, _GONE)))


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
