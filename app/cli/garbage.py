"""`icekeel gc`: metadata files that no pointer ever named.

It works on the database and the stores themselves, with the settings of the server.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Annotated

import typer

from app.catalog import orphan_files
from app.catalog.orphan_files import Report
from app.cli.codes import FOUND
from app.cli.options import Form, Home
from app.cli.output import busy, show
from app.edge import logs
from app.main import create_context
from app.settings import Settings, read_settings

app = typer.Typer()


@app.command(
    "gc",
    epilog="It reads the same ICEKEEL_* settings as the server and may run beside it. Exit code 1: there is garbage "
    "left.",
)
def collect_garbage(
    home: Home = None,
    warehouse: Annotated[str | None, typer.Option(metavar="NAME", help="look through this one only")] = None,
    delete: Annotated[
        bool, typer.Option("--delete", help="delete what is found; without it nothing is changed")
    ] = False,
    older_than: Annotated[
        float, typer.Option(metavar="HOURS", help="leave younger files alone; at least 1")
    ] = orphan_files.OLDER_THAN_MS / orphan_files.HOUR_MS,
    limit: Annotated[int, typer.Option(metavar="N", help="most files of one run")] = orphan_files.LIMIT,
    form: Form = "text",
) -> None:
    """Find metadata files that no table ever named, and delete them when told to."""
    settings = read_settings({"home": home})
    logs.configure(settings.log_level, settings.log_format)
    older_than_ms = int(older_than * orphan_files.HOUR_MS)
    with busy("looking for garbage"):
        report = asyncio.run(_collect(settings, warehouse, older_than_ms, limit, delete))
    show(form, _value(report), _text(report, delete))
    if len(report.garbage) > report.deleted:
        raise typer.Exit(FOUND)


async def _collect(settings: Settings, warehouse: str | None, older_than_ms: int, limit: int, delete: bool) -> Report:
    context = create_context(settings)
    try:
        await context.store.open()
        return await orphan_files.collect(context, warehouse, older_than_ms=older_than_ms, limit=limit, delete=delete)
    finally:
        await context.store.close()
        await context.objects.close()


def _value(report: Report) -> dict[str, object]:
    return {
        "tables": report.tables,
        "garbage": [{"location": found.location, "size": found.size} for found in report.garbage],
        "kept": [{"location": location, "reason": reason} for location, reason in report.kept],
        "deleted": report.deleted,
        "complete": report.complete,
    }


def _text(report: Report, delete: bool) -> str:
    lines = [found.location for found in report.garbage]
    lines += [f"not judged: {count} x {reason}" for reason, count in Counter(why for _, why in report.kept).items()]
    done = f"{report.deleted} deleted" if delete else "nothing deleted; --delete does"
    lines.append(
        f"{report.tables} tables and views, {len(report.garbage)} files of garbage, {report.bytes} bytes, {done}"
    )
    if not report.complete:
        lines.append("the limit was reached: run it again")
    return "\n".join(lines)
