"""What engines tell us by the way: who loads and commits which table, and their metrics reports.

Observing costs a dictionary entry on the hot path; a background task carries the entries to the store. A crash loses
the newest ones, and nothing else.
"""

from __future__ import annotations

from collections import deque
from typing import Literal

from app.ports import Report, Sighting, Store

MAX_SIGHTINGS = 10_000
MAX_REPORTS = 1_000


class Usage:
    """A bounded buffer of sightings (latest per table, client and action) and reports (newest kept)."""

    __slots__ = ("_reports", "_sightings")

    def __init__(self) -> None:
        self._sightings: dict[tuple[str, str, str, str], Sighting] = {}
        self._reports: deque[Report] = deque(maxlen=MAX_REPORTS)

    def saw(
        self, table_uuid: str, client: str, client_version: str, action: Literal["load", "commit"], now_ms: int
    ) -> None:
        """Remember that a client was here. An unnamed client leaves no trace."""
        if not client:
            return
        key = (table_uuid, client, client_version, action)
        if key in self._sightings or len(self._sightings) < MAX_SIGHTINGS:
            self._sightings[key] = Sighting(
                table_uuid=table_uuid, client=client, client_version=client_version, action=action, last_seen_ms=now_ms
            )

    def received(self, report: Report) -> None:
        self._reports.append(report)

    async def flush(self, store: Store) -> int:
        """Hand everything buffered to the store; returns how many entries. A failure keeps nothing for later."""
        sightings, reports = tuple(self._sightings.values()), tuple(self._reports)
        self._sightings.clear()
        self._reports.clear()
        if sightings or reports:
            await store.note(sightings, reports)
        return len(sightings) + len(reports)
