"""Bodies of the warehouse operations."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from app.api.shapes import Answered, OwnShape, Properties, PropertyChanges, Strings

Name = Annotated[str, Field(json_schema_extra={"pattern": "^[a-z0-9_-]{1,64}$"})]


class WarehouseModel(Answered):
    """A warehouse. Of secret storage options only the names are shown."""

    name: str
    location: str
    allowed_locations: list[str]
    properties: dict[str, str]
    storage: dict[str, str]
    secret_options: list[str]
    version: int


class WarehouseList(Answered):
    """Every warehouse of this server."""

    warehouses: list[WarehouseModel]


class WarehouseRequest(OwnShape):
    """A new warehouse. `properties` are defaults of new tables; `storage` holds options, secret ones among them."""

    name: Name
    location: str
    allowed_locations: Strings | None = None
    properties: Properties | None = None
    storage: Properties | None = None


class WarehousePatch(OwnShape):
    """What to change. In `properties` and `storage`, null removes a key and what is not named stays.

    With `version` the change is refused unless the warehouse is at that version.
    """

    location: str | None = None
    allowed_locations: Strings | None = None
    properties: PropertyChanges | None = None
    storage: PropertyChanges | None = None
    version: int | None = None
