"""`app.edge.metrics`: numbers in the form that Prometheus reads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from app.edge.metrics import Metrics
from tests.server import ROOT


def lines(metrics: Metrics) -> list[str]:
    return metrics.render().decode().splitlines()


def test_requests_are_counted_by_method_route_and_status() -> None:
    """Two answers with different status are two series."""
    metrics = Metrics()
    metrics.observe("GET", "/v1/config", 200, 0.001)
    metrics.observe("GET", "/v1/config", 200, 0.001)
    metrics.observe("GET", "/v1/config", 404, 0.001)
    assert 'icekeel_http_requests_total{method="GET",route="/v1/config",status="200"} 2.0' in lines(metrics)
    assert 'icekeel_http_requests_total{method="GET",route="/v1/config",status="404"} 1.0' in lines(metrics)


def test_latency_buckets_are_cumulative() -> None:
    """Each bucket holds everything at most as slow, and the last one everything."""
    metrics = Metrics()
    for seconds in (0.001, 0.02, 99.0):
        metrics.observe("GET", "/r", 200, seconds)
    shown = [line for line in lines(metrics) if "_bucket" in line]
    counts = [float(line.rsplit(" ", 1)[1]) for line in shown]
    assert counts == sorted(counts)
    assert counts[0] == 1 and counts[-1] == 3
    assert 'le="+Inf"' in shown[-1]


def test_a_counter_shows_from_the_start() -> None:
    """An alert on a counter must not miss its first increment."""
    metrics = Metrics()
    assert "# TYPE icekeel_refusals_total counter" in lines(metrics)
    assert "icekeel_commit_conflicts_total 0.0" in lines(metrics)
    metrics.refusals.labels("ICE202").inc()
    metrics.refusals.labels("ICE202").inc(2)
    assert 'icekeel_refusals_total{code="ICE202"} 3.0' in lines(metrics)


def test_gauges_are_read_when_asked() -> None:
    """A gauge shows the present, not the time it was declared."""
    metrics, now = Metrics(), [1.0]
    metrics.gauge("held", "Held things.", lambda: now[0])
    now[0] = 7
    assert "icekeel_held 7.0" in lines(metrics)


def test_label_values_are_escaped() -> None:
    """Nothing in a label can end its line."""
    metrics = Metrics()
    metrics.refusals.labels('a"b\\c\nd').inc()
    assert 'icekeel_refusals_total{code="a\\"b\\\\c\\nd"} 1.0' in lines(metrics)


def test_a_set_of_series_replaces_the_one_before() -> None:
    """Tables that lead no more are gone from the next scrape; values keep their digits."""
    metrics = Metrics()
    metrics.series("table_fields", "Fields.", [({"table": "a.b"}, 1), ({"table": 'c"'}, 2)])
    metrics.series("table_fields", "Fields.", [({"table": "a.b"}, 1_795_992_867.504)])
    shown = [line for line in lines(metrics) if "table_fields" in line]
    assert shown == [
        "# HELP icekeel_table_fields Fields.",
        "# TYPE icekeel_table_fields gauge",
        'icekeel_table_fields{table="a.b"} 1.795992867504e+09',
    ]


_PROCESS = """
import sys
from app.edge.metrics import Metrics

metrics = Metrics(sys.argv[1])
metrics.gauge("held", "Held things.", lambda: 3)
metrics.observe("GET", "/r", 200, 0.1)
metrics.refusals.labels("ICE202").inc()
print(metrics.render().decode())
"""


def test_any_process_of_a_server_shows_the_sum(tmp_path: Path) -> None:
    """A scrape reaches any one of them."""
    shown = [
        subprocess.run(
            [sys.executable, "-c", _PROCESS, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    ][1]
    assert 'icekeel_http_requests_total{method="GET",route="/r",status="200"} 2.0' in shown
    assert 'icekeel_refusals_total{code="ICE202"} 2.0' in shown
    assert "icekeel_held 6.0" in shown
