"""`app.edge.callers`: clients are recognised by what they really send."""

from __future__ import annotations

import pytest

from app.edge.callers import client_of, is_iceberg_java


@pytest.mark.parametrize(
    ("agent", "version", "client"),
    [
        ("Apache-HttpClient/5.5 (Java/17.0.1)", "Apache Iceberg 1.10.0 (commit abc)", ("iceberg-java", "1.10.0")),
        ("Apache-HttpClient/5.5", "Apache Iceberg unspecified (commit abc)", ("iceberg-java", "unspecified")),
        ("PyIceberg/0.12.0", "0.14.1", ("pyiceberg", "0.12.0")),
        ("duckdb/v1.5.5(linux_amd64)", "", ("duckdb", "1.5.5")),
        ("iceberg-rs/0.7.0", "0.14.1", ("iceberg-rs", "0.7.0")),
        ("ClickHouse/25.8", "", ("clickhouse", "25.8")),
        ("strange", "", ("strange", "")),
        ("", "", ("", "")),
    ],
)
def test_clients_are_named(agent: str, version: str, client: tuple[str, str]) -> None:
    """Java names itself in X-Client-Version, everybody else in User-Agent."""
    assert client_of(agent, version) == client


def test_only_java_may_send_latin1() -> None:
    """PyIceberg sends X-Client-Version too, with the version of the REST specification."""
    assert is_iceberg_java("Apache Iceberg 1.9.1 (commit f)")
    assert not is_iceberg_java("0.14.1")


def test_names_are_bounded() -> None:
    """What a client calls itself cannot fill the store."""
    assert all(len(part) <= 64 for part in client_of("x" * 1000, ""))
    assert all(len(part) <= 64 for part in client_of(f"{'y' * 60}/{'1' * 500}", ""))
