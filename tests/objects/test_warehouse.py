"""Choosing the storage of a warehouse."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from app.errors import BadRequest, Forbidden
from app.objects import WarehouseObjects
from app.ports import Warehouse


def test_objects_are_kept_until_the_warehouse_changes() -> None:
    """Equal records share clients; a changed option or location opens new ones."""
    stores = WarehouseObjects()
    record = Warehouse(name="a", location="s3://b/wh", storage={"s3.region": "us-east-1"})
    first = stores.of(record)
    assert stores.of(msgspec.structs.replace(record)) is first
    changed = msgspec.structs.replace(record, storage={"s3.region": "eu-west-1"}, version=2)
    assert stores.of(changed) is not first
    asyncio.run(stores.close())


@pytest.mark.parametrize(
    ("location", "local"), [("/data/wh", True), ("file:///data/wh", True), ("s3://b/wh", False), ("gs://b/wh", False)]
)
def test_only_disks_are_local(location: str, local: bool) -> None:
    """`local` says that a stat before every read is cheap."""
    stores = WarehouseObjects()
    assert stores.of(Warehouse(name="a", location=location)).local is local
    asyncio.run(stores.close())


def test_allowed_locations_open_other_places(tmp_path: Path) -> None:
    """Local folders that the warehouse or the server allows may be used beside the warehouse's own; others not."""
    folders = {name: tmp_path / name for name in ("wh", "of-warehouse", "of-server", "other")}
    stores = WarehouseObjects([f"file://{folders['of-server']}"])
    record = Warehouse(name="a", location=str(folders["wh"]), allowed_locations=(str(folders["of-warehouse"]),))
    objects = stores.of(record)
    asyncio.run(objects.establish(record.location))
    for name in ("wh", "of-warehouse", "of-server"):
        asyncio.run(objects.create(f"{folders[name]}/t/a", name.encode()))
        assert (folders[name] / "t" / "a").read_text() == name
    with pytest.raises(Forbidden):
        asyncio.run(objects.create(f"{folders['other']}/t/a", b"x"))
    assert not folders["other"].exists()
    asyncio.run(stores.close())


def test_a_cloud_warehouse_reaches_no_disk(tmp_path: Path) -> None:
    """A file: location in the metadata of a table on S3 does not make the server open local files."""
    stores = WarehouseObjects()
    (tmp_path / "secret").write_text("x")
    objects = stores.of(Warehouse(name="a", location="s3://b/wh"))
    with pytest.raises(Forbidden):
        asyncio.run(objects.read(f"file://{tmp_path}/secret"))
    asyncio.run(stores.close())


def test_odd_options_are_refused_before_use() -> None:
    """`of` fails at once, so that a wrong warehouse is never stored."""
    stores = WarehouseObjects()
    with pytest.raises(BadRequest, match=r"s3\.role-arn"):
        stores.of(Warehouse(name="a", location="s3://b/wh", storage={"s3.role-arn": "arn"}))
    asyncio.run(stores.close())


def test_closing_waits_for_files_being_written(tmp_path: Path) -> None:
    """A create that was under way when the server stops is finished, not torn."""
    stores = WarehouseObjects()
    objects = stores.of(Warehouse(name="a", location=str(tmp_path)))

    async def stop_while_writing() -> None:
        writing = asyncio.create_task(objects.create(f"{tmp_path}/t/a", b"x" * (8 << 20)))
        await asyncio.sleep(0)
        await stores.close()
        await writing

    asyncio.run(stop_while_writing())
    assert (tmp_path / "t" / "a").stat().st_size == 8 << 20
