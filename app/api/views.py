"""Views."""

from __future__ import annotations

from starlette.requests import Request

from app import errors
from app.api import parameters, reading
from app.api.common import ALWAYS, BODY, CHANGE
from app.api.models import wire
from app.api.operations import Operations, Returns
from app.api.rendering import identifiers_answer, view_answer
from app.catalog import views
from app.spec import codec
from app.spec.requirement import parse_view_requirements
from app.spec.schema import parse_schema
from app.spec.update import parse_view_updates
from app.spec.view_version import view_version_from_json
from app.web.answer import Answer, no_content

routes = Operations("Views", ALWAYS)
ALL = "/v1/{prefix}/namespaces/{namespace}/views"
ONE = f"{ALL}/{{view}}"
_PATH = (parameters.PREFIX, parameters.NAMESPACE)
_VIEW = (*_PATH, parameters.VIEW)
_KEY = parameters.IDEMPOTENCY_KEY
_LOADED = Returns(200, "The view as it is now.", wire.LoadViewResult)
_SEEN = (errors.NoSuchWarehouse, errors.NoSuchView)
_HOME = (errors.NoSuchWarehouse, errors.NoSuchNamespace)


@routes.declare(
    "GET",
    ONE,
    "loadView",
    parameters=[*_VIEW, parameters.REFERENCED_BY],
    returns=[_LOADED],
    fails=[*_SEEN, errors.NotFound, errors.CorruptMetadata],
)
async def load_view(request: Request) -> Answer:
    """Load a view."""
    return view_answer(
        await views.load_view(
            reading.context(request),
            reading.caller(request),
            reading.warehouse(request),
            reading.levels(request),
            reading.segment(request, "view"),
        )
    )


@routes.declare(
    "POST",
    ONE,
    "replaceView",
    parameters=[*_VIEW, _KEY],
    body=wire.CommitViewRequest,
    returns=[Returns(200, "The view after the commit.", wire.LoadViewResult)],
    fails=[
        *_SEEN,
        errors.NotFound,
        errors.IllegalArgument,
        errors.CommitFailed,
        errors.CommitStateUnknown,
        *BODY,
        *CHANGE,
    ],
)
async def replace_view(request: Request) -> Answer:
    """Commit to a view."""
    body, raw = await reading.json_body(request)
    levels, name = reading.levels(request), reading.segment(request, "view")
    reading.check_identifier(body, levels, name)
    requirements = await reading.parsed(
        raw, parse_view_requirements, codec.optional(body, "requirements", []), "$.requirements"
    )
    updates = await reading.parsed(raw, parse_view_updates, codec.required(body, "updates"), "$.updates")
    committed = await views.replace_view(
        reading.context(request),
        reading.caller(request, raw),
        reading.warehouse(request),
        levels,
        name,
        requirements,
        updates,
    )
    reading.count(request, "commits", kind="view")
    return view_answer(committed)


@routes.declare(
    "HEAD",
    ONE,
    "viewExists",
    parameters=_VIEW,
    returns=[Returns(204, "It exists.")],
    fails=_SEEN,
)
async def view_exists(request: Request) -> Answer:
    """Tell whether a view exists."""
    await views.view_exists(
        reading.context(request), reading.warehouse(request), reading.levels(request), reading.segment(request, "view")
    )
    return no_content()


@routes.declare(
    "GET",
    ALL,
    "listViews",
    parameters=[*_PATH, parameters.PAGE_TOKEN, parameters.PAGE_SIZE],
    returns=[Returns(200, "Views in name order.", wire.ListTablesResponse)],
    fails=_HOME,
)
async def list_views(request: Request) -> Answer:
    """List the views of a namespace."""
    levels = reading.levels(request)
    listed = await views.list_views(
        reading.context(request), reading.warehouse(request), levels, reading.page(reading.query(request))
    )
    return identifiers_answer(levels, listed)


@routes.declare(
    "POST",
    ALL,
    "createView",
    parameters=[*_PATH, _KEY],
    body=wire.CreateViewRequest,
    returns=[_LOADED],
    fails=[*_HOME, errors.IllegalArgument, errors.AlreadyExists, *BODY, *CHANGE],
)
async def create_view(request: Request) -> Answer:
    """Create a view."""
    body, raw = await reading.json_body(request)
    wanted = views.ViewRequest(
        name=codec.required_str(body, "name"),
        schema=await reading.parsed(raw, parse_schema, codec.required(body, "schema"), "$.schema"),
        view_version=view_version_from_json(codec.required(body, "view-version"), "$.view-version"),
        location=codec.optional_str(body, "location"),
        properties=codec.as_str_map(codec.optional(body, "properties", {}), "$.properties"),
    )
    return view_answer(
        await views.create_view(
            reading.context(request),
            reading.caller(request, raw),
            reading.warehouse(request),
            reading.levels(request),
            wanted,
        )
    )


@routes.declare(
    "DELETE",
    ONE,
    "dropView",
    parameters=[*_VIEW, _KEY],
    returns=[Returns(204, "It is gone.")],
    fails=[*_SEEN, *CHANGE],
)
async def drop_view(request: Request) -> Answer:
    """Drop a view."""
    raw = await reading.no_body(request)
    await views.drop_view(
        reading.context(request),
        reading.caller(request, raw),
        reading.warehouse(request),
        reading.levels(request),
        reading.segment(request, "view"),
    )
    return no_content()


@routes.declare(
    "POST",
    "/v1/{prefix}/namespaces/{namespace}/register-view",
    "registerView",
    parameters=[*_PATH, _KEY],
    body=wire.RegisterViewRequest,
    returns=[Returns(200, "The registered view.", wire.LoadViewResult)],
    fails=[*_HOME, errors.NotFound, errors.AlreadyExists, *BODY, *CHANGE],
)
async def register_view(request: Request) -> Answer:
    """Make an existing metadata file known as a view."""
    body, raw = await reading.json_body(request)
    return view_answer(
        await views.register_view(
            reading.context(request),
            reading.caller(request, raw),
            reading.warehouse(request),
            reading.levels(request),
            codec.required_str(body, "name"),
            codec.required_str(body, "metadata-location"),
        )
    )


@routes.declare(
    "POST",
    "/v1/{prefix}/views/rename",
    "renameView",
    parameters=[parameters.PREFIX, _KEY],
    body=wire.RenameTableRequest,
    returns=[Returns(204, "Renamed.")],
    fails=[*_SEEN, errors.NoSuchNamespace, errors.AlreadyExists, *BODY, *CHANGE],
)
async def rename_view(request: Request) -> Answer:
    """Rename a view, also into another namespace of its warehouse."""
    body, raw = await reading.json_body(request)
    source = reading.identifier(codec.required(body, "source"), "$.source")
    destination = reading.identifier(codec.required(body, "destination"), "$.destination")
    await views.rename_view(
        reading.context(request), reading.caller(request, raw), reading.warehouse(request), source, destination
    )
    return no_content()
