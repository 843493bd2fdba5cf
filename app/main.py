"""Wiring: settings become adapters, adapters a catalog, the catalog an application. Nothing happens at import."""

from __future__ import annotations

import asyncio
import gc
import random
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware

from app.api import routes
from app.api.docs import router as docs
from app.catalog import storage
from app.catalog.background import Background
from app.catalog.context import Caches, Context, Limits
from app.catalog.metadata_cache import MetadataCache
from app.catalog.warehouses import ensure_warehouse, tell_of_keys
from app.edge.access_log import Observe, Observer
from app.edge.bodies import BodyLimits
from app.edge.contention import Contention
from app.edge.envelope import Envelope
from app.edge.errors import ErrorTable
from app.edge.guard import Guard, host_name, is_loopback_name
from app.edge.lifespan import OneLine
from app.edge.metrics import Metrics
from app.edge.raw_path import RawPath
from app.errors import BadRequest, BadSettings
from app.objects import WarehouseObjects
from app.ports import Store, Warehouse
from app.settings import Settings
from app.store import migrate, open_store, schema_state

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


def create_app(settings: Settings, metrics_directory: str | None = None) -> FastAPI:
    """The whole application. It opens its database and starts its background work when it is started.

    `metrics_directory` is where the processes of one server keep their numbers, if there are several.
    """
    check_exposure(settings)
    metrics = Metrics(metrics_directory)
    context = create_context(settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        background = Background(context)
        await context.store.open()
        try:
            await _ensure_default(context, settings)
            await tell_of_keys(context)
            await background.start()
            settle_memory()
            sampling = asyncio.create_task(metrics.keep_sampled()) if metrics_directory is not None else None
            yield
            if sampling is not None:
                sampling.cancel()
        finally:
            await background.stop()
            await context.store.close()
            await context.objects.close()

    app = FastAPI(
        **routes.DECLARED,
        lifespan=lifespan,
        middleware=_middleware(settings, context, metrics),
        exception_handlers={HTTPException: _to_the_envelope, RequestValidationError: _to_the_envelope},
    )
    app.state.catalog = context
    app.state.metrics = metrics
    app.state.contention = Contention()
    app.state.draining = False
    app.state.endpoints = routes.advertised()
    _watch(metrics, context, app.state.contention)
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


def openapi_document() -> dict[str, Any]:
    """The OpenAPI document, without a database or a home."""
    return FastAPI(**routes.DECLARED).openapi()


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
        caches=Caches(documents=MetadataCache(settings.document_cache)),
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


async def _to_the_envelope(request: Request, error: Exception) -> Response:
    """The framework's own answers to these would not be in our envelope, which is one layer out."""
    raise error


def _middleware(settings: Settings, context: Context, metrics: Metrics) -> list[Middleware]:
    """The layers around the routes, outermost first."""
    observer = Observer(
        metrics=metrics,
        monotonic=context.clock.monotonic,
        id_prefix=context.ids.uuid4()[:8],
        sample=settings.log_sample,
        slow_s=settings.log_slow,
    )
    local_only = is_loopback_name(host_name(settings.host) or settings.host) and not settings.allow_anonymous
    return [
        Middleware(OneLine),
        Middleware(Observe, observer),
        Middleware(Envelope, render=ErrorTable(metrics)),
        Middleware(RawPath, default_warehouse=context.limits.default_warehouse),
        Middleware(Guard, token=settings.token, public=docs.PUBLIC, local_only=local_only),
        Middleware(BodyLimits, limit=settings.body_limit, timeout_s=settings.body_timeout),
    ]


def _watch(metrics: Metrics, context: Context, contention: Contention) -> None:
    documents = context.caches.documents
    metrics.gauge("document_cache_bytes", "Bytes of metadata documents held in memory.", lambda: documents.held_bytes)
    metrics.gauge("document_cache_entries", "Metadata documents held in memory.", lambda: len(documents))
    metrics.gauge("commit_lines", "Tables with a commit running or waiting.", lambda: len(context.caches.locks))
    metrics.gauge("contested_tables", "Tables whose writers take turns.", lambda: len(contention))
