"""Measure the server, side by side with others, and compare what it costs with the budget.

    python -m bench                      the server and the floor of the stack, minutes
    python -m bench --full               with the peers of bench/peers, longer slices, more rounds
    python -m bench --target polaris=http://127.0.0.1:8181/api/catalog
    python -m bench --only load --only 304 --rounds 5
    python -m bench --store postgresql --store postgresql+s3 --only 'clients on'
    python -m bench --accept             take the measured ratios as the budget

The seed takes most of a short run: every target gets the same tables through the REST protocol.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench import budget, disk, judge, peers, report, stores, tables, targets
from bench.targets import ROOT, Started, Target
from bench.workloads import ALL, FLOORS, GZIP, WARMING, Workload

Json = dict[str, Any]
_AVERAGED = ("server_cpu_us", "per_second", "p50_us", "p90_us", "p99_us", "client_cpu_us", "longest_gap_s")
_ADDED = ("requests", "errors", "conflicts")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="peers, more rounds, longer slices")
    parser.add_argument("--peer", action="append", default=[], choices=sorted(peers.PEERS), help="start this peer too")
    parser.add_argument("--target", action="append", default=[], metavar="NAME=URL", help="a server that is running")
    parser.add_argument(
        "--only", action="append", default=[], metavar="TEXT", help="workloads whose name has this text"
    )
    parser.add_argument("--rounds", type=int, help="rounds (2, full: 3)")
    parser.add_argument("--scale", type=float, help="length of a slice (1, full: 2)")
    parser.add_argument("--listed", type=int, default=1_000, help="tables in the listed namespace")
    parser.add_argument("--million", type=int, default=1_000_000, help="tables in the big namespace")
    parser.add_argument(
        "--store", action="append", default=[], choices=sorted(stores.NAMES), help="our server on this store too"
    )
    parser.add_argument("--workers", type=int, default=1, help="worker processes of our server")
    parser.add_argument("--report", type=Path, default=report.FOLDER, help="folder of the report")
    parser.add_argument("--accept", action="store_true", help="take the measured ratios as the budget")
    given = parser.parse_args()
    given.rounds = given.rounds or (3 if given.full else 2)
    given.scale = given.scale or (2.0 if given.full else 1.0)
    given.peer = list(peers.PEERS) if given.full and not given.peer else given.peer
    return given


def chosen(only: list[str]) -> list[Workload]:
    return [workload for workload in ALL if not only or any(text in workload.name for text in only)]


def _generate(plan: Json) -> subprocess.CompletedProcess[str]:
    """The load generator on a plan."""
    return subprocess.run(
        [sys.executable, "-m", "bench.load"],
        cwd=ROOT,
        input=json.dumps(plan),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


class Run:
    """One run: the targets that could be had, and what was measured on them."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        self.workloads = chosen(given.only)
        self.targets: list[Target] = []
        self.absent: dict[str, str] = {}
        self.start: dict[str, Json] = {}
        self.cells: dict[str, dict[str, list[Json]]] = {}
        self.skipped: dict[tuple[str, str], str] = {}
        self.calibrations: list[float] = []
        self.writes: dict[str, list[float]] = {}
        self.judge: dict[str, float] = {}

    def open(self) -> None:
        """Start everything, idle at first, and seed it."""
        wanted = {name for workload in self.workloads for name in workload.targets}
        self._add(targets.icekeel(arguments=["--workers", str(self.given.workers)]))
        for store in self.given.store:
            try:
                self._add(stores.icekeel(store, ["--workers", str(self.given.workers)]))
            except stores.Unavailable as why:
                self.absent[stores.NAMES[store]] = str(why)
                print(f"{stores.NAMES[store]} is not measured: {why}", flush=True)
        if "icekeel-cold" in wanted:
            self._add(targets.icekeel("icekeel-cold", {"DOCUMENT_CACHE": "0"}))
        if any(workload.floor for workload in self.workloads):
            self._add(targets.floor(select=True))
            self._add(targets.floor(select=False))
        for name in self.given.peer:
            try:
                self._add(peers.PEERS[name]())
            except peers.Unavailable as why:
                self.absent[name] = str(why)
                print(f"{name} is not measured: {why}", flush=True)
        for text in self.given.target:
            name, _, url = text.partition("=")
            self._add(Target.at(name, url))
        for target in list(self.targets):
            if target.name in FLOORS:
                continue
            try:
                self._seed(target)
                if target.jvm:
                    self._warm(target)
            except RuntimeError as why:
                if target.name not in self.given.peer:
                    raise
                self.targets.remove(target)
                target.stop()
                self.absent[target.name] = f"its tables could not be made: {why}"
                print(f"{target.name} is not measured: {self.absent[target.name]}", flush=True)

    def _add(self, target: Target) -> None:
        self.targets.append(target)
        self.start[target.name] = dict(target.start)

    def _seed(self, target: Target) -> None:
        began = time.monotonic()
        target.connect()
        full = target.name != "icekeel-cold"
        tables.seed(target, listed=self.given.listed if full else 0)
        if (
            target.name == "icekeel"
            and isinstance(target, Started)
            and any("1,000,000" in w.name for w in self.workloads)
        ):
            tables.million(target, next((target.folder / "home").glob("*.db")), self.given.million)
        print(f"seeded {target.name} in {time.monotonic() - began:.1f} s", flush=True)

    def _warm(self, target: Target) -> None:
        """Requests until what a JVM does for most of them is compiled; a table of its own takes the commits."""
        tables.make(target, tables.SPACE, tables.WARM, 1)
        for workload in WARMING:
            _generate(workload.plan(target, scale=1.0, warm_seconds=0))

    def measure(self) -> None:
        for workload in self.workloads:
            for turn in range(self.given.rounds):
                self.calibrations.append(budget.calibration())
                for target in self.targets:
                    if self._takes(workload, target):
                        target.round += 1
                        self._slice(workload, target, first=turn == 0)
                if workload.name.startswith("commit append, 10,000"):
                    self._write_alone(workload)
            print(self._line(workload), flush=True)

    def _takes(self, workload: Workload, target: Target) -> bool:
        if workload.targets:
            return target.name in workload.targets
        if target.name in FLOORS:
            return workload.floor is not None
        return target.name != "icekeel-cold"

    def _slice(self, workload: Workload, target: Target, *, first: bool) -> None:
        if (workload.name, target.name) in self.skipped:
            return
        # A JVM gets more time to compile what is hot in this workload alone before it is measured.
        warm = (3.0 if target.jvm else 0.3) if first else (0.5 if target.jvm else 0.1)
        try:
            plan = workload.plan(target, scale=self.given.scale, warm_seconds=warm)
        except (LookupError, RuntimeError) as why:
            self.skipped[(workload.name, target.name)] = str(why)[:200]
            return
        if target.jvm and first and "count" in plan:
            _generate(plan)
            target.round += 1
            plan = workload.plan(target, scale=self.given.scale, warm_seconds=warm)
        done = _generate(plan)
        if done.returncode != 0:
            self.skipped[(workload.name, target.name)] = done.stderr.strip()[-300:]
            return
        self.cells.setdefault(workload.name, {}).setdefault(target.name, []).append(json.loads(done.stdout))

    def _line(self, workload: Workload) -> str:
        row = self.row(workload.name)
        shown = []
        for name, cell in row.items():
            if "skipped" in cell:
                shown.append(f"{name} skipped: {cell['skipped']}")
            else:
                flaw = f" {cell['errors']} ERRORS {cell['first_error']}" if cell["errors"] else ""
                shown.append(
                    f"{name} {cell['server_cpu_us']} us, {cell['per_second']}/s, p99 {cell['p99_us']} us{flaw}"
                )
        return f"{workload.name:34} " + " | ".join(shown)

    def _write_alone(self, workload: Workload) -> None:
        """The disk without a server, right after the servers' turns: what a write costs the kernel changes by the hour.

        A file of the size that ours wrote.
        """
        ours = self.targets[0]
        table, headers = {"10,000 snapshots": ("a10000", {}), "10,000 snapshots, gzip": (tables.PACKED, GZIP)}[
            workload.name.removeprefix("commit append, ")
        ]
        length = ours.header(ours.path(f"namespaces/{tables.SPACE}/tables/{table}"), "Content-Length", headers)
        self.writes.setdefault(workload.name, []).append(round(disk.write_us(int(length or 0)), 1))

    def row(self, workload: str) -> dict[str, Json]:
        """The cells of a workload: medians over the rounds, sums of what is counted."""
        row: dict[str, Json] = {}
        for name, cells in self.cells.get(workload, {}).items():
            cell: Json = dict(cells[-1])
            for key in _AVERAGED:
                values = [each[key] for each in cells if each[key] is not None]
                cell[key] = round(statistics.median(values), 3) if values else None
            for key in _ADDED:
                cell[key] = sum(each[key] for each in cells)
            cell["client_least"] = min(each["client_least"] for each in cells)
            cell["client_most"] = max(each["client_most"] for each in cells)
            cell["first_error"] = next((each["first_error"] for each in cells if each["first_error"]), "")
            cell["rounds"] = [each["server_cpu_us"] for each in cells]
            row[name] = cell
        for (skipped, name), why in self.skipped.items():
            if skipped == workload:
                row[name] = {"skipped": why}
        return row

    def results(self) -> Json:
        for target in self.targets:
            self.start[target.name]["loaded_rss_mb"] = target.resident_mb()
        return {
            "machine": {
                "date": time.strftime("%Y-%m-%d"),
                "cores": os.cpu_count(),
                "python": platform.python_version(),
                "load": round(os.getloadavg()[1], 1),
            },
            "rounds": self.given.rounds,
            "calibration_us": statistics.median(self.calibrations),
            "targets": [target.name for target in self.targets],
            "notes": {target.name: target.note for target in self.targets if target.note},
            "jvms": [target.name for target in self.targets if target.jvm],
            "start": self.start,
            "writes": {name: statistics.median(costs) for name, costs in self.writes.items()},
            "judge": self.judge,
            "workloads": {workload.name: self.row(workload.name) for workload in self.workloads},
            "absent": self.absent,
        }

    def close(self) -> None:
        for target in self.targets:
            target.stop()


