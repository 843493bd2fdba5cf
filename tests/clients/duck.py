"""DuckDB attached to a running catalog as its own documentation says, without downloading anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
from duckdb_extensions import import_extension


class Duck:
    """One DuckDB connection; the catalog is attached as `ice`."""

    def __init__(self, url: str, extensions: Path, options: str = "AUTHORIZATION_TYPE 'none'") -> None:
        self.connection = duckdb.connect(
            config={"extension_directory": str(extensions), "autoinstall_known_extensions": "false"}
        )
        for name in ("avro", "httpfs", "iceberg"):
            import_extension(name, con=self.connection)
            self.run(f"LOAD {name}")
        self.run(f"ATTACH '' AS ice (TYPE ICEBERG, ENDPOINT '{url}', {options})")

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        """All rows of a statement."""
        return self.connection.execute(statement).fetchall()

    def close(self) -> None:
        self.connection.close()
