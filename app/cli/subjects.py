"""The table that a schema command is about: one of a running server, or a metadata file read offline.

Offline, the rules hold as they are by default: no policy, no waivers, no properties of a namespace.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from app.catalog.dry_run import DryRun, dry_run, dry_run_json, plan_json
from app.catalog.schema_history import before_arrival, chapter_json
from app.cli.client import DEFAULT_URI, call, evolution_path, table_path
from app.cli.output import add_format
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

Value = dict[str, Any]


class Subject(Protocol):
    """What schema commands ask of a table; values are those of the API."""

    name: str

    def check(self, body: Mapping[str, Any]) -> Value: ...

    def plan(self, body: Mapping[str, Any]) -> Value: ...

    def history(self, query: str) -> Value: ...

    def column(self, field_id: int) -> Value: ...

    def metadata(self) -> TableMetadata: ...


def add_subject(action: argparse.ArgumentParser, *, formats: tuple[str, ...] = ("text", "json")) -> None:
    """Options that say where the table is."""
    action.add_argument("--metadata", metavar="FILE", help="work offline on this metadata.json")
    action.add_argument("--warehouse", default="default", help="warehouse name (default: default)")
    uri = os.environ.get("ICEKEEL_URI", DEFAULT_URI)
    action.add_argument("--uri", default=uri, help=f"server (default: ICEKEEL_URI or {DEFAULT_URI})")
    action.add_argument(
        "--token", default=os.environ.get("ICEKEEL_TOKEN"), help="bearer token (default: ICEKEEL_TOKEN)"
    )
    if formats == ("text", "json"):
        add_format(action)
    else:
        action.add_argument("--format", choices=formats, default="text", help="text for people (default), or machines")


def subject(given: argparse.Namespace, table: str | None = None) -> Subject:
    """The table that the options name; `table` wins over the option. BadRequest when nothing names one."""
    name = table or getattr(given, "table", None)
    if given.metadata:
        return MetadataFile(Path(given.metadata), name)
    if not name:
        raise BadRequest("Name a table with --table, or a metadata file with --metadata")
    return ServedTable(given, name)


class ServedTable:
    """A table of a running server."""

    def __init__(self, given: argparse.Namespace, name: str) -> None:
        self.name = name
        self._given = argparse.Namespace(**{**vars(given), "table": name})

    def check(self, body: Mapping[str, Any]) -> Value:
        return self._post("check", body)

    def plan(self, body: Mapping[str, Any]) -> Value:
        return self._post("plan", body)

    def apply(self, body: Mapping[str, Any]) -> Value:
        return self._post("apply", body)

    def history(self, query: str) -> Value:
        return self._get(f"history{query}")

    def column(self, field_id: int) -> Value:
        return self._get(f"columns/{field_id}")

    def metadata(self) -> TableMetadata:
        answer: Value = call(self._given, "GET", table_path(self._given))
        return parse_table_metadata(codec.encode(answer["metadata"]))

    def _post(self, what: str, body: Mapping[str, Any]) -> Value:
        answer: Value = call(self._given, "POST", evolution_path(self._given, what), dict(body))
        return answer

    def _get(self, what: str) -> Value:
        answer: Value = call(self._given, "GET", evolution_path(self._given, what))
        return answer


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

    def check(self, body: Mapping[str, Any]) -> Value:
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

    def plan(self, body: Mapping[str, Any]) -> Value:
        made: Plan = plan(
            self.metadata(),
            parse_operations(body["operations"]),
            tag_before_drop=codec.optional_bool(body, "tag-before-drop") or False,
        )
        return plan_json(made, self._dry_run(made.updates))

    def history(self, query: str) -> Value:
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
