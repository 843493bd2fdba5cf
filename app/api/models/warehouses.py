"""Bodies of our own API: warehouses."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from app.api.models.metadata import Shape

Name = Annotated[str, Meta(pattern="^[a-z0-9_-]{1,64}$")]


class WarehouseModel(Shape):
    """A warehouse. Of secret storage options only the names are shown."""

    name: str
    location: str
    allowed_locations: list[str]
    properties: dict[str, str]
    storage: dict[str, str]
    secret_options: list[str]
    version: int


class WarehouseList(Shape):
    """Every warehouse of this server."""

    warehouses: list[WarehouseModel]


class WarehouseRequest(Shape):
    """A new warehouse. `properties` are defaults of new tables; `storage` holds options, secret ones among them."""

    name: Name
    location: str
    allowed_locations: list[str] | None = None
    properties: dict[str, str] | None = None
    storage: dict[str, str] | None = None


class WarehousePatch(Shape):
    """What to change. In `properties` and `storage`, null removes a key and what is not named stays.

    With `version` the change is refused unless the warehouse is at that version.
    """

    location: str | None = None
    allowed_locations: list[str] | None = None
    properties: dict[str, str | None] | None = None
    storage: dict[str, str | None] | None = None
    version: int | None = None
