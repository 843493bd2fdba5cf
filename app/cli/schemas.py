"""`icekeel schema`: plan and apply declared schemas, and read what became of a table's schema over time."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from app.cli import declared
from app.cli.declared import Files
from app.cli.options import Form, ReportForm, Table, takes
from app.cli.output import show
from app.cli.subjects import Place
from app.cli.verdicts import change_line, moment
from app.errors import NotFound
from app.evolution.engine.diff import diff
from app.iceberg.schema import Schema, schema_to_json
from app.iceberg.table import TableMetadata

app = typer.Typer(name="schema", help="Schemas of tables: plan, apply, log, diff, show, column.")


@app.command("plan")
@takes(Files)
def plan(files: Files, form: ReportForm = "text") -> None:
    """Show what the table files would change."""
    raise typer.Exit(declared.plan(files, form))


@app.command("apply")
@takes(Files)
def apply(files: Files, form: ReportForm = "text") -> None:
    """Make the tables what the table files say, all files being compatible."""
    raise typer.Exit(declared.apply(files, form))


@app.command("log")
@takes(Place)
def log(
    place: Place,
    table: Table,
    since: Annotated[str | None, typer.Option(help="changes from then on: ISO 8601, or an age such as 7d")] = None,
    until: Annotated[str | None, typer.Option(help="changes before then")] = None,
    change: Annotated[
        str | None, typer.Option(help="changes of one kind: added, dropped, renamed, type-changed, ...")
    ] = None,
    by: Annotated[str | None, typer.Option(help="changes by this principal")] = None,
    form: Form = "text",
) -> None:
    """Every schema change of a table, newest first."""
    about = place.table(table)
    query = {k: v for k, v in {"since": since, "until": until, "change": change, "by": by}.items() if v}
    entries: list[Any] = []
    while True:
        page = about.history(query)
        entries.extend(page["entries"])
        following = page.get("next-page-token")
        if following is None:
            break
        query["pageToken"] = following
    show(form, {"entries": entries}, "\n".join(map(_entry, entries)) or "no schema changes")


def _entry(entry: Any) -> str:
    who = entry.get("by") or "before it came here"
    client = f" ({entry['client']})" if entry.get("client") else ""
    head = f"schema {entry['to-schema-id']}  {moment(entry.get('at-ms'))}  {who}{client}"
    lines = [head, *(f"  {change_line(change)}" for change in entry["changes"])]
    lines += [f"  {finding['severity']:5} {finding['message']}" for finding in entry.get("findings", ())]
    lines += [f"  waived {used['code']}: {used['reason']} ({used['granted-by']})" for used in entry.get("waivers", ())]
    return "\n".join(lines)


@app.command("diff")
@takes(Place)
def compare(
    place: Place,
    table: Table,
    before: Annotated[int, typer.Argument(metavar="BEFORE", help="schema id")],
    after: Annotated[int | None, typer.Argument(metavar="AFTER", help="schema id (default: the current one)")] = None,
    form: Form = "text",
) -> None:
    """What changed between two schemas of a table."""
    of = place.table(table).metadata()
    after = of.current_schema_id if after is None else after
    changes = diff(_retained(of, before), _retained(of, after)).to_json()
    text = "\n".join(map(change_line, changes)) or "no difference"
    show(form, {"before": before, "after": after, "changes": changes}, text)


@app.command("show")
@takes(Place)
def describe(
    place: Place,
    table: Table,
    at: Annotated[
        str | None, typer.Option(metavar="SNAPSHOT", help="the schema of a snapshot id, a branch or a tag")
    ] = None,
    schema: Annotated[int | None, typer.Option(metavar="ID", help="the schema with this id")] = None,
    form: Form = "text",
) -> None:
    """A schema of a table."""
    if at is not None and schema is not None:
        raise typer.BadParameter("not allowed with --schema", param_hint="--at")
    of = place.table(table).metadata()
    shown = of.schema
    if schema is not None:
        shown = _retained(of, schema)
    elif at is not None:
        shown = _at(of, at)
    show(form, schema_to_json(shown), _lines(shown))


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


@app.command("column")
@takes(Place)
def column(
    place: Place,
    table: Table,
    column: Annotated[str, typer.Argument(metavar="COLUMN", help="field id, or the full name of a present column")],
    form: Form = "text",
) -> None:
    """The life of one column, by field id or present name."""
    about = place.table(table)
    if column.isdigit():
        field_id = int(column)
    else:
        field = about.metadata().schema.find_readable(column)
        if field is None:
            raise NotFound(f"No present column is called {column}: name a dropped one by its field id")
        field_id = field.field_id
    life = about.column(field_id)
    show(form, life, _life(life))


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
