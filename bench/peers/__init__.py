"""Other Iceberg REST servers, fetched from Maven Central through Maven and started on loopback."""

from bench.peers import fixture, fixture_postgresql, nessie
from bench.peers.jvm import Unavailable

PEERS = {
    "iceberg-fixture": fixture.start,
    "iceberg-fixture-pg": fixture_postgresql.start,
    "nessie": nessie.start,
}

__all__ = ["PEERS", "Unavailable"]
