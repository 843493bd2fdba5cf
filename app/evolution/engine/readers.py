"""Which client programs are known to answer old rows from initial-default (spec: Default values).

Clients are known by the names that they give themselves. A client or version that is not listed is unknown, which is
not the same as honouring the default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal

Honours = Literal["yes", "no", "unknown"]

SINCE: Final[Mapping[str, tuple[int, ...]]] = {
    "iceberg-java": (1, 8, 0),
    "pyiceberg": (0, 10, 0),
    "iceberg-rs": (0, 4, 0),
    "goiceberg": (0, 6, 0),
    "duckdb": (1, 4, 0),
}
"""First version whose readers fill a missing column from its initial-default, by client name.

Each is the first release whose source fills a column that a Parquet file lacks. Java's Parquet readers (its own data
model, Spark, vectorized Spark and Flink) got it together in 1.8.0; its ORC readers refuse such files to this day, which
is no wrong answer. PyIceberg read defaults from Avro before 0.10.0, but from Parquet ignored them. An engine that
brings readers of its own, as Trino does, names itself by the Java library and may differ.
"""

_NUMBERS: Final = re.compile(r"\d+(?:\.\d+)*")


def honours_initial_default(client: str, version: str) -> Honours:
    """Whether this client, by its own name and version, reads initial-default."""
    since = SINCE.get(client.lower())
    found = _NUMBERS.match(version)
    if since is None or found is None:
        return "unknown"
    parts = tuple(int(part) for part in found.group().split(".")[:3])
    return "yes" if parts + (0,) * (3 - len(parts)) >= since else "no"
