"""What a client learns first: which warehouse it talks to, and what it must know to reach the files."""

from __future__ import annotations

from app.catalog import storage, warehouses
from app.catalog.context import Context
from app.catalog.results import CatalogConfig
from app.ports import Warehouse


async def get_config(ctx: Context, warehouse: str | None) -> CatalogConfig:
    """Match `warehouse` by name or by location (None: the default one); NoSuchWarehouse."""
    found = await warehouses.find_warehouse(ctx, warehouse)
    return CatalogConfig(warehouse=found, defaults=storage.told(found), overrides={"prefix": found.name})


def client_config(warehouse: Warehouse) -> dict[str, str]:
    """What a client gets with a table: where its files are, and keys where the warehouse hands them out."""
    return storage.handed(warehouse)


def view_config(warehouse: Warehouse) -> dict[str, str]:
    """What a client gets with a view, which has no files to read."""
    return storage.told(warehouse)
