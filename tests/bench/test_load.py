"""The driver end to end, against a server of its own."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bench import load, report, tables
from bench.targets import Target
from bench.workloads import ALL
from tests.server import Server

SHORT = {
    "config",
    "load 5 snapshots",
    "304, 5 snapshots",
    "HEAD, 5 snapshots",
    "list page of 100 in 1,000",
    "commit set-properties",
    "commit add-schema",
    "commit append, 10 snapshots",
    "32 clients on one table",
    "transaction of 10 tables",
    "create and drop",
}


def test_every_kind_of_workload_runs_without_an_error_and_is_charged(tmp_path: Path) -> None:
    """Each workload's requests are answered as it expects, the server's CPU is counted, and the report shows it all."""
    with Server(tmp_path / "home") as server:
        target = Target.at("icekeel", server.url).connect()
        assert target.pid is not None
        for space in (tables.SPACE, tables.LISTED):
            target.must("POST", target.path("namespaces"), {"namespace": [space]})
        for name in ("t5", "properties", *(f"tx{at}" for at in range(10))):
            tables.make(target, tables.SPACE, name, 5)
        for at in range(101):
            tables.make(target, tables.LISTED, f"table_{at:03}")
        rows = {}
        for workload in ALL:
            if workload.name in SHORT:
                target.round += 1
                plan = workload.plan(target, scale=0.1, warm_seconds=0.05)
                rows[workload.name] = {"icekeel": asyncio.run(load.run(plan))}
    assert rows.keys() == SHORT
    for name, row in rows.items():
        cell = row["icekeel"]
        assert cell["errors"] == 0, (name, cell["first_error"])
        assert cell["requests"] > 0, name
    assert sum(row["icekeel"]["server_cpu_us"] for row in rows.values()) > 0
    results = {
        "machine": {"date": "", "cores": 2, "python": "", "load": 0},
        "rounds": 1,
        "calibration_us": 1.0,
        "targets": ["icekeel"],
        "start": {"icekeel": {}},
        "workloads": rows,
        "absent": {},
    }
    report.write(results, tmp_path / "report")
    told = (tmp_path / "report" / "results.md").read_text()
    assert all(name in told for name in SHORT)
