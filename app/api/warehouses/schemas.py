"""Bodies of the warehouse operations."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from app.api.shapes import OwnShape, Properties, Shape

Name = Annotated[str, Field(json_schema_extra={"pattern": "^[a-z0-9_-]{1,64}$"})]


class WarehouseModel(Shape):
    """A warehouse. Of secret storage options only the names are shown."""

    name: str
    location: str
    allowed_locations: list[str]
    properties: Properties
    storage: Properties
    secret_options: list[str]
    version: int


class WarehouseList(Shape):
    """Every warehouse of this server."""

    warehouses: list[WarehouseModel]


class WarehouseRequest(OwnShape):
    """A new warehouse. `properties` are defaults of new tables; `storage` holds options, secret ones among them."""

    name: Name
    location: str
    allowed_locations: list[str] | None = None
    properties: Properties | None = None
    storage: Properties | None = None


class WarehousePatch(OwnShape):
    """What to change. In `properties` and `storage`, null removes a key and what is not named stays.

    With `version` the change is refused unless the warehouse is at that version.
    """

    location: str | None = None
    allowed_locations: list[str] | None = None
    properties: dict[str, str | None] | None = None
    storage: dict[str, str | None] | None = None
    version: int | None = None
