"""The table that a schema command is about: one of a running server, or a metadata file read offline.

Offline, the rules hold as they are by default: no policy, no waivers, no properties of a namespace.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from app.catalog.dry_run import DryRun, dry_run, dry_run_json, plan_json
from app.catalog.schema_history import before_arrival, chapter_json
from app.cli.client import Refused, Server, ServerTable
from app.cli.options import Metadata, Warehouse
from app.errors import BadRequest, CommitFailed, IcekeelError, NotFound
from app.evolution.editing.field_biography import biography, biography_json
from app.evolution.editing.operations import declare, parse_operations
from app.evolution.editing.plan import Plan, plan
from app.evolution.editing.schema_input import is_given, wanted_schema
from app.evolution.engine.change import Evidence
from app.evolution.engine.judge import judge
from app.evolution.engine.policy import policy_from
from app.iceberg import metadata_file
from app.iceberg.json import codec
from app.iceberg.requirement import parse_table_requirements
from app.iceberg.table import TableMetadata, parse_table_metadata
from app.iceberg.update import TableUpdate, parse_table_updates
from app.metadata import requirements as commit_requirements
from app.metadata import tables as commit_tables

Value = Mapping[str, Any]


class Subject(Protocol):
    """What schema commands ask of a table; values are those of the API."""

    @property
    def name(self) -> str: ...

    def check(self, body: Value) -> Value: ...

    def plan(self, body: Value) -> Value: ...

    def history(self, query: Mapping[str, str]) -> Value: ...

    def column(self, field_id: int) -> Value: ...

    def metadata(self) -> TableMetadata: ...


@dataclass(frozen=True, kw_only=True)
class Place(Server):
    """Where a table is, as the options of a command tell."""

    metadata: Metadata = None
    warehouse: Warehouse = "default"

    def table(self, name: str | None) -> Subject:
        """The table of that name, or of the metadata file where one is given. BadRequest when nothing names one."""
        if self.metadata:
            return MetadataFile(Path(self.metadata), name)
        if not name:
            raise BadRequest("Name a table with --table, or a metadata file with --metadata")
        return ServedTable(uri=self.uri, token=self.token, warehouse=self.warehouse, table=name)


class ServedTable(ServerTable):
    """A table of a running server."""

    @property
    def name(self) -> str:
        return self.table

    def check(self, body: Value) -> Value:
        return self.evolution("POST", "check", body)

    def plan(self, body: Value) -> Value:
        return self.evolution("POST", "plan", body)

    def apply(self, body: Value) -> Value:
        return self.evolution("POST", "apply", body)

    def history(self, query: Mapping[str, str]) -> Value:
        return _read(lambda: self.evolution("GET", "history", query=query))

    def column(self, field_id: int) -> Value:
        return _read(lambda: self.evolution("GET", f"columns/{field_id}"))

    def metadata(self) -> TableMetadata:
        return parse_table_metadata(codec.encode(_read(self.load)["metadata"]))


def _read(ask: Callable[[], Value]) -> Value:
    """NotFound where the server refuses: what cannot be read is no finding about it."""
    try:
        return ask()
    except Refused as refused:
        raise NotFound(refused.message) from None


class MetadataFile:
    """A metadata file, judged as if it were a table's present state."""

    def __init__(self, path: Path, name: str | None) -> None:
        self.name = name or path.name
        self._path = path
        self._metadata: TableMetadata | None = None

    def metadata(self) -> TableMetadata:
        if self._metadata is None:
            try:
                data = self._path.read_bytes()
            except OSError as fault:
                raise NotFound(f"Cannot read {self._path}: {fault.strerror}") from None
            self._metadata = parse_table_metadata(metadata_file.decode(data, str(self._path)))
        return self._metadata

    def check(self, body: Value) -> Value:
        base = self.metadata()
        if body.get("updates") is not None:
            requirements = parse_table_requirements(body.get("requirements") or [])
            updates = parse_table_updates(body["updates"])
            try:
                commit_requirements.check_table(requirements, base)
            except CommitFailed as stale:
                return dry_run_json(DryRun("not-checked", base, str(self._path), stale.message))
            return dry_run_json(self._dry_run(updates))
        if body.get("operations") is not None:
            operations = parse_operations(body["operations"])
        elif is_given(body):
            operations = (declare(wanted_schema(body), codec.optional_str(body, "match")),)
        else:
            raise BadRequest("Exactly one of updates, operations, schema, fields and arrow-ipc-schema is needed")
        try:
            made = plan(base, operations)
        except BadRequest as fault:
            return dry_run_json(DryRun("incompatible", base, str(self._path), fault.message))
        return dry_run_json(self._dry_run(made.updates))

    def plan(self, body: Value) -> Value:
        made: Plan = plan(
            self.metadata(),
            parse_operations(body["operations"]),
            tag_before_drop=codec.optional_bool(body, "tag-before-drop") or False,
        )
        return plan_json(made, self._dry_run(made.updates))

    def history(self, query: Mapping[str, str]) -> Value:
        metadata = self.metadata()
        told = before_arrival(metadata, (), self.name, metadata.current_schema_id)
        return {"entries": [chapter_json(chapter) for chapter in told]}

    def column(self, field_id: int) -> Value:
        return {**biography_json(biography(self.metadata(), field_id)), "history": []}

    def _dry_run(self, updates: tuple[TableUpdate, ...]) -> DryRun:
        base = self.metadata()
        try:
            # No clock offline: what the verdict says does not depend on the time of the commit.
            after = commit_tables.apply(base, str(self._path), updates, base.last_updated_ms, _NO_UUID).metadata
        except CommitFailed as stale:
            return DryRun("not-checked", base, str(self._path), stale.message)
        except BadRequest as fault:
            return DryRun("incompatible", base, str(self._path), fault.message)
        policy = policy_from({**after.properties, **base.properties}, ())
        verdict = judge(base, after, Evidence(now_ms=base.last_updated_ms), policy, base.last_updated_ms)
        return dry_run(base, str(self._path), after, verdict.findings)


_NO_UUID = "00000000-0000-4000-8000-000000000000"


def json_file(path: str) -> Any:
    """The decoded JSON of a file, `-` for standard input. NotFound, SpecError."""
    try:
        data = Path("/dev/stdin" if path == "-" else path).read_bytes()
    except OSError as fault:
        raise NotFound(f"Cannot read {path}: {fault.strerror}") from None
    try:
        return codec.decode(data)
    except IcekeelError as fault:
        raise BadRequest(f"{path}: {fault.message}") from None
