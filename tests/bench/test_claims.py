"""Claims are checked against what a run measured, and say so where it did not."""

from __future__ import annotations

from typing import Any

import pytest

from bench.claims import Claim, claims

Json = dict[str, Any]


def cell(cost: float, **more: float) -> Json:
    return {"requests": 10, "errors": 0, "server_cpu_us": cost, **more}


def run(**workloads: Json) -> Json:
    """Results in which everything is as promised, but for the rows given by their position in the table below."""
    rows: Json = {
        "load 5 snapshots": {
            "icekeel": cell(60), "floor": cell(50), "floor-bare": cell(38), "a": cell(200), "b": cell(900),
        },
        "load 1,000 snapshots": {"icekeel": cell(400), "floor": cell(350), "floor-bare": cell(340), "a": cell(9_000)},
        "load 5 snapshots, open loop": {"icekeel": cell(400), "a": cell(300)},
        "create and drop": {"icekeel": cell(900), "a": cell(1_000), "b": cell(2_000)},
        "commit set-properties": {"icekeel": cell(1_000), "a": cell(2_000)},
        "commit add-schema": {"icekeel": cell(1_000), "a": cell(2_500)},
        "commit append, 1,000 snapshots": {"icekeel": cell(3_000), "b": cell(9_000)},
        "transaction of 10 tables": {"icekeel": cell(10_000), "a": cell(30_000), "b": cell(20_000)},
        "304, 5 snapshots": {"icekeel": cell(50)},
        "304, 10,000 snapshots": {"icekeel": cell(51)},
        "HEAD, 5 snapshots": {"icekeel": cell(40)},
        "HEAD, 10,000 snapshots": {"icekeel": cell(39)},
        "commit append, 10 snapshots": {"icekeel": cell(2_000), "a": cell(4_000)},
        "commit append, 10,000 snapshots": {"icekeel": cell(12_000)},
        "commit append, 10,000 snapshots, gzip": {"icekeel": cell(4_000)},
        "32 clients on 32 tables": {"icekeel": cell(1, per_second=100), "a": cell(2, per_second=50)},
        "32 clients on one table": {
            "icekeel": cell(1, per_second=30, client_least=10, client_most=20, longest_gap_s=2.0),
            "b": cell(2, per_second=20),
        },
        "list page of 100 in 1,000": {"icekeel": cell(1, p50_us=1_000)},
        "list page of 100 in 1,000,000": {"icekeel": cell(1, p50_us=1_100)},
    }  # fmt: skip
    rows.update(workloads)
    return {
        "targets": ["icekeel", "floor", "floor-bare", "a", "b"],
        "jvms": ["a", "b"],
        "workloads": rows,
        "start": {
            "icekeel": {"wall_s": 1.0, "idle_rss_mb": 100},
            "a": {"wall_s": 2.0, "idle_rss_mb": 300},
            "b": {"wall_s": 5.0, "idle_rss_mb": 250},
        },
        "writes": {"commit append, 10,000 snapshots": 8_500.0, "commit append, 10,000 snapshots, gzip": 600.0},
        "judge": {"append": 0.1, "rename": 1.5, "refused: drop": 3.0},
    }


def of(found: list[Claim], what: str) -> list[bool | None]:
    chosen = [claim.holds for claim in found if what in claim.what]
    assert chosen, what
    return chosen


def test_a_run_as_promised_holds_every_claim() -> None:
    """All of them, and each tells its numbers."""
    found = claims(run())
    assert len(found) == 20
    assert [claim for claim in found if claim.holds is not True] == []
    assert all(any(digit in claim.measured for digit in "0123456789") for claim in found)


@pytest.mark.parametrize(
    ("workload", "row", "what"),
    [
        ("load 5 snapshots", {"icekeel": cell(67), "a": cell(200), "b": cell(900)}, "for a CPU second"),
        ("load 1,000 snapshots", {"icekeel": cell(400), "a": cell(3_999)}, "load 1,000 snapshots, for a CPU second"),
        ("commit add-schema", {"icekeel": cell(1_000), "a": cell(1_999)}, "commit add-schema, for a CPU second"),
        ("32 clients on 32 tables", {"icekeel": cell(1), "a": cell(1.9)}, "32 clients on 32 tables, for a CPU second"),
        ("transaction of 10 tables", {"icekeel": cell(10_000), "a": cell(19_999)}, "transaction of 10 tables"),
        ("create and drop", {"icekeel": cell(1_001), "a": cell(1_000)}, "every workload"),
        ("304, 10,000 snapshots", {"icekeel": cell(61)}, "304, 10,000"),
        ("HEAD, 10,000 snapshots", {"icekeel": cell(49)}, "HEAD, 10,000"),
        ("commit append, 10,000 snapshots", {"icekeel": cell(12_600)}, "append, 10,000 snapshots against 10"),
        ("32 clients on 32 tables", {"icekeel": cell(1, per_second=99), "a": cell(1, per_second=50)}, "32 tables"),
        (
            "32 clients on one table",
            {
                "icekeel": cell(1, per_second=90, client_least=1, client_most=9, longest_gap_s=6.0),
                "b": cell(1, per_second=20),
            },
            "32 clients on one table",
        ),
        ("list page of 100 in 1,000,000", {"icekeel": cell(1, p50_us=1_300)}, "list page"),
    ],
)
def test_what_is_slower_than_promised_is_missed(workload: str, row: Json, what: str) -> None:
    """Just beyond the line is beyond it."""
    assert False in of(claims(run(**{workload: row})), what)


def test_the_workload_that_comes_closest_is_named() -> None:
    """Over all workloads that both answered, the least ratio is told with its peer; a fixed rate does not count."""
    (claim,) = (claim for claim in claims(run()) if claim.what.startswith("every workload"))
    assert claim.measured == "10 workloads, least create and drop: 1.11x a"


def test_every_workload_below_the_line_is_named() -> None:
    """A missed one does not hide another."""
    (claim,) = (
        claim
        for claim in claims(
            run(config={"icekeel": cell(2), "a": cell(1)}, **{"create and drop": {"icekeel": cell(4), "b": cell(3)}})
        )
        if claim.what.startswith("every workload")
    )
    assert "config: 0.50x a" in claim.measured
    assert "create and drop: 0.75x b" in claim.measured


def test_start_memory_and_judge_have_limits() -> None:
    """A second and 100 MB whatever the peers need, and two milliseconds of CPU."""
    results = run()
    results["start"]["icekeel"] = {"wall_s": 1.01, "idle_rss_mb": 100.5}
    results["judge"]["rename"] = 2.1
    found = claims(results)
    assert of(found, "start to the first 200") == [False]
    assert of(found, "idle RSS") == [False]
    assert of(found, "judging") == [False]


def test_what_was_not_measured_is_neither_met_nor_missed() -> None:
    """A short run, a run without peers, and a workload that met errors say nothing."""
    results = run(**{"load 5 snapshots": {"icekeel": {**cell(1), "errors": 1}, "a": cell(200)}})
    results["judge"] = {}
    assert of(claims(results), "load 5 snapshots") == [None]
    assert of(claims(results), "judging") == [None]
    bare: Json = {"targets": ["icekeel"], "workloads": {}, "start": {}}
    assert {claim.holds for claim in claims(bare)} == {None}
