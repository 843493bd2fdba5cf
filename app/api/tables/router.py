"""The path operations of tables. Loads and existence checks are lean: every query of every engine waits for them."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Body, Depends, Header, Query, Request
from pydantic import WithJsonSchema

from app import errors
from app.api import deps
from app.api.rendering import commit_answer, count_commit, identifiers_answer, table_answer
from app.api.responses import BODY, CHANGE, COMMIT, ETAG, FINDINGS, fails, success
from app.api.route import LeanRoute, StrictRoute
from app.api.shapes import Embedded, ListTablesResponse, RenameTableRequest, check_identifier, identifier
from app.api.tables.schemas import (
    CommitTableRequest,
    CommitTableResponse,
    CreateTableRequest,
    LoadTableResult,
    MetricsReport,
    RegisterTableRequest,
)
from app.catalog import commits, tables
from app.catalog.results import NotModified, Snapshots
from app.edge.answer import NOT_MODIFIED, Answer, no_content
from app.edge.contention import commit_turn, load_turn
from app.edge.etags import IfNoneMatch
from app.edge.raw_path import decode_levels, decode_query, decode_segment
from app.errors import BadRequest
from app.iceberg.partition import parse_unbound_partition_spec
from app.iceberg.requirement import parse_table_requirements
from app.iceberg.schema import parse_schema
from app.iceberg.sort import parse_sort_order
from app.iceberg.update import parse_table_updates

ALL = "/v1/{prefix}/namespaces/{namespace}/tables"
ONE = f"{ALL}/{{table}}"

lean = APIRouter(route_class=LeanRoute, tags=["Tables"])
router = APIRouter(route_class=StrictRoute, tags=["Tables"])

_SEEN = (errors.NoSuchWarehouse, errors.NoSuchTable)
_HOME = (errors.NoSuchWarehouse, errors.NoSuchNamespace)
_EXISTS = no_content()


async def _of_load(
    prefix: deps.RawPrefix,
    namespace: deps.RawNamespace,
    table: deps.RawTable,
    snapshots: Annotated[
        Literal["all", "refs"], Query(description="`refs` leaves out snapshots that no branch or tag points at.")
    ] = "all",
    referenced_by: deps.ReferencedBy = None,
    if_none_match: Annotated[
        str | None,
        Header(
            alias="If-None-Match",
            description="Entity tags the caller holds; 304 when one is current. Lists, weak tags and `*` are fine.",
        ),
    ] = None,
    delegation: deps.Delegation = None,
) -> None:
    """What `load_table` reads from its request."""


async def _of_table(prefix: deps.RawPrefix, namespace: deps.RawNamespace, table: deps.RawTable) -> None:
    """What `table_exists` reads from its request."""


@lean.get(
    ONE,
    operation_id="loadTable",
    dependencies=[Depends(_of_load)],
    response_model=LoadTableResult,
    responses={
        **success(200, "The table as it is now.", ETAG),
        **success(304, "The caller's copy is current.", ETAG),
        **fails(*_SEEN, errors.NotFound, errors.CorruptMetadata),
    },
)
async def load_table(request: Request) -> Answer:
    """Load a table.

    `NotFoundException` means that the table exists but its metadata file has vanished, `CorruptMetadataException` that
    the file cannot be read.
    """
    ctx, (warehouse, levels, name) = request.app.state.catalog, _path(request)
    snapshots = _snapshots(decode_query(request.scope["query_string"]).get("snapshots", "all").lower())
    tags = request.headers.getlist("if-none-match")
    held = IfNoneMatch(", ".join(tags)) if tags else None
    await load_turn(request, warehouse, levels, name)
    loaded = await tables.load_table(
        ctx, deps.caller_of(request), warehouse, levels, name, snapshots=snapshots, held=held or ()
    )
    if isinstance(loaded, NotModified):
        assert held is not None
        return Answer(NOT_MODIFIED, headers=[("ETag", held.written(loaded.tag)), ("Vary", "Accept-Encoding")])
    return await table_answer(request, loaded)


@lean.head(
    ONE,
    operation_id="tableExists",
    status_code=204,
    dependencies=[Depends(_of_table)],
    responses={**success(204, "It exists."), **fails(*_SEEN, head=True)},
)
async def table_exists(request: Request) -> Answer:
    """Tell whether a table exists."""
    await tables.table_exists(request.app.state.catalog, *_path(request))
    return _EXISTS


def _snapshots(text: str) -> Snapshots:
    if text == "all":
        return "all"
    if text == "refs":
        return "refs"
    raise BadRequest(f"Invalid snapshots: {text} (use all or refs)")


def _path(request: Request) -> tuple[str, tuple[str, ...], str]:
    given = request.path_params
    return decode_segment(given["prefix"]), decode_levels(given["namespace"]), decode_segment(given["table"])


@router.post(
    ONE,
    operation_id="updateTable",
    response_model=CommitTableResponse,
    responses={
        **success(200, "The table after the commit.", ETAG, FINDINGS),
        **fails(*_SEEN, errors.NoSuchNamespace, errors.NotFound, errors.AlreadyExists, *COMMIT, *BODY, *CHANGE),
    },
)
async def update_table(
    request: Request,
    catalog: deps.Catalog,
    prefix: deps.Prefix,
    levels: deps.Levels,
    name: deps.TableName,
    caller: deps.Writer,
    body: CommitTableRequest,
) -> Answer:
    """Commit to a table, or complete a staged create.

    Requirements are checked against the present state (409), updates are applied in order, and the result is judged by
    the rules of the evolution engine (400). An unknown requirement or update is refused, and nothing is stored.
    """
    check_identifier(body.identifier, levels, name)
    requirements = await deps.parsed(
        request, parse_table_requirements, [] if body.requirements is None else body.requirements, "$.requirements"
    )
    updates = await deps.parsed(request, parse_table_updates, body.updates, "$.updates")
    with commit_turn(request, [(prefix, levels, name)]):
        committed = await commits.commit_table(catalog, caller, prefix, levels, name, requirements, updates)
    count_commit(request, "table")
    return await commit_answer(request, committed)


@router.post(
    f"{ONE}/metrics",
    operation_id="reportMetrics",
    status_code=204,
    responses={**success(204, "Taken."), **fails(*_SEEN, *BODY)},
)
async def report_metrics(
    request: Request,
    catalog: deps.Catalog,
    prefix: deps.Prefix,
    levels: deps.Levels,
    name: deps.TableName,
    caller: deps.Reader,
    report: Annotated[Embedded[MetricsReport], Body()],
) -> Answer:
    """Take a scan or commit report. Kinds and members that this server does not know are fine."""
    await tables.report_metrics(catalog, caller, prefix, levels, name, await request.json())
    return no_content()


@router.get(
    ALL,
    operation_id="listTables",
    response_model=ListTablesResponse,
    responses={**success(200, "Tables in name order."), **fails(*_HOME)},
)
async def list_tables(catalog: deps.Catalog, prefix: deps.Prefix, levels: deps.Levels, page: deps.Page) -> Answer:
    """List the tables of a namespace."""
    return identifiers_answer(levels, await tables.list_tables(catalog, prefix, levels, page))


@router.post(
    ALL,
    operation_id="createTable",
    response_model=LoadTableResult,
    responses={
        **success(200, "The new or staged table.", ETAG, FINDINGS),
        **fails(*_HOME, errors.AlreadyExists, errors.EvolutionRefused, *BODY, *CHANGE),
    },
)
async def create_table(
    request: Request,
    catalog: deps.Catalog,
    prefix: deps.Prefix,
    levels: deps.Levels,
    caller: deps.Writer,
    body: CreateTableRequest,
    delegation: deps.Delegation = None,
) -> Answer:
    """Create a table, or stage one.

    Column ids are assigned anew from 1, and partition and sort fields follow their columns. A staged table is not
    stored: a later commit with `assert-create` makes it.
    """
    spec, order = body.partition_spec, body.write_order
    wanted = tables.TableRequest(
        name=body.name,
        schema=await deps.parsed(request, parse_schema, body.schema_, "$.schema"),
        spec=None if spec is None else parse_unbound_partition_spec(spec, "$.partition-spec"),
        order=None if order is None else parse_sort_order(order, "$.write-order"),
        location=body.location,
        properties=body.properties or {},
        stage=body.stage_create or False,
    )
    return await table_answer(request, await tables.create_table(catalog, caller, prefix, levels, wanted))


@router.delete(
    ONE,
    operation_id="dropTable",
    status_code=204,
    responses={**success(204, "It is gone."), **fails(*_SEEN, *CHANGE)},
)
async def drop_table(
    catalog: deps.Catalog,
    prefix: deps.Prefix,
    levels: deps.Levels,
    name: deps.TableName,
    caller: deps.Writer,
    purge: Annotated[
        str,
        Query(alias="purgeRequested", description="`true` (in any letter case) deletes the table's files too."),
        WithJsonSchema({"type": "boolean"}),
    ] = "false",
) -> Answer:
    """Drop a table. Its files stay unless `purgeRequested` is true; then they are deleted in the background."""
    if purge.lower() not in ("true", "false"):
        raise BadRequest(f"Invalid purgeRequested: {purge!r} is neither true nor false")
    await tables.drop_table(catalog, caller, prefix, levels, name, purge=purge.lower() == "true")
    return no_content()


@router.post(
    "/v1/{prefix}/namespaces/{namespace}/register",
    operation_id="registerTable",
    response_model=LoadTableResult,
    responses={
        **success(200, "The registered table.", ETAG, FINDINGS),
        **fails(*_HOME, errors.NotFound, errors.AlreadyExists, *BODY, *CHANGE),
    },
)
async def register_table(
    request: Request,
    catalog: deps.Catalog,
    prefix: deps.Prefix,
    levels: deps.Levels,
    caller: deps.Writer,
    body: RegisterTableRequest,
    delegation: deps.Delegation = None,
) -> Answer:
    """Make an existing metadata file known as a table; `overwrite` moves the pointer of one that is there.

    Overwriting restores any version of the table, so no rule refuses it: what a commit to that version would have been
    refused for is told in `Icekeel-Findings` and in the history.
    """
    registered = await tables.register_table(
        catalog, caller, prefix, levels, body.name, body.metadata_location, overwrite=body.overwrite or False
    )
    return await table_answer(request, registered)


@router.post(
    f"{ONE}/unregister",
    operation_id="unregisterTable",
    response_model=CommitTableResponse,
    responses={
        **success(200, "The last state of the table; all files stay."),
        **fails(*_SEEN, errors.NotFound, *CHANGE),
    },
)
async def unregister_table(
    request: Request,
    catalog: deps.Catalog,
    prefix: deps.Prefix,
    levels: deps.Levels,
    name: deps.TableName,
    caller: deps.Writer,
) -> Answer:
    """Forget a table and leave every file where it is."""
    return await commit_answer(request, await tables.unregister_table(catalog, caller, prefix, levels, name))


@router.post(
    "/v1/{prefix}/tables/rename",
    operation_id="renameTable",
    status_code=204,
    responses={
        **success(204, "Renamed; files stay where they are."),
        **fails(*_SEEN, errors.NoSuchNamespace, errors.AlreadyExists, *BODY, *CHANGE),
    },
)
async def rename_table(
    catalog: deps.Catalog, prefix: deps.Prefix, caller: deps.Writer, body: RenameTableRequest
) -> Answer:
    """Rename a table, also into another namespace of its warehouse."""
    await tables.rename_table(catalog, caller, prefix, identifier(body.source), identifier(body.destination))
    return no_content()
