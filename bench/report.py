"""The results as JSON, as a table in Markdown and as a plot in SVG, in `bench/report/`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from math import log10
from pathlib import Path
from typing import Any

from bench.claims import claims

Json = dict[str, Any]
FOLDER = Path(__file__).with_name("report")
_COLOURS = ("#2458a6", "#d1741f", "#3b8a4e", "#8a3b7f", "#777777")


def write(results: Json, folder: Path = FOLDER) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    (folder / "results.md").write_text(markdown(results))
    (folder / "results.svg").write_text(svg(results))


def markdown(results: Json) -> str:
    names: Sequence[str] = results["targets"]
    lines = ["# Measured side by side", "", *_preamble(results), ""]
    lines += ["## The budget", "", "| what | wanted | measured | |", "|---|---|---|---|"]
    for claim in claims(results):
        verdict = {True: "met", False: "**missed**", None: ""}[claim.holds]
        lines.append(f"| {claim.what} | {claim.wanted} | {claim.measured} | {verdict} |")
    lines += ["", "## Workloads", ""]
    lines += ["Server CPU microseconds per request, median of the rounds (requests a second, p50/p99 in ms).", ""]
    lines += ["| workload | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    for workload, row in results["workloads"].items():
        lines.append(f"| {workload} | " + " | ".join(_cell(row.get(name)) for name in names) + " |")
    lines += ["", "## Start and memory", "", "| | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    for key, label in (
        ("wall_s", "seconds to the first 200"),
        ("cpu_s", "CPU seconds to the first 200"),
        ("idle_rss_mb", "idle RSS, MB"),
        ("loaded_rss_mb", "RSS after the run, MB"),
    ):
        lines.append(
            f"| {label} | " + " | ".join(str(results["start"].get(name, {}).get(key, "")) for name in names) + " |"
        )
    lines += ["", "## One hot table, 32 clients", ""]
    for name, cell in results["workloads"].get("32 clients on one table", {}).items():
        if "requests" in cell:
            lines.append(
                f"- {name}: {cell['per_second']:.0f} commits a second, {cell['conflicts']} conflicts, a client landed "
                f"{cell['client_least']} to {cell['client_most']}, longest wait of one client {cell['longest_gap_s']} s"
            )
    if results.get("absent"):
        lines += ["", "## Not measured", "", *[f"- {name}: {why}" for name, why in results["absent"].items()]]
    return "\n".join(lines) + "\n"


def _preamble(results: Json) -> list[str]:
    machine: Mapping[str, Any] = results["machine"]
    return [
        f"{machine['date']}, {machine['cores']} cores, Python {machine['python']}, load average {machine['load']}; "
        f"one turn of the calibration loop {results['calibration_us']:.1f} us of CPU.",
        f"Servers took turns, workload by workload, {results['rounds']} rounds; SQLite and local disk unless told "
        "otherwise; the load generator is another process on the same cores and asks for compression only where the "
        "name of the workload says so.",
        *(f"{name}: {note}" for name, note in results.get("notes", {}).items()),
    ]


def _cell(cell: Json | None) -> str:
    if cell is None:
        return ""
    if "skipped" in cell:
        return f"- ({cell['skipped']})"
    if not cell.get("requests"):
        return f"failed ({cell.get('first_error', '')[:80]})"
    cost = "?" if cell["server_cpu_us"] is None else f"**{cell['server_cpu_us']:,.0f}**"
    flawed = f", {cell['errors']} ERRORS" if cell["errors"] else ""
    return f"{cost} ({cell['per_second']:,.0f}/s, {cell['p50_us'] / 1000:.2f}/{cell['p99_us'] / 1000:.2f}{flawed})"


def svg(results: Json) -> str:
    """Horizontal bars on a logarithmic axis: CPU microseconds per request."""
    names: Sequence[str] = results["targets"]
    rows = [
        (workload, [(at, row[name]["server_cpu_us"]) for at, name in enumerate(names) if _measured(row.get(name))])
        for workload, row in results["workloads"].items()
    ]
    rows = [row for row in rows if row[1]]
    left, width, bar, top = 250, 640, 9, 50
    height = top + sum(len(bars) * bar + 8 for _, bars in rows) + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 90}" height="{height}" '
        'font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
        '<text x="10" y="18" font-size="14">CPU microseconds of the server per request (logarithmic)</text>',
    ]
    for at, name in enumerate(names):
        x = 10 + at * 150
        parts.append(f'<rect x="{x}" y="27" width="10" height="10" fill="{_COLOURS[at % len(_COLOURS)]}"/>')
        parts.append(f'<text x="{x + 14}" y="36">{escape(name)}</text>')
    for power in range(1, 7):
        at_x = left + _length(10**power, width)
        parts.append(f'<line x1="{at_x:.0f}" y1="{top - 4}" x2="{at_x:.0f}" y2="{height - 22}" stroke="#ddd"/>')
        parts.append(f'<text x="{at_x:.0f}" y="{height - 8}" text-anchor="middle">{10**power:,}</text>')
    y = float(top)
    for workload, bars in rows:
        parts.append(
            f'<text x="{left - 8}" y="{y + len(bars) * bar / 2 + 4:.0f}" text-anchor="end">{escape(workload)}</text>'
        )
        for at, value in bars:
            long = _length(value, width)
            fill = _COLOURS[at % len(_COLOURS)]
            parts.append(f'<rect x="{left}" y="{y:.0f}" width="{long:.1f}" height="{bar - 1}" fill="{fill}"/>')
            parts.append(f'<text x="{left + long + 4:.0f}" y="{y + 8:.0f}" font-size="9">{value:,.0f}</text>')
            y += bar
        y += 8
    return "\n".join([*parts, "</svg>"]) + "\n"


def _measured(cell: Json | None) -> bool:
    return bool(cell and cell.get("requests") and cell.get("server_cpu_us"))


def _length(value: float, width: int) -> float:
    """Six decades from 10 microseconds on."""
    return max(1.0, (log10(max(value, 1.0)) - 1) / 6 * width)
