"""Which program asks: name and version from the headers that clients send."""

from __future__ import annotations

import re

_ICEBERG_JAVA = re.compile(r"^Apache Iceberg ([^\s(]+)")
_PRODUCT = re.compile(r"^([A-Za-z][A-Za-z0-9._ -]{0,63}?)/v?([0-9A-Za-z][0-9A-Za-z.+_-]{0,63})")


def is_iceberg_java(client_version: str) -> bool:
    """True for the `X-Client-Version` of Iceberg's Java client, on which Spark, Flink and Trino's REST access build."""
    return client_version.startswith("Apache Iceberg ")


def client_of(user_agent: str, client_version: str) -> tuple[str, str]:
    """Name and version of the client, each short; both empty when the headers say nothing.

    Java names itself in `X-Client-Version` and leaves `User-Agent` to its HTTP library; PyIceberg sends the version of
    the REST specification there and names itself in `User-Agent`, as DuckDB and others do.
    """
    java = _ICEBERG_JAVA.match(client_version)
    if java:
        return "iceberg-java", java.group(1)[:64]
    product = _PRODUCT.match(user_agent)
    if product:
        return product.group(1).strip().lower()[:64], product.group(2)
    return user_agent.strip()[:64].lower(), ""
