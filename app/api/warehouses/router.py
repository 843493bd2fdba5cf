"""The path operations of warehouses."""

from __future__ import annotations

from fastapi import APIRouter

from app import errors
from app.api import deps
from app.api.responses import BODY, fails, success
from app.api.route import StrictRoute
from app.api.warehouses.schemas import WarehouseList, WarehouseModel, WarehousePatch, WarehouseRequest
from app.catalog import storage, warehouses
from app.edge.answer import Answer, no_content
from app.ports import Warehouse

ALL = "/icekeel/v1/warehouses"
ONE = f"{ALL}/{{warehouse}}"

router = APIRouter(route_class=StrictRoute, tags=["Warehouses"])


@router.get(ALL, operation_id="listWarehouses", responses={**success(200, "Every warehouse."), **fails()})
async def list_warehouses(catalog: deps.Catalog) -> WarehouseList:
    """List the warehouses of this server."""
    found = await warehouses.list_warehouses(catalog)
    return WarehouseList(warehouses=[_shown(warehouse) for warehouse in found])


@router.post(
    ALL,
    operation_id="createWarehouse",
    responses={**success(200, "The new warehouse."), **fails(errors.AlreadyExists, *BODY)},
)
async def create_warehouse(catalog: deps.Catalog, body: WarehouseRequest) -> WarehouseModel:
    """Create a warehouse.

    `location` and `allowed-locations` lie where no other warehouse does; on the server's own disk in a place that the
    operator allowed. Options that are not known to be public are encrypted before they are stored. An endpoint is
    public, over TLS and comes with keys of its own, or the operator allowed it (403). A server without a token takes
    neither storage options nor a place in a cloud that its settings do not allow (403).
    """
    shown, secret = storage.split(body.storage or {})
    new = Warehouse(
        name=body.name,
        location=body.location,
        allowed_locations=tuple(body.allowed_locations or ()),
        properties=body.properties or {},
        storage=shown,
        secrets=secret,
    )
    return _shown(await warehouses.create_warehouse(catalog, new))


@router.get(
    ONE,
    operation_id="loadWarehouse",
    responses={**success(200, "The warehouse."), **fails(errors.NoSuchWarehouse)},
)
async def load_warehouse(catalog: deps.Catalog, warehouse: deps.WarehouseName) -> WarehouseModel:
    """Show one warehouse: where it lies and what it may use beside its location."""
    return _shown(await warehouses.fresh_warehouse(catalog, warehouse))


@router.patch(
    ONE,
    operation_id="changeWarehouse",
    responses={
        **success(200, "The warehouse as it is now."),
        **fails(errors.NoSuchWarehouse, errors.CommitFailed, *BODY),
    },
)
async def change_warehouse(
    catalog: deps.Catalog, warehouse: deps.WarehouseName, body: WarehousePatch
) -> WarehouseModel:
    """Change a warehouse.

    A new location is for new tables; the old one stays allowed. What is added must be allowed as for a new warehouse.
    What decides where the warehouse's secrets go, or who gets them, needs them again in the same request (400 names
    them); null removes one. Other servers see the change within two seconds.
    """
    places = body.allowed_locations
    change = warehouses.WarehouseChange(
        location=body.location,
        allowed_locations=None if places is None else tuple(places),
        properties=body.properties or {},
        options=body.storage or {},
        version=body.version,
    )
    return _shown(await warehouses.change_warehouse(catalog, warehouse, change))


@router.delete(
    ONE,
    operation_id="dropWarehouse",
    status_code=204,
    responses={
        **success(204, "It is gone; its files are not."),
        **fails(errors.NoSuchWarehouse, errors.NamespaceNotEmpty),
    },
)
async def drop_warehouse(catalog: deps.Catalog, warehouse: deps.WarehouseName) -> Answer:
    """Drop a warehouse that holds no namespaces. Files stay where they are."""
    await warehouses.drop_warehouse(catalog, warehouse)
    return no_content()


def _shown(warehouse: Warehouse) -> WarehouseModel:
    """Without secrets."""
    return WarehouseModel(
        name=warehouse.name,
        location=warehouse.location,
        allowed_locations=list(warehouse.allowed_locations),
        properties=dict(warehouse.properties),
        storage=dict(warehouse.storage),
        secret_options=sorted(warehouse.secrets),
        version=warehouse.version,
    )
