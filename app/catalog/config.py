"""What a client learns first: which warehouse it talks to, and what it must know to reach the files."""

from __future__ import annotations

from app.catalog import warehouses
from app.catalog.answers import CatalogConfig
from app.catalog.context import Context
from app.ports import Warehouse

# Options of a storage profile that a client's own FileIO understands; everything else is the server's business.
_CLIENT_OPTIONS = ("s3.", "client.", "gcs.", "adls.", "io-impl")


async def get_config(ctx: Context, warehouse: str | None) -> CatalogConfig:
    """Match `warehouse` by name or by location (None: the default one); NoSuchWarehouse."""
    found = await warehouses.find_warehouse(ctx, warehouse)
    return CatalogConfig(warehouse=found, defaults=client_config(found), overrides={"prefix": found.name})


def client_config(warehouse: Warehouse) -> dict[str, str]:
    """The non-secret storage options that a client needs to read and write the warehouse's files."""
    return {key: value for key, value in warehouse.storage.items() if key.startswith(_CLIENT_OPTIONS)}
