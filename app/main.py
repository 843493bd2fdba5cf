"""Wiring: settings become adapters, adapters a catalog, the catalog an application. Nothing happens at import."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache

from starlette.types import ASGIApp

from app import __version__
from app.api import document, routes
from app.api.config import advertised
from app.api.errors import ErrorTable
from app.catalog import storage
from app.catalog.background import Background
from app.catalog.context import Caches, Context, Limits
from app.catalog.documents import Documents
from app.catalog.warehouses import ensure_warehouse, tell_of_keys
from app.errors import BadRequest, BadSettings
from app.objects import WarehouseObjects
from app.ports import Store, Warehouse
from app.settings import Settings
from app.store import migrate, open_store, schema_state
from app.web.application import Application
from app.web.bodies import BodyLimits
from app.web.envelope import Envelope
from app.web.exchange import Observe, Observer
from app.web.guard import Guard, host_name, is_loopback_name
from app.web.metrics import Metrics
from app.web.paths import RawPath
from app.web.recall import Recall

__all__ = [
    "check_exposure",
    "create_app",
    "create_context",
    "default_warehouse",
    "migrate",
    "openapi_document",
    "prepare",
    "schema_state",
    "settle_memory",
]

PUBLIC_PATHS = frozenset({"/docs", "/openapi.json"})

# Allocations between two looks at young objects. Requests leave no cycles; the default of 700 costs a percent of CPU.
_GC_THRESHOLD = 50_000


class SystemClock:
    """`ports.Clock` on the machine's clocks."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()


class RandomIds:
    """`ports.Ids` on the operating system's randomness."""

    def uuid4(self) -> str:
        return str(uuid.uuid4())

    def uniform(self, low: float, high: float) -> float:
        return random.uniform(low, high)


def create_app(settings: Settings) -> Application:
    """The whole application. It opens its database and starts its background work when it is started."""
    check_exposure(settings)
    metrics = _metrics(settings)
    context = create_context(settings)

    @asynccontextmanager
    async def lifetime() -> AsyncIterator[None]:
        background = Background(context)
        await context.store.open()
        try:
            await _ensure_default(context, settings)
            await tell_of_keys(context)
            await background.start()
            settle_memory()
            yield
        finally:
            await background.stop()
            await context.store.close()
            await context.objects.close()

    app = Application(
        [operation.route() for operation in routes.OPERATIONS],
        layers=lambda router: _layers(router, settings, context, metrics),
        lifetime=lifetime,
    )
    app.state.catalog = context
    app.state.metrics = metrics
    app.state.draining = False
    app.state.endpoints = advertised(routes.OPERATIONS)
    app.state.document = cache(openapi_document)
    _watch(metrics, context)
    return app


def prepare(settings: Settings) -> None:
    """Make everything ready that a start needs, or raise the one line that says why it cannot be.

    The embedded database is created or upgraded; any other must be up to date (SchemaOutOfDate) and reachable
    (Unavailable). The default warehouse exists afterwards (BadSettings for a location or options that cannot be).
    """

    async def ready() -> None:
        context = create_context(settings)
        try:
            await context.store.open()
            await _ensure_default(context, settings, establish=True)
        finally:
            await context.store.close()
            await context.objects.close()

    asyncio.run(ready())


def openapi_document() -> dict[str, object]:
    """The OpenAPI document, without a database or a home."""
    return document.document(routes.OPERATIONS, __version__)


def create_context(settings: Settings, store: Store | None = None) -> Context:
    """The catalog's world from settings and an unopened store: `store`, or else the one that the settings name."""
    limits = Limits(
        allowed_locations=settings.allowed_locations,
        local_roots=settings.local_roots,
        callers_known=settings.token is not None,
        idempotency_lifetime_ms=settings.idempotency_lifetime * 1000,
        queue_length=settings.commit_queue,
    )
    return Context(
        store=store or open_store(settings.database, secret_keys=settings.secret_keys),
        objects=WarehouseObjects(settings.allowed_locations, settings.trusted_endpoints),
        clock=SystemClock(),
        ids=RandomIds(),
        caches=Caches(documents=Documents(settings.document_cache)),
        limits=limits,
        configured=default_warehouse(settings),
    )


def default_warehouse(settings: Settings) -> Warehouse:
    """The configured warehouse; credentials among its options are kept apart from what clients are shown."""
    shown, secret = storage.split(settings.warehouse_options)
    return Warehouse(
        name=Limits().default_warehouse,
        location=settings.warehouse_location,
        storage=shown,
        secrets=secret,
    )


async def _ensure_default(context: Context, settings: Settings, *, establish: bool = False) -> None:
    try:
        await ensure_warehouse(context, default_warehouse(settings), establish=establish)
    except BadRequest as error:
        raise BadSettings(f"ICEKEEL_WAREHOUSE, ICEKEEL_WAREHOUSE_OPTIONS: {error.message}") from None


def check_exposure(settings: Settings) -> None:
    """BadSettings when other machines could use the server without a token and nobody said that this is meant."""
    if settings.token is None and not settings.allow_anonymous and not is_loopback_name(settings.host.lower()):
        raise BadSettings(
            f"Host {settings.host} is reachable from other machines and no ICEKEEL_TOKEN is set. "
            "Set one, listen on 127.0.0.1, or pass --allow-anonymous if everyone may read and change every table."
        )


def settle_memory() -> None:
    """What is loaded by now lives as long as the process: take it out of every later collection."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GC_THRESHOLD, 20, 50)


def _layers(router: ASGIApp, settings: Settings, context: Context, metrics: Metrics) -> ASGIApp:
    app: ASGIApp = BodyLimits(router, limit=settings.body_limit, timeout_s=settings.body_timeout)
    app = Guard(
        app,
        token=settings.token,
        public=PUBLIC_PATHS,
        local_only=is_loopback_name(host_name(settings.host) or settings.host) and not settings.allow_anonymous,
    )
    app = RawPath(app, default_warehouse=context.limits.default_warehouse)
    render = ErrorTable(metrics.count)
    app = Envelope(app, render=render)
    observer = Observer(
        metrics=metrics,
        monotonic=context.clock.monotonic,
        id_prefix=context.ids.uuid4()[:8],
        sample=settings.log_sample,
        slow_s=settings.log_slow,
    )
    return Recall(Observe(app, observer), observer, render)


def _metrics(settings: Settings) -> Metrics:
    metrics = Metrics({"worker": str(os.getpid())} if settings.workers > 1 else None)
    metrics.describe("refusals", "Schema changes refused, by rule code.")
    metrics.describe("commits", "Commits answered with success, by kind.")
    metrics.describe("commit_conflicts", "Commits that did not see the present state and were answered 409.")
    return metrics


def _watch(metrics: Metrics, context: Context) -> None:
    documents = context.caches.documents
    metrics.gauge("document_cache_bytes", "Bytes of metadata documents held in memory.", lambda: documents.held_bytes)
    metrics.gauge("document_cache_entries", "Metadata documents held in memory.", lambda: len(documents))
    metrics.gauge("commit_lines", "Tables with a commit running or waiting.", lambda: len(context.caches.lines))
    metrics.gauge("contested_tables", "Tables whose writers take turns.", lambda: len(context.caches.turns))
