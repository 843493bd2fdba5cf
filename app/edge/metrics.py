"""Counters, gauges and one latency histogram, rendered as Prometheus text.

A few dictionaries do what is needed; the usual client library would add a megabyte of code and a lock per increment to
a single-threaded event loop.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping

_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_LABEL_LIMIT = 2000

Labels = tuple[tuple[str, str], ...]


class _Latency:
    __slots__ = ("buckets", "count", "total")

    def __init__(self) -> None:
        self.buckets = [0] * (len(_BOUNDS) + 1)
        self.count = 0
        self.total = 0.0


class Metrics:
    """The process's numbers. All methods are cheap and never fail; label sets are bounded, extra ones are dropped.

    `constant` labels are added to every line: with several worker processes a scrape reaches any one of them, and the
    `worker` label keeps their series apart.
    """

    def __init__(self, constant: Mapping[str, str] | None = None) -> None:
        self._constant: Labels = tuple((constant or {}).items())
        self._requests: dict[tuple[str, str, int], int] = {}
        self._latency: dict[tuple[str, str], _Latency] = {}
        self._counters: dict[str, dict[Labels, float]] = {}
        self._gauges: dict[str, tuple[str, str, Callable[[], float]]] = {}
        self._series: dict[str, tuple[str, list[tuple[Labels, float]]]] = {}
        self._help: dict[str, str] = {}

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one finished request; `route` is the route's template, never a path (paths would not be bounded)."""
        key = (method, route, status)
        if key not in self._requests and len(self._requests) >= _LABEL_LIMIT:
            return
        self._requests[key] = self._requests.get(key, 0) + 1
        latency = self._latency.get((method, route))
        if latency is None:
            latency = self._latency[(method, route)] = _Latency()
        latency.buckets[bisect_left(_BOUNDS, seconds)] += 1
        latency.count += 1
        latency.total += seconds

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        """Add to the counter `icekeel_<name>_total`."""
        series = self._counters.setdefault(name, {})
        key = tuple(sorted(labels.items()))
        if key in series or len(series) < _LABEL_LIMIT:
            series[key] = series.get(key, 0) + amount

    def describe(self, name: str, text: str) -> None:
        """Help text of a counter; a described counter is shown from the start."""
        self._help[name] = text
        self._counters.setdefault(name, {})

    def gauge(self, name: str, text: str, read: Callable[[], float], *, kind: str = "gauge") -> None:
        """Show `icekeel_<name>` as whatever `read()` says at the time of the scrape."""
        self._gauges[name] = (text, kind, read)

    def series(self, name: str, text: str, values: Iterable[tuple[Mapping[str, str], float]]) -> None:
        """Show `icekeel_<name>` with these labels and values from now on, in place of those it had."""
        self._series[name] = (text, [(tuple(sorted(labels.items())), value) for labels, value in values][:_LABEL_LIMIT])

    def render(self) -> bytes:
        return ("\n".join(self._lines()) + "\n").encode("utf-8")

    def _lines(self) -> Iterator[str]:
        yield "# HELP icekeel_http_requests_total Finished HTTP requests by route template, method and status."
        yield "# TYPE icekeel_http_requests_total counter"
        for (method, route, status), count in sorted(self._requests.items()):
            labels = self._labels((("method", method), ("route", route), ("status", str(status))))
            yield f"icekeel_http_requests_total{labels} {count}"
        yield "# HELP icekeel_http_request_seconds From the parsed request head to the last byte handed to the socket."
        yield "# TYPE icekeel_http_request_seconds histogram"
        for (method, route), latency in sorted(self._latency.items()):
            yield from self._histogram((("method", method), ("route", route)), latency)
        for name in sorted(self._counters):
            full = f"icekeel_{name}_total"
            yield f"# HELP {full} {self._help.get(name, name.replace('_', ' '))}"
            yield f"# TYPE {full} counter"
            for series, value in sorted(self._counters[name].items()):
                yield f"{full}{self._labels(series)} {value:g}"
        for name, (text, kind, read) in sorted(self._gauges.items()):
            yield f"# HELP icekeel_{name} {text}"
            yield f"# TYPE icekeel_{name} {kind}"
            yield f"icekeel_{name}{self._labels(())} {read():g}"
        for name, (text, values) in sorted(self._series.items()):
            yield f"# HELP icekeel_{name} {text}"
            yield f"# TYPE icekeel_{name} gauge"
            for pairs, value in values:
                yield f"icekeel_{name}{self._labels(pairs)} {value:.16g}"

    def _histogram(self, labels: Labels, latency: _Latency) -> Iterator[str]:
        running = 0
        for bound, count in zip((*map(str, _BOUNDS), "+Inf"), latency.buckets, strict=True):
            running += count
            yield f"icekeel_http_request_seconds_bucket{self._labels((*labels, ('le', bound)))} {running}"
        yield f"icekeel_http_request_seconds_sum{self._labels(labels)} {latency.total:.6f}"
        yield f"icekeel_http_request_seconds_count{self._labels(labels)} {latency.count}"

    def _labels(self, labels: Labels) -> str:
        everything = (*self._constant, *labels)
        if not everything:
            return ""
        return "{" + ",".join(f'{name}="{_escape(value)}"' for name, value in everything) + "}"


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
