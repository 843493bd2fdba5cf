"""Warehouses: list, show, create, change, drop. Secrets go in and never come out."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import Request

from app import errors
from app.api import parameters, reading
from app.api.common import ALWAYS, BODY
from app.api.models.warehouses import WarehouseList, WarehouseModel, WarehousePatch, WarehouseRequest
from app.api.operations import Operations, Returns
from app.api.rendering import json_answer
from app.catalog import storage, warehouses
from app.ports import Warehouse
from app.spec import codec
from app.web.answer import Answer, no_content

routes = Operations("Warehouses", ALWAYS)
ALL = "/icekeel/v1/warehouses"
ONE = f"{ALL}/{{warehouse}}"


@routes.declare("GET", ALL, "listWarehouses", returns=[Returns(200, "Every warehouse.", WarehouseList)])
async def list_warehouses(request: Request) -> Answer:
    """List the warehouses of this server."""
    found = await warehouses.list_warehouses(reading.context(request))
    return json_answer({"warehouses": [_shown(warehouse) for warehouse in found]})


@routes.declare(
    "POST",
    ALL,
    "createWarehouse",
    body=WarehouseRequest,
    returns=[Returns(200, "The new warehouse.", WarehouseModel)],
    fails=[errors.AlreadyExists, *BODY],
)
async def create_warehouse(request: Request) -> Answer:
    """Create a warehouse.

    `location` and `allowed-locations` lie where no other warehouse does; on the server's own disk in a place that the
    operator allowed. Options that are not known to be public are encrypted before they are stored. An endpoint is
    public, over TLS and comes with keys of its own, or the operator allowed it (403). A server without a token takes
    neither storage options nor a place in a cloud that its settings do not allow (403).
    """
    body, _ = await reading.own_body(request, WarehouseRequest)
    shown, secret = storage.split(_strings(body, "storage"))
    new = Warehouse(
        name=codec.required_str(body, "name"),
        location=codec.required_str(body, "location"),
        allowed_locations=_places(body) or (),
        properties=_strings(body, "properties"),
        storage=shown,
        secrets=secret,
    )
    return json_answer(_shown(await warehouses.create_warehouse(reading.context(request), new)))


@routes.declare(
    "GET",
    ONE,
    "loadWarehouse",
    parameters=[parameters.WAREHOUSE_PATH],
    returns=[Returns(200, "The warehouse.", WarehouseModel)],
    fails=[errors.NoSuchWarehouse],
)
async def load_warehouse(request: Request) -> Answer:
    """Show one warehouse: where it lies and what it may use beside its location."""
    ctx = reading.context(request)
    return json_answer(_shown(await warehouses.fresh_warehouse(ctx, reading.segment(request, "warehouse"))))


@routes.declare(
    "PATCH",
    ONE,
    "changeWarehouse",
    parameters=[parameters.WAREHOUSE_PATH],
    body=WarehousePatch,
    returns=[Returns(200, "The warehouse as it is now.", WarehouseModel)],
    fails=[errors.NoSuchWarehouse, errors.CommitFailed, *BODY],
)
async def change_warehouse(request: Request) -> Answer:
    """Change a warehouse.

    A new location is for new tables; the old one stays allowed. What is added must be allowed as for a new warehouse.
    What decides where the warehouse's secrets go, or who gets them, needs them again in the same request (400 names
    them); null removes one. Other servers see the change within two seconds.
    """
    body, _ = await reading.own_body(request, WarehousePatch)
    change = warehouses.WarehouseChange(
        location=codec.optional_str(body, "location"),
        allowed_locations=_places(body),
        properties=_changes(body, "properties"),
        options=_changes(body, "storage"),
        version=codec.optional_int64(body, "version"),
    )
    name = reading.segment(request, "warehouse")
    return json_answer(_shown(await warehouses.change_warehouse(reading.context(request), name, change)))


@routes.declare(
    "DELETE",
    ONE,
    "dropWarehouse",
    parameters=[parameters.WAREHOUSE_PATH],
    returns=[Returns(204, "It is gone; its files are not.")],
    fails=[errors.NoSuchWarehouse, errors.NamespaceNotEmpty],
)
async def drop_warehouse(request: Request) -> Answer:
    """Drop a warehouse that holds no namespaces. Files stay where they are."""
    await warehouses.drop_warehouse(reading.context(request), reading.segment(request, "warehouse"))
    return no_content()


def _shown(warehouse: Warehouse) -> dict[str, object]:
    """Without secrets."""
    return {
        "name": warehouse.name,
        "location": warehouse.location,
        "allowed-locations": warehouse.allowed_locations,
        "properties": dict(warehouse.properties),
        "storage": dict(warehouse.storage),
        "secret-options": sorted(warehouse.secrets),
        "version": warehouse.version,
    }


def _places(body: reading.Body) -> tuple[str, ...] | None:
    value = body.get("allowed-locations")
    return None if value is None else codec.as_str_list(value, "$.allowed-locations")


def _strings(body: reading.Body, key: str) -> dict[str, str]:
    value = body.get(key)
    return {} if value is None else {name: codec.as_str(v, f"$.{key}.{name}") for name, v in _object(value, key)}


def _changes(body: reading.Body, key: str) -> Mapping[str, str | None]:
    value = body.get(key)
    if value is None:
        return {}
    return {name: None if v is None else codec.as_str(v, f"$.{key}.{name}") for name, v in _object(value, key)}


def _object(value: codec.Json, key: str) -> list[tuple[str, codec.Json]]:
    return list(codec.as_object(value, f"$.{key}").items())
