"""Warehouses, as far as everybody may see them."""

from __future__ import annotations

from starlette.requests import Request

from app import errors
from app.api import parameters, reading
from app.api.common import ALWAYS
from app.api.models.evolution import WarehouseList, WarehouseModel
from app.api.operations import Operations, Returns
from app.api.rendering import json_answer
from app.catalog import warehouses
from app.ports import Warehouse
from app.web.answer import Answer

routes = Operations("Warehouses", ALWAYS)


@routes.declare(
    "GET",
    "/icekeel/v1/warehouses",
    "listWarehouses",
    returns=[Returns(200, "Every warehouse.", WarehouseList)],
)
async def list_warehouses(request: Request) -> Answer:
    """List the warehouses of this server."""
    found = await warehouses.list_warehouses(reading.context(request))
    return json_answer({"warehouses": [_shown(warehouse) for warehouse in found]})


@routes.declare(
    "GET",
    "/icekeel/v1/warehouses/{warehouse}",
    "loadWarehouse",
    parameters=[parameters.WAREHOUSE_PATH],
    returns=[Returns(200, "The warehouse.", WarehouseModel)],
    fails=[errors.NoSuchWarehouse],
)
async def load_warehouse(request: Request) -> Answer:
    """Show one warehouse: where it lies and what it may use beside its location."""
    ctx = reading.context(request)
    return json_answer(_shown(await warehouses.fresh_warehouse(ctx, reading.segment(request, "warehouse"))))


def _shown(warehouse: Warehouse) -> dict[str, object]:
    """Without secrets."""
    return {
        "name": warehouse.name,
        "location": warehouse.location,
        "allowed-locations": warehouse.allowed_locations,
        "properties": dict(warehouse.properties),
        "storage": dict(warehouse.storage),
        "version": warehouse.version,
    }
