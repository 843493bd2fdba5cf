"""Every operation, hottest first: the router tries them in this order."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import FastAPI

from app.api import (
    changes,
    config,
    docs,
    evolution,
    health,
    namespaces,
    rules,
    standings,
    tables,
    transactions,
    views,
    warehouses,
)
from app.api.document import Shapes
from app.api.operations import Operation

OPERATIONS: tuple[Operation, ...] = (
    *tables.routes,
    *namespaces.routes,
    *views.routes,
    *transactions.routes,
    *config.routes,
    *health.routes,
    *changes.routes,
    *standings.routes,
    *evolution.routes,
    *rules.routes,
    *warehouses.routes,
    *docs.routes,
)


def install(app: FastAPI, operations: Sequence[Operation] = OPERATIONS) -> Shapes:
    """Add every operation to the application; answers the shapes that their documents refer to."""
    shapes = Shapes()
    for operation in operations:
        operation.install(app, shapes.reference)
    return shapes
