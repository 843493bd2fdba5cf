"""Our server on what it scales out over: PostgreSQL, and PostgreSQL with an S3, both started here from the machine."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from contextlib import ExitStack

from bench import targets
from bench.targets import Started, scratch
from tests import postgres as databases
from tests import seaweedfs as objects

NAMES = {"postgresql": "icekeel-pg", "postgresql+s3": "icekeel-pg-s3"}
"""What a target is called, by the store that is asked for."""

_NOTE = "PostgreSQL (fsync on) beside it, whose own CPU and memory are not counted"
_NOTE_S3 = f"{_NOTE}; metadata in an S3 beside it (SeaweedFS), not counted either"


class Unavailable(Exception):
    """The store cannot run here; the message says why."""


def icekeel(store: str, arguments: Sequence[str] = ()) -> Started:
    """`icekeel serve` on a database (and a bucket) of its own. Unavailable."""
    name = NAMES[store]
    with ExitStack() as beside:
        try:
            settings = {"DATABASE_URL": beside.enter_context(databases.postgres(durable=True)).database()}
            if store == "postgresql+s3":
                folder = scratch(f"{name}-objects")
                beside.callback(shutil.rmtree, folder, ignore_errors=True)
                settings |= _bucket(beside.enter_context(objects.seaweedfs(folder / "s3")))
            target = targets.icekeel(name, settings, arguments)
        except (databases.CannotStart, objects.CannotStart, RuntimeError) as fault:
            raise Unavailable(str(fault)) from fault
        target.note = _NOTE_S3 if store == "postgresql+s3" else _NOTE
        target.beside = beside.pop_all()
    return target


def _bucket(s3: objects.S3) -> dict[str, str]:
    options = {
        "s3.endpoint": s3.endpoint,
        "s3.region": "us-east-1",
        "s3.path-style-access": "true",
        "s3.access-key-id": s3.access_key,
        "s3.secret-access-key": s3.secret_key,
    }
    return {"WAREHOUSE": "s3://bench/warehouse", "WAREHOUSE_OPTIONS": json.dumps(options)}
