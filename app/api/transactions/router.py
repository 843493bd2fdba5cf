"""The path operation of transactions."""

from __future__ import annotations

from fastapi import APIRouter, Request

from app import errors
from app.api import deps
from app.api.rendering import count_commit
from app.api.responses import BODY, CHANGE, COMMIT, fails, success
from app.api.route import StrictRoute
from app.api.shapes import identifier
from app.api.transactions.schemas import CommitTransactionRequest, TableChange
from app.catalog import commits
from app.edge.answer import Answer, no_content
from app.edge.contention import commit_turn
from app.iceberg.requirement import parse_table_requirements
from app.iceberg.update import parse_table_updates

router = APIRouter(route_class=StrictRoute, tags=["Transactions"])


@router.post(
    "/v1/{prefix}/transactions/commit",
    operation_id="commitTransaction",
    status_code=204,
    responses={
        **success(204, "Every change is stored."),
        **fails(
            errors.NoSuchWarehouse,
            errors.NoSuchNamespace,
            errors.NoSuchTable,
            errors.NotFound,
            errors.AlreadyExists,
            *COMMIT,
            *BODY,
            *CHANGE,
        ),
    },
)
async def commit_transaction(
    request: Request,
    catalog: deps.Catalog,
    prefix: deps.Prefix,
    caller: deps.Writer,
    body: CommitTransactionRequest,
) -> Answer:
    """Commit to any number of tables, all or none.

    Staged creates may be among them, and one table may come up several times: each of its changes is checked on what
    those before it made, as if they had been sent one after the other, and the table gets one new version.
    """
    changes = await deps.parsed(request, _changes, body.table_changes, "$.table-changes")
    with commit_turn(request, list(dict.fromkeys((prefix, change.levels, change.name) for change in changes))):
        await commits.commit_transaction(catalog, caller, prefix, changes)
    count_commit(request, "transaction")
    return no_content()


def _changes(entries: list[TableChange], path: str) -> list[commits.TableChange]:
    return [_change(entry, f"{path}[{at}]") for at, entry in enumerate(entries)]


def _change(entry: TableChange, path: str) -> commits.TableChange:
    levels, name = identifier(entry.identifier)
    return commits.TableChange(
        levels,
        name,
        parse_table_requirements([] if entry.requirements is None else entry.requirements, f"{path}.requirements"),
        parse_table_updates(entry.updates, f"{path}.updates"),
    )
