"""`icekeel schema`: plan and apply declared schemas, and read what became of a table's schema over time."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from app.cli import declared
from app.cli.output import show
from app.cli.subjects import add_subject, subject
from app.cli.verdicts import FINE, change_line, moment
from app.errors import NotFound
from app.evolution.engine.diff import diff
from app.iceberg.schema import Schema, schema_to_json
from app.iceberg.table import TableMetadata

FORMATS = ("text", "json", "github")


def configure(command: argparse.ArgumentParser) -> None:
    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, run, text in (
        ("plan", declared.plan, "show what the table files would change"),
        ("apply", declared.apply, "make the tables what the table files say, all files being compatible"),
    ):
        action = actions.add_parser(name, help=text)
        action.add_argument("-f", "--file", nargs="+", action="extend", required=True, help="table files or folders")
        action.add_argument(
            "--root",
            default="tables",
            metavar="DIR",
            help="folder below which the path of a single file names its table (default: tables)",
        )
        action.add_argument("--strict", action="store_true", help="exit 1 for warnings too")
        add_subject(action, formats=FORMATS)
        action.set_defaults(run=run)
    _add_reading(actions, "log", _log, "every schema change of a table, newest first")
    action = _add_reading(actions, "diff", _diff, "what changed between two schemas of a table")
    action.add_argument("before", type=int, help="schema id")
    action.add_argument("after", type=int, nargs="?", help="schema id (default: the current one)")
    action = _add_reading(actions, "show", _show, "a schema of a table")
    which = action.add_mutually_exclusive_group()
    which.add_argument("--at", metavar="SNAPSHOT", help="the schema of a snapshot id, a branch or a tag")
    which.add_argument("--schema", type=int, help="the schema with this id")
    action = _add_reading(actions, "column", _column, "the life of one column, by field id or present name")
    action.add_argument("column", help="field id, or the full name of a present column")


def _add_reading(
    actions: Any, name: str, run: Callable[[argparse.Namespace], None], text: str
) -> argparse.ArgumentParser:
    action: argparse.ArgumentParser = actions.add_parser(name, help=text)
    action.add_argument("table", help="namespace.table, or a JSON list of levels and name")
    if name == "log":
        action.add_argument("--since", help="changes from then on: ISO 8601, or an age such as 7d")
        action.add_argument("--until", help="changes before then")
        action.add_argument("--change", help="changes of one kind: added, dropped, renamed, type-changed, ...")
        action.add_argument("--by", help="changes by this principal")
    add_subject(action)
    action.set_defaults(run=lambda given: _done(run, given))
    return action


def _done(run: Callable[[argparse.Namespace], None], given: argparse.Namespace) -> int:
    run(given)
    return FINE


def _log(given: argparse.Namespace) -> None:
    about = subject(given)
    asked = {key: getattr(given, key) for key in ("since", "until", "change", "by") if getattr(given, key)}
    entries: list[Any] = []
    token: str | None = None
    while True:
        page = about.history("?" + urlencode({**asked, **({} if token is None else {"pageToken": token})}))
        entries.extend(page["entries"])
        token = page.get("next-page-token")
        if token is None:
            break
    show(given.format, {"entries": entries}, "\n".join(map(_entry, entries)) or "no schema changes")


def _entry(entry: Any) -> str:
    who = entry.get("by") or "before it came here"
    client = f" ({entry['client']})" if entry.get("client") else ""
    head = f"schema {entry['to-schema-id']}  {moment(entry.get('at-ms'))}  {who}{client}"
    lines = [head, *(f"  {change_line(change)}" for change in entry["changes"])]
    lines += [f"  {finding['severity']:5} {finding['message']}" for finding in entry.get("findings", ())]
    lines += [f"  waived {used['code']}: {used['reason']} ({used['granted-by']})" for used in entry.get("waivers", ())]
    return "\n".join(lines)


def _diff(given: argparse.Namespace) -> None:
    metadata = subject(given).metadata()
    after = metadata.current_schema_id if given.after is None else given.after
    changes = diff(_retained(metadata, given.before), _retained(metadata, after)).to_json()
    text = "\n".join(map(change_line, changes)) or "no difference"
    show(given.format, {"before": given.before, "after": after, "changes": changes}, text)


def _show(given: argparse.Namespace) -> None:
    metadata = subject(given).metadata()
    schema = metadata.schema
    if given.schema is not None:
        schema = _retained(metadata, given.schema)
    elif given.at is not None:
        schema = _at(metadata, given.at)
    show(given.format, schema_to_json(schema), _lines(schema))


def _at(metadata: TableMetadata, at: str) -> Schema:
    ref = metadata.refs.get(at)
    snapshot_id = ref.snapshot_id if ref is not None else int(at) if at.lstrip("-").isdigit() else None
    snapshot = None if snapshot_id is None else metadata.snapshots.get(snapshot_id)
    if snapshot is None:
        raise NotFound(f"No such snapshot, branch or tag: {at}")
    if snapshot.schema_id is None:
        raise NotFound(f"Snapshot {snapshot.snapshot_id} does not say under which schema it was written")
    return _retained(metadata, snapshot.schema_id)


def _retained(metadata: TableMetadata, schema_id: int) -> Schema:
    schema = metadata.schemas.get(schema_id)
    if schema is None:
        known = ", ".join(map(str, sorted(metadata.schemas)))
        raise NotFound(f"Schema {schema_id} is not retained (there are {known})")
    return schema


def _lines(schema: Schema) -> str:
    """One line for each field at every depth."""
    lines = [f"schema {schema.schema_id}"]
    for field_id, field in schema.by_id.items():
        depth = sum(1 for _ in schema.ancestors(field_id))
        nested = str(field.field_type).split("<", 1)[0] if "<" in str(field.field_type) else str(field.field_type)
        mark = " *" if field_id in schema.identifier_field_ids else ""
        doc = f"  -- {field.doc}" if field.doc else ""
        need = "required" if field.required else "optional"
        lines.append(f"{'  ' * (depth + 1)}{field_id}: {field.name}: {need} {nested}{mark}{doc}")
    return "\n".join(lines)


def _column(given: argparse.Namespace) -> None:
    about = subject(given)
    if given.column.isdigit():
        field_id = int(given.column)
    else:
        field = about.metadata().schema.find_readable(given.column)
        if field is None:
            raise NotFound(f"No present column is called {given.column}: name a dropped one by its field id")
        field_id = field.field_id
    life = about.column(field_id)
    show(given.format, life, _life(life))


def _life(life: Any) -> str:
    lines = [f"field {life['field-id']}: {life['state']}"]
    for one in life["definitions"]:
        need = "required" if one["required"] else "optional"
        default = f" initial-default {one['initial-default']!r}" if "initial-default" in one else ""
        lines.append(f"  schema {one['schema-id']}: {one['path']}: {need} {one['type']}{default}")
    carried = ", ".join(map(str, life["schema-ids"])) or "none"
    lines.append(f"  in schemas {carried}; in {life['snapshots']['count']} of the retained snapshots")
    if life["refs"]:
        lines.append(f"  reachable from {', '.join(life['refs'])}")
    for entry in reversed(life["history"]):
        who = f"  {moment(entry.get('at-ms'))}  {entry.get('by', 'unknown')}: "
        mine = (change for change in entry["changes"] if change.get("field-id") == life["field-id"])
        lines.extend(who + change_line(change) for change in mine)
    return "\n".join(lines)
