"""Other Iceberg REST servers, fetched from Maven Central through Maven and started on loopback."""

from bench.peers import fixture, nessie
from bench.peers.jvm import Unavailable

PEERS = {"iceberg-fixture": fixture.start, "nessie": nessie.start}

__all__ = ["PEERS", "Unavailable"]
