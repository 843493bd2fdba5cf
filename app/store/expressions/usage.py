"""Sightings of clients and metrics reports."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import delete, exists, insert, literal_column, not_, select

from app.store.expressions.params import DialectInsert, param
from app.store.schema import report, sighting, tabular
from app.store.usage import REPORTS_KEPT, SIGHTINGS_KEPT

_SEEN = sighting.c.table_uuid == param("table_uuid")
_REPORTED = report.c.table_uuid == param("table_uuid")
_GONE = not_(exists().where(tabular.c.uuid == param("table_uuid")))

SIGHTINGS: Final = (
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
REPORTS: Final = (
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


EXISTS: Final = select(tabular.c.tabular_id).where(tabular.c.uuid == param("table_uuid")).limit(literal_column("1"))
SEE: Final = _see
TRIM_SIGHTINGS: Final = delete(sighting).where(
    _SEEN,
    sighting.c.last_seen_ms
    <= select(sighting.c.last_seen_ms)
    .where(_SEEN)
    .order_by(sighting.c.last_seen_ms.desc())
    .limit(literal_column("1"))
    .offset(literal_column(str(SIGHTINGS_KEPT)))
    .scalar_subquery(),
)
REPORT: Final = (
    insert(report)
    .inline()
    .values(
        table_uuid=param("table_uuid"),
        kind=param("kind"),
        received_at_ms=param("received_at_ms"),
        body=param("body"),
    )
)
TRIM_REPORTS: Final = delete(report).where(
    _REPORTED,
    report.c.report_id
    <= select(report.c.report_id)
    .where(_REPORTED)
    .order_by(report.c.report_id.desc())
    .limit(literal_column("1"))
    .offset(literal_column(str(REPORTS_KEPT)))
    .scalar_subquery(),
)
FORGET_SIGHTINGS: Final = delete(sighting).where(_SEEN, _GONE)
FORGET_REPORTS: Final = delete(report).where(_REPORTED, _GONE)
