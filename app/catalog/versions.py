"""Versions of a table as the pointer went through them: what a replay answers with, and which files may go."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.catalog import etags, locations, places, replays
from app.catalog.answers import Committed, LoadedTable
from app.catalog.config import client_config
from app.catalog.context import Context
from app.catalog.drafts import Draft
from app.catalog.replays import Outcome
from app.commit.properties import may_delete
from app.errors import BadRequest, NotFound
from app.ports import Kind, Levels, Warehouse
from app.rules import Finding
from app.spec import location as spec_location
from app.spec.metadata_file import METADATA_PATH
from app.spec.text import Text

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Version:
    """One version: its metadata file and the document in it, as JSON."""

    file: str
    text: bytes | Text


def committed(warehouse: Warehouse, version: Version, findings: tuple[Finding, ...] = ()) -> Committed:
    """The answer of a commit; its tag is good for the next default load."""
    tag = etags.etag(version.file, etags.ALL, client_config(warehouse))
    return Committed(version.file, version.text, tag, findings)


def loaded(warehouse: Warehouse, version: Version, findings: tuple[Finding, ...] = ()) -> LoadedTable:
    """The answer of a create or register: the table as the next default load would show it."""
    config = client_config(warehouse)
    tag = etags.etag(version.file, etags.ALL, config)
    return LoadedTable(version.file, version.text, config, tag, findings)


def of(draft: Draft) -> Version:
    return Version(draft.file, draft.document.text)


def outcome(draft: Draft) -> dict[str, Any]:
    """What an idempotency record keeps of an accepted draft: enough to answer again, however large the document."""
    return {"file": draft.file, "findings": replays.recorded_findings(draft.findings)}


async def recorded(
    ctx: Context, warehouse: Warehouse, levels: Levels, name: str, outcome: Outcome, kind: Kind = "table"
) -> Version:
    """The version that a recorded outcome names, or the present one when that file was trimmed since.

    A replay may show a newer state; it may not run the request again. NoSuchTable when nothing is left to show.
    """
    try:
        return await _version(ctx, warehouse, outcome["file"], kind)
    except NotFound:
        find = places.table if kind == "table" else places.view
        row = await find(ctx, warehouse, levels, name)
        return await _version(ctx, warehouse, row.metadata_location, kind)


async def trim(ctx: Context, warehouse: Warehouse, draft: Draft) -> None:
    """Delete metadata files that fell off the log of a table that asks for it, as far as they are its own: where any
    other table of any warehouse may have files nothing goes, for its log may name them too."""
    properties = draft.document.metadata.properties
    if not may_delete(properties):
        return
    objects, itself = ctx.objects.of(warehouse), None if draft.row is None else draft.row.tabular_id
    for home in _homes(draft, properties):
        if others := await locations.owners(ctx, objects, home, besides=itself):
            log.warning("metadata files of %s are kept: %s shares %s", draft.location, others[0], home)
            return
    for file in draft.expired:
        if file != draft.file and _own(draft, properties, file) and locations.may_touch(ctx, warehouse, file):
            await objects.delete(file)


async def _version(ctx: Context, warehouse: Warehouse, file: str, kind: Kind) -> Version:
    objects, documents, limit = ctx.objects.of(warehouse), ctx.caches.documents, ctx.limits.document_bytes
    if kind == "table":
        return Version(file, (await documents.table(objects, file, limit)).text)
    return Version(file, (await documents.view(objects, file, limit)).text)


def _homes(draft: Draft, properties: Mapping[str, str]) -> list[str]:
    return [draft.location, *([properties[METADATA_PATH]] if properties.get(METADATA_PATH) else [])]


def _own(draft: Draft, properties: Mapping[str, str], file: str) -> bool:
    """Whether `file` lies where this table keeps its metadata; a log may name anything."""
    try:
        return any(spec_location.contains(home, file) for home in _homes(draft, properties))
    except BadRequest:
        return False
