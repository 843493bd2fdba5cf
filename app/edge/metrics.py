"""The server's numbers for Prometheus, of all its processes together."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, values
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.registry import Collector

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4

_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_SAMPLE_S = 5.0

disable_created_metrics()


class _Series(Collector):
    """Gauges with labels whose whole set is replaced at a time."""

    def __init__(self) -> None:
        self.families: dict[str, GaugeMetricFamily] = {}

    def collect(self) -> Iterator[GaugeMetricFamily]:
        yield from self.families.values()


def forget_process(directory: str, pid: int) -> None:
    """The gauges of a process that has ended count no more."""
    mark_process_dead(pid, directory)


class Metrics:
    """Counters, one histogram and gauges. `directory`: where several processes of one server keep their numbers, so
    that a scrape of any one of them shows the sums; None for a single process.
    """

    def __init__(self, directory: str | None = None) -> None:
        self._directory = directory
        if directory is not None:
            # The library looks for the variable when it is imported, which is before the number of processes is known.
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = directory
            values.ValueClass = values.MultiProcessValue()
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "icekeel_http_requests",
            "Finished HTTP requests by route template, method and status.",
            ("method", "route", "status"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "icekeel_http_request_seconds",
            "From the parsed request head to the last byte handed to the socket.",
            ("method", "route"),
            buckets=_BOUNDS,
            registry=self._registry,
        )
        self.refusals = self._counter("refusals", "Schema changes refused, by rule code.", "code")
        self.commits = self._counter("commits", "Commits answered with success, by kind.", "kind")
        self.commit_conflicts = self._counter(
            "commit_conflicts", "Commits that did not see the present state and were answered 409."
        )
        self._known: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self._gauges: list[tuple[Gauge, Callable[[], float]]] = []
        self._series = _Series()
        if directory is None:
            self._registry.register(self._series)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"icekeel_{name}", text, labels, registry=self._registry)

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one finished request; `route` is the route's template, never a path (paths would not be bounded)."""
        key = (method, route, status)
        known = self._known.get(key)
        if known is None:
            known = self._requests.labels(method, route, status), self._seconds.labels(method, route)
            self._known[key] = known
        known[0].inc()
        known[1].observe(seconds)

    def gauge(self, name: str, text: str, read: Callable[[], float]) -> None:
        """Show `icekeel_<name>` as what `read()` says: when scraped, of other processes when they were last sampled."""
        made = Gauge(f"icekeel_{name}", text, registry=self._registry, multiprocess_mode="livesum")
        self._gauges.append((made, read))

    def series(self, name: str, text: str, found: Iterable[tuple[Mapping[str, str], float]]) -> None:
        """Show `icekeel_<name>` with these labels and values from now on, in place of those it had."""
        rows = list(found)
        family = GaugeMetricFamily(f"icekeel_{name}", text, labels=tuple(rows[0][0]) if rows else ())
        for labels, value in rows:
            family.add_metric(tuple(labels.values()), value)
        self._series.families[name] = family

    def sample(self) -> None:
        """Take the gauges' values as they are now."""
        for gauge, read in self._gauges:
            gauge.set(read())

    async def keep_sampled(self) -> None:
        """Sample now and then, for ever: a scrape of another process shows this one's gauges too."""
        while True:
            self.sample()
            await asyncio.sleep(_SAMPLE_S)

    def render(self) -> bytes:
        """Everything as Prometheus text."""
        self.sample()
        if self._directory is None:
            return generate_latest(self._registry)
        merged = CollectorRegistry()
        MultiProcessCollector(merged, self._directory)
        merged.register(self._series)
        return generate_latest(merged)