def ratios(results: Json) -> dict[str, float]:
    """What our own server costs per workload, in turns of the calibration loop."""
    found = {}
    for workload, row in results["workloads"].items():
        for name in ("icekeel", "icekeel-cold"):
            cost = row.get(name, {}).get("server_cpu_us")
            if cost is not None:
                found[workload] = cost / results["calibration_us"]
    return found


def main() -> int:
    given = arguments()
    # Whoever ends this run by a signal ends the servers that it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))
    run = Run(given)
    try:
        run.open()
        run.measure()
        if not given.only:
            run.judge = {name: round(cost, 3) for name, cost in judge.medians().items()}
        results = run.results()
        report.write(results, given.report)
    finally:
        run.close()
    print(f"wrote {given.report}/results.md, .json, .svg")
    measured = ratios(results)
    worse = budget.slower(measured)
    for name, before, now in worse:
        print(
            f"SLOWER {name}: {now:.2f} turns of the calibration loop, accepted {before:.2f} (+{now / before - 1:.0%})"
        )
    if not worse:
        print("nothing got slower than the budget allows")
    if given.accept:
        budget.accept(measured, {"date": results["machine"]["date"], "unit": "turns of bench/budget.py's loop"})
    return 0


if __name__ == "__main__":
    sys.exit(main())
