"""`icekeel gc`: metadata files that no pointer ever named.

It works on the database and the stores themselves, with the settings of the server.
"""

from __future__ import annotations

import argparse
import asyncio
from collections import Counter

from app.catalog import orphan_files
from app.catalog.orphan_files import Report
from app.cli.output import add_format, show
from app.edge import logs
from app.main import create_context
from app.settings import Settings, read_settings

FOUND = 1


def configure(command: argparse.ArgumentParser) -> None:
    command.epilog = (
        "It reads the same ICEKEEL_* settings as the server and may run beside it. Exit code 1: there is garbage left."
    )
    command.add_argument("--home", help="folder of the embedded database (default: ICEKEEL_HOME or ~/.icekeel)")
    command.add_argument("--warehouse", help="look through this one only")
    command.add_argument("--delete", action="store_true", help="delete what is found; without it nothing is changed")
    command.add_argument(
        "--older-than", type=float, default=orphan_files.OLDER_THAN_MS / orphan_files.HOUR_MS, metavar="HOURS",
        help="leave younger files alone (default: 24, at least 1)",
    )  # fmt: skip
    command.add_argument(
        "--limit", type=int, default=orphan_files.LIMIT, help=f"most files of one run (default: {orphan_files.LIMIT})"
    )
    add_format(command)
    command.set_defaults(run=_run)


def _run(given: argparse.Namespace) -> int:
    settings = read_settings({"home": given.home})
    logs.configure(settings.log_level, settings.log_format)
    report = asyncio.run(_collect(settings, given))
    show(given.format, _value(report), _text(report, given.delete))
    return FOUND if len(report.garbage) > report.deleted else 0


async def _collect(settings: Settings, given: argparse.Namespace) -> Report:
    context = create_context(settings)
    try:
        await context.store.open()
        return await orphan_files.collect(
            context,
            given.warehouse,
            older_than_ms=int(given.older_than * orphan_files.HOUR_MS),
            limit=given.limit,
            delete=given.delete,
        )
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
