"""What the journal keeps: schema, spec and order moves by ID, births, deaths, names and waivers; not every append."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypedDict

from app import events
from app.catalog.context import Caller, Context
from app.events import AnyEvent
from app.evolution.engine.diff import diff
from app.iceberg.table import TableMetadata
from app.ports import Kind, Levels, Warehouse
from app.rules import Finding, Waiver


class _Head(TypedDict):
    at_ms: int
    by: str
    client: str
    warehouse: str
    namespace: Levels
    name: str
    uuid: str


@dataclass(frozen=True, slots=True)
class JournalWriter:
    """Writes events about one table or view (or a namespace: empty `name` and `uuid`), by one caller, at one time."""

    at_ms: int
    by: str
    client: str
    warehouse: str
    namespace: Levels
    name: str
    uuid: str

    def created(
        self,
        kind: Kind,
        file: str,
        *,
        registered: bool = False,
        relation: str | None = None,
        findings: Iterable[Finding] = (),
    ) -> AnyEvent:
        return events.Created(
            **self._head(),
            kind=kind,
            metadata_location=file,
            registered=registered,
            relation=relation,
            findings=tuple(finding.to_json() for finding in findings),
        )

    def dropped(self, kind: Kind, file: str, *, purge: bool = False) -> AnyEvent:
        return events.Dropped(**self._head(), kind=kind, metadata_location=file, purge=purge)

    def parent_created(self, wanted: Levels) -> AnyEvent:
        return events.ParentCreated(**self._head(), wanted=wanted)

    def renamed(self, kind: Kind, target: tuple[Levels, str]) -> AnyEvent:
        return events.Renamed(**self._head(), kind=kind, to_namespace=target[0], to_name=target[1])

    def policy_changed(self, code: str, severity: str | None) -> AnyEvent:
        return events.PolicyChanged(**self._head(), code=code, severity=severity)

    def waiver_granted(self, waiver: Waiver) -> AnyEvent:
        return events.WaiverGranted(
            **self._head(),
            waiver_id=waiver.waiver_id,
            code=waiver.code,
            reason=waiver.reason,
            expires_at_ms=waiver.expires_at_ms,
        )

    def waiver_revoked(self, waiver: Waiver) -> AnyEvent:
        return events.WaiverRevoked(**self._head(), waiver_id=waiver.waiver_id, code=waiver.code)

    def waivers_used(self, waivers: Iterable[Waiver], file: str) -> tuple[AnyEvent, ...]:
        return tuple(
            events.WaiverUsed(
                **self._head(),
                metadata_location=file,
                waiver_id=waiver.waiver_id,
                code=waiver.code,
                reason=waiver.reason,
                granted_by=waiver.granted_by,
            )
            for waiver in waivers
        )

    def evolved(
        self, before: TableMetadata | None, after: TableMetadata, file: str, findings: Iterable[Finding] = ()
    ) -> tuple[AnyEvent, ...]:
        """One event for each of schema, spec and sort order that is another one now."""
        out: list[AnyEvent] = []
        if before is None or before.schema != after.schema:
            out.append(self._schema_changed(before, after, file, findings))
        if before is None or before.default_spec_id != after.default_spec_id:
            out.append(
                events.SpecChanged(
                    **self._head(),
                    metadata_location=file,
                    from_spec_id=None if before is None else before.default_spec_id,
                    to_spec_id=after.default_spec_id,
                )
            )
        if before is None or before.default_sort_order_id != after.default_sort_order_id:
            out.append(
                events.OrderChanged(
                    **self._head(),
                    metadata_location=file,
                    from_order_id=None if before is None else before.default_sort_order_id,
                    to_order_id=after.default_sort_order_id,
                )
            )
        return tuple(out)

    def _schema_changed(
        self, before: TableMetadata | None, after: TableMetadata, file: str, findings: Iterable[Finding]
    ) -> AnyEvent:
        changes = (
            diff(None, after.schema)
            if before is None
            else diff(before.schema, after.schema, last_column_id=before.last_column_id)
        )
        return events.SchemaChanged(
            **self._head(),
            metadata_location=file,
            from_schema_id=None if before is None else before.current_schema_id,
            to_schema_id=after.current_schema_id,
            last_column_id=after.last_column_id,
            changes=tuple(changes.to_json()),
            findings=tuple(finding.to_json() for finding in findings),
        )

    def _head(self) -> _Head:
        return {
            "at_ms": self.at_ms,
            "by": self.by,
            "client": self.client,
            "warehouse": self.warehouse,
            "namespace": self.namespace,
            "name": self.name,
            "uuid": self.uuid,
        }


def journal_writer(
    ctx: Context, caller: Caller, warehouse: Warehouse, levels: Levels, name: str = "", uuid: str = ""
) -> JournalWriter:
    """The writer of one request's events, holding its time and its caller."""
    client = f"{caller.client} {caller.client_version}".strip()
    return JournalWriter(ctx.clock.now_ms(), caller.principal, client, warehouse.name, levels, name, uuid)
