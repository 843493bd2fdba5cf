"""The budget of speed, start and memory, checked against one run; speed as ratios within the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

Json = dict[str, Any]
OURS = "icekeel"
_UNLOADED = ("304, {} snapshots", "HEAD, {} snapshots")
_LOADS = (("load 5 snapshots", 3), ("load 1,000 snapshots", 10))
_COMMITS = (
    "commit set-properties",
    "commit add-schema",
    "commit append, 10 snapshots",
    "commit append, 1,000 snapshots",
    "32 clients on 32 tables",
    "transaction of 10 tables",
)
_OPEN_LOOP = "open loop"
"""At a fixed rate a server mostly wakes up and falls asleep: it tells latency, not what a request costs."""


class Claim(NamedTuple):
    """`holds` is None where the run did not measure what the claim needs."""

    what: str
    wanted: str
    measured: str
    holds: bool | None


def claims(results: Json) -> list[Claim]:
    """Every claim, in the order of the report."""
    run = _Run(results)
    return [made for kind in _KINDS for made in kind(run)]


class _Run:
    """What was measured, by workload and target."""

    def __init__(self, results: Json) -> None:
        self.workloads: Json = results["workloads"]
        self.start: Json = results["start"]
        self.jvms: list[str] = [name for name in results["targets"] if name in results.get("jvms", ())]
        self.writes: Json = results.get("writes", {})
        self.judge: Json = results.get("judge", {})

    def get(self, workload: str, target: str = OURS, key: str = "server_cpu_us") -> float | None:
        cell = self.workloads.get(workload, {}).get(target, {})
        found = cell.get(key) if cell.get("requests") and not cell.get("errors") else None
        return None if found is None else float(found)

    def best(self, workload: str, key: str, *, least: bool) -> tuple[str, float] | None:
        """The JVM peer that does best."""
        found = [(name, value) for name in self.jvms if (value := self.get(workload, name, key)) is not None]
        return (min if least else max)(found, key=lambda entry: entry[1]) if found else None


def _unknown(what: str, wanted: str) -> Claim:
    return Claim(what, wanted, "not measured in this run", None)


def _against_jvms(run: _Run) -> Iterator[Claim]:
    """Requests for a CPU second."""
    for workload, factor in (*_LOADS, *((commit, 2) for commit in _COMMITS)):
        what, wanted = f"{workload}, for a CPU second", f"{factor}x the best JVM peer"
        ours, best = run.get(workload), run.best(workload, "server_cpu_us", least=True)
        if ours is None or best is None:
            yield _unknown(what, wanted)
        else:
            ratio = best[1] / ours
            yield Claim(
                what, wanted, f"{ratio:.1f}x {best[0]} ({ours:,.0f} against {best[1]:,.0f} us)", ratio >= factor
            )


def _nothing_below(run: _Run) -> Iterator[Claim]:
    """The workload in which a JVM comes closest, or is ahead."""
    what, wanted = "every workload, for a CPU second", "1x the best JVM peer"
    found = []
    for workload in run.workloads:
        ours, best = run.get(workload), run.best(workload, "server_cpu_us", least=True)
        if ours is not None and best is not None and _OPEN_LOOP not in workload:
            found.append((best[1] / ours, f"{workload}: {best[1] / ours:.2f}x {best[0]}"))
    if not found:
        yield _unknown(what, wanted)
        return
    below = sorted(entry for entry in found if entry[0] < 1) or [min(found)]
    told = "; ".join(entry[1] for entry in below)
    yield Claim(what, wanted, f"{len(found)} workloads, least {told}", below[0][0] >= 1)


def _without_the_document(run: _Run) -> Iterator[Claim]:
    for form in _UNLOADED:
        small, large = run.get(form.format("5")), run.get(form.format("10,000"))
        what, wanted = f"{form.partition(',')[0]}, 10,000 against 5 snapshots", "no difference (up to 1.2x)"
        if small is None or large is None:
            yield _unknown(what, wanted)
        else:
            yield Claim(
                what, wanted, f"{large / small:.2f}x ({large:.0f} against {small:.0f} us)", large / small <= 1.2
            )


def _append(run: _Run) -> Iterator[Claim]:
    """Creating, writing and syncing a file of that size is measured beside it, without a server."""
    small = run.get("commit append, 10 snapshots")
    for workload in ("commit append, 10,000 snapshots", "commit append, 10,000 snapshots, gzip"):
        what, wanted = f"{workload} against 10", "2x, and writing the bytes"
        large, write = run.get(workload), run.writes.get(workload)
        if small is None or large is None or write is None:
            yield _unknown(what, wanted)
        else:
            ratio = (large - write) / small
            told = (
                f"{ratio:.1f}x ({large / 1000:.1f} against {small / 1000:.1f} ms; the bytes alone {write / 1000:.1f})"
            )
            yield Claim(what, wanted, told, ratio <= 2)


def _many_clients(run: _Run) -> Iterator[Claim]:
    for workload, factor in (("32 clients on 32 tables", 2.0), ("32 clients on one table", 1.5)):
        what, wanted = f"{workload}, commits a second", f"{factor:g}x the best peer"
        ours, best = run.get(workload, key="per_second"), run.best(workload, "per_second", least=False)
        if ours is None or best is None:
            yield _unknown(what, wanted)
        else:
            ratio = ours / best[1]
            yield Claim(what, wanted, f"{ratio:.1f}x {best[0]} ({ours:.0f} against {best[1]:.0f})", ratio >= factor)
    what, wanted = "32 clients on one table", "no client starves (the least lucky lands a quarter of the most)"
    least, most, gap = (run.get(what, key=key) for key in ("client_least", "client_most", "longest_gap_s"))
    if least is None or most is None or gap is None:
        yield _unknown(what, wanted)
    else:
        told = f"each landed {least:.0f} to {most:.0f} in a round; longest wait {gap:.1f} s"
        yield Claim(what, wanted, told, 0 < most <= 4 * least)


def _pages(run: _Run) -> Iterator[Claim]:
    what, wanted = "list page of 100 in 1,000,000 against 1,000", "same latency (up to 1.25x)"
    small, large = (run.get(f"list page of 100 in {size}", key="p50_us") for size in ("1,000", "1,000,000"))
    if small is None or large is None:
        yield _unknown(what, wanted)
    else:
        told = f"{large / small:.2f}x (p50 {large / 1000:.2f} against {small / 1000:.2f} ms)"
        yield Claim(what, wanted, told, large / small <= 1.25)


def _starts(run: _Run) -> Iterator[Claim]:
    """One worker on SQLite and local files, started on a home that is there."""
    ours = run.start.get(OURS, {})
    for key, what, limit, unit, digits in (
        ("wall_s", "start to the first 200", 1.0, "s", 2),
        ("idle_rss_mb", "idle RSS", 100.0, "MB", 0),
    ):
        value, wanted = ours.get(key), f"at most {limit:g} {unit}"
        if value is None:
            yield _unknown(what, wanted)
            continue
        beside = [
            f"{name} {theirs:.{digits}f}"
            for name in run.jvms
            if (theirs := run.start.get(name, {}).get(key)) is not None
        ]
        told = f"{value:.{digits}f} {unit}" + (f" ({', '.join(beside)})" if beside else "")
        if key == "wall_s" and "cpu_s" in ours:
            told += f", of which {ours['cpu_s']:.2f} s of CPU"
        yield Claim(what, wanted, told, value <= limit)


def _judge(run: _Run) -> Iterator[Claim]:
    what, wanted = "judging a change, 1,000 columns and 200 schemas", "under 2 ms of CPU"
    accepted = {name: cost for name, cost in run.judge.items() if not name.startswith("refused")}
    if not accepted:
        yield _unknown(what, wanted)
        return
    slowest = max(accepted, key=lambda name: accepted[name])
    told = f"{min(accepted.values()):.2f} to {accepted[slowest]:.2f} ms, slowest: {slowest}"
    refused = [cost for name, cost in run.judge.items() if name not in accepted]
    if refused:
        told += f"; refusals up to {max(refused):.2f} ms"
    yield Claim(what, wanted, told, accepted[slowest] < 2)


_KINDS: tuple[Callable[[_Run], Iterator[Claim]], ...] = (
    _starts,
    _against_jvms,
    _nothing_below,
    _without_the_document,
    _append,
    _many_clients,
    _pages,
    _judge,
)
