"""The body of `/v1/config`."""

from __future__ import annotations

from app.api.shapes import Properties, Shape


class CatalogConfig(Shape):
    """What a client needs to know about the catalog before its first call."""

    defaults: Properties
    overrides: Properties
    endpoints: list[str]
    idempotency_key_lifetime: str
