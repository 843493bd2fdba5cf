"""Every operation, hottest first: the router tries them in this order."""

from __future__ import annotations

from app.api import (
    changes,
    config,
    docs,
    evolution,
    health,
    namespaces,
    rules,
    table_ranking,
    tables,
    transactions,
    views,
    warehouses,
)
from app.api.operations import Operation

OPERATIONS: tuple[Operation, ...] = (
    *tables.routes,
    *namespaces.routes,
    *views.routes,
    *transactions.routes,
    *config.routes,
    *health.routes,
    *changes.routes,
    *table_ranking.routes,
    *evolution.routes,
    *rules.routes,
    *warehouses.routes,
    *docs.routes,
)
