"""The path operations of views."""

from __future__ import annotations

from fastapi import APIRouter, Request

from app import errors
from app.api import deps
from app.api.rendering import count_commit, identifiers_answer, view_answer
from app.api.responses import BODY, CHANGE, fails, success
from app.api.route import StrictRoute
from app.api.shapes import ListTablesResponse, RenameTableRequest, check_identifier, identifier
from app.api.views.schemas import CommitViewRequest, CreateViewRequest, LoadViewResult, RegisterViewRequest
from app.catalog import views
from app.edge.answer import Answer, no_content
from app.iceberg.requirement import parse_view_requirements
from app.iceberg.schema import parse_schema
from app.iceberg.update import parse_view_updates
from app.iceberg.view_version import view_version_from_json

ALL = "/v1/{prefix}/namespaces/{namespace}/views"
ONE = f"{ALL}/{{view}}"

router = APIRouter(route_class=StrictRoute, tags=["Views"])

_SEEN = (errors.NoSuchWarehouse, errors.NoSuchView)
_HOME = (errors.NoSuchWarehouse, errors.NoSuchNamespace)


@router.get(
    ONE,
    operation_id="loadView",
    response_model=LoadViewResult,
    responses={
        **success(200, "The view as it is now."),
        **fails(*_SEEN, errors.NotFound, errors.CorruptMetadata),
    },
)
async def load_view(
    catalog: deps.Catalog,
    prefix: deps.Prefix,
    levels: deps.Levels,
    name: deps.ViewName,
    caller: deps.Reader,
    referenced_by: deps.ReferencedBy = None,
) -> Answer:
    """Load a view."""
    return view_answer(await views.load_view(catalog, caller, prefix, levels, name))


@router.post(
    ONE,
    operation_id="replaceView",
    response_model=LoadViewResult,
    responses={
        **success(200, "The view after the commit."),
        **fails(
            *_SEEN,
            errors.NotFound,
            errors.IllegalArgument,
            errors.CommitFailed,
            errors.CommitStateUnknown,
            *BODY,
            *CHANGE,
        ),
    },
)
async def replace_view(
    request: Request,
    catalog: deps.Catalog,
    prefix: deps.Prefix,
    levels: deps.Levels,
    name: deps.ViewName,
    caller: deps.Writer,
    body: CommitViewRequest,
) -> Answer:
    """Commit to a view."""
    check_identifier(body.identifier, levels, name)
    requirements = await deps.parsed(
        request, parse_view_requirements, [] if body.requirements is None else body.requirements, "$.requirements"
    )
    updates = await deps.parsed(request, parse_view_updates, body.updates, "$.updates")
    committed = await views.replace_view(catalog, caller, prefix, levels, name, requirements, updates)
    count_commit(request, "view")
    return view_answer(committed)


@router.head(
    ONE,
    operation_id="viewExists",
    status_code=204,
    responses={**success(204, "It exists."), **fails(*_SEEN, head=True)},
)
async def view_exists(catalog: deps.Catalog, prefix: deps.Prefix, levels: deps.Levels, name: deps.ViewName) -> Answer:
    """Tell whether a view exists."""
    await views.view_exists(catalog, prefix, levels, name)
    return no_content()


@router.get(
    ALL,
    operation_id="listViews",
    response_model=ListTablesResponse,
    responses={**success(200, "Views in name order."), **fails(*_HOME)},
)
async def list_views(catalog: deps.Catalog, prefix: deps.Prefix, levels: deps.Levels, page: deps.Page) -> Answer:
    """List the views of a namespace."""
    return identifiers_answer(levels, await views.list_views(catalog, prefix, levels, page))


@router.post(
    ALL,
    operation_id="createView",
    response_model=LoadViewResult,
    responses={
        **success(200, "The view as it is now."),
        **fails(*_HOME, errors.IllegalArgument, errors.AlreadyExists, *BODY, *CHANGE),
    },
)
async def create_view(
    request: Request,
    catalog: deps.Catalog,
    prefix: deps.Prefix,
    levels: deps.Levels,
    caller: deps.Writer,
    body: CreateViewRequest,
) -> Answer:
    """Create a view."""
    wanted = views.ViewRequest(
        name=body.name,
        schema=await deps.parsed(request, parse_schema, body.schema_, "$.schema"),
        view_version=view_version_from_json(body.view_version, "$.view-version"),
        location=body.location,
        properties=body.properties or {},
    )
    return view_answer(await views.create_view(catalog, caller, prefix, levels, wanted))


@router.delete(
    ONE,
    operation_id="dropView",
    status_code=204,
    responses={**success(204, "It is gone."), **fails(*_SEEN, *CHANGE)},
)
async def drop_view(
    catalog: deps.Catalog, prefix: deps.Prefix, levels: deps.Levels, name: deps.ViewName, caller: deps.Writer
) -> Answer:
    """Drop a view."""
    await views.drop_view(catalog, caller, prefix, levels, name)
    return no_content()


@router.post(
    "/v1/{prefix}/namespaces/{namespace}/register-view",
    operation_id="registerView",
    response_model=LoadViewResult,
    responses={
        **success(200, "The registered view."),
        **fails(*_HOME, errors.NotFound, errors.AlreadyExists, *BODY, *CHANGE),
    },
)
async def register_view(
    catalog: deps.Catalog, prefix: deps.Prefix, levels: deps.Levels, caller: deps.Writer, body: RegisterViewRequest
) -> Answer:
    """Make an existing metadata file known as a view."""
    return view_answer(await views.register_view(catalog, caller, prefix, levels, body.name, body.metadata_location))


@router.post(
    "/v1/{prefix}/views/rename",
    operation_id="renameView",
    status_code=204,
    responses={
        **success(204, "Renamed."),
        **fails(*_SEEN, errors.NoSuchNamespace, errors.AlreadyExists, *BODY, *CHANGE),
    },
)
async def rename_view(
    catalog: deps.Catalog, prefix: deps.Prefix, caller: deps.Writer, body: RenameTableRequest
) -> Answer:
    """Rename a view, also into another namespace of its warehouse."""
    await views.rename_view(catalog, caller, prefix, identifier(body.source), identifier(body.destination))
    return no_content()
