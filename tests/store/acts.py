"""Short spellings of write operations, with one warehouse and one clock."""

from __future__ import annotations

from app.ports import (
    AddPurgeJob,
    Columns,
    CreateNamespace,
    CreateTabular,
    DropNamespace,
    DropTabular,
    KeyRecord,
    Kind,
    Levels,
    PutWarehouse,
    RecordKey,
    RenameTabular,
    Store,
    SwapTabular,
    Tabular,
    Warehouse,
)

HOUSE = "default"
NOW = 1_700_000_000_000
COLUMNS = Columns(format_version=2, last_column_id=3, current_schema_id=0, field_count=3)


def house(name: str = HOUSE) -> PutWarehouse:
    return PutWarehouse(warehouse=Warehouse(name=name, location=f"/{name}"), expected_version=None, now_ms=NOW)


def space(*levels: str, warehouse: str = HOUSE, **properties: str) -> CreateNamespace:
    return CreateNamespace(warehouse=warehouse, levels=levels, properties=properties, now_ms=NOW)


def no_space(*levels: str) -> DropNamespace:
    return DropNamespace(warehouse=HOUSE, levels=levels)


def make(
    name: str,
    *,
    namespace: Levels = ("n",),
    kind: Kind = "table",
    uuid: str | None = None,
    location: str | None = None,
    exclusive: bool = True,
    warehouse: str = HOUSE,
    roots: tuple[str, ...] = (),
    registered: bool = False,
    checksum: str | None = None,
) -> CreateTabular:
    return CreateTabular(
        warehouse=warehouse,
        namespace=namespace,
        name=name,
        kind=kind,
        uuid=uuid or f"uuid of {_hex(name)} in {'/'.join(namespace)}",
        location=location or f"/{warehouse}/{len(namespace)}-{'-'.join(namespace)}/{_hex(name)}",
        metadata_location=f"{name}-0",
        columns=COLUMNS,
        exclusive_location=exclusive,
        now_ms=NOW,
        roots=roots,
        registered=registered,
        checksum=checksum,
    )


def _hex(name: str) -> str:
    return name.encode(errors="surrogatepass").hex()


def swap(
    table: Tabular,
    to: str,
    *,
    expected: str | None = None,
    location: str | None = None,
    uuid: str | None = None,
    columns: Columns = COLUMNS,
    exclusive: bool = True,
    now_ms: int = NOW,
    roots: tuple[str, ...] | None = None,
    keeps_roots: bool = False,
    registered: bool = False,
    checksum: str | None = None,
) -> SwapTabular:
    return SwapTabular(
        tabular_id=table.tabular_id,
        expected=expected or table.metadata_location,
        metadata_location=to,
        uuid=uuid or table.uuid,
        location=location or table.location,
        columns=columns,
        exclusive_location=exclusive,
        now_ms=now_ms,
        roots=roots,
        keeps_roots=keeps_roots,
        registered=registered,
        checksum=checksum,
    )


def purge_job(name: str, *, at: str) -> AddPurgeJob:
    return AddPurgeJob(
        warehouse=HOUSE, table_uuid=f"u{name}", name=f"n.{name}", location=at, metadata_location=f"{at}/m", now_ms=NOW,
    )  # fmt: skip


def drop(table: Tabular, *, expected: str | None = None) -> DropTabular:
    return DropTabular(tabular_id=table.tabular_id, expected=expected or table.metadata_location)


def rename(
    source: str | tuple[Levels, str], target: str | tuple[Levels, str], *, kind: Kind = "table"
) -> RenameTabular:
    return RenameTabular(
        warehouse=HOUSE,
        kind=kind,
        source=(("n",), source) if isinstance(source, str) else source,
        target=(("n",), target) if isinstance(target, str) else target,
        now_ms=NOW + 1,
    )


def key(text: str, *, at: int = NOW, lasts: int = 1000, fingerprint: str = "f", warehouse: str = HOUSE) -> RecordKey:
    return RecordKey(record=KeyRecord(
        key=text, warehouse=warehouse, fingerprint=fingerprint, kind="done", outcome=b'{"x":1}',
        created_at_ms=at, expires_at_ms=at + lasts,
    ))  # fmt: skip


async def get(store: Store, name: str, namespace: Levels = ("n",), warehouse: str = HOUSE) -> Tabular:
    found = await store.tabular(warehouse, namespace, name)
    assert found is not None, name
    return found
