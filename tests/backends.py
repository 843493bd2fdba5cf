"""What a server stands on beside SQLite and local files: PostgreSQL and an S3, as settings of `icekeel serve`."""

from __future__ import annotations

import atexit
import itertools
import json
import os
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from obstore.store import S3Store

from tests import postgres as databases
from tests import seaweedfs as stores
from tests.postgres import Postgres, postgres
from tests.seaweedfs import S3, seaweedfs

CANNOT_START = (databases.CannotStart, stores.CannotStart)
"""What `scaled` raises, with the reason, where there is no PostgreSQL or no S3 to run."""

VARIABLE = "TEST_BACKEND"
SCALED = "postgresql+s3"
BUCKET = "lake"
REGION = "us-east-1"

LOCAL_ONLY = pytest.mark.skipif(bool(os.environ.get(VARIABLE)), reason="speaks of the home's own database and files")
"""For tests of the embedded server: there is nothing of the kind on another backend."""

_numbers = itertools.count(1)


def options(s3: S3) -> dict[str, str]:
    """Storage options of a warehouse on the test's S3, keys included."""
    return {
        "s3.endpoint": s3.endpoint,
        "s3.region": REGION,
        "s3.path-style-access": "true",
        "s3.access-key-id": s3.access_key,
        "s3.secret-access-key": s3.secret_key,
    }


def bucket(s3: S3, name: str = BUCKET) -> S3Store:
    """A client of a bucket, which the server makes when the first object is written."""
    return S3Store(
        name,
        config={
            "endpoint": s3.endpoint,
            "region": REGION,
            "access_key_id": s3.access_key,
            "secret_access_key": s3.secret_key,
            "virtual_hosted_style_request": False,
        },
        client_options={"allow_http": True},
    )


@dataclass(frozen=True)
class Scaled:
    """A PostgreSQL and an S3 that servers share."""

    database: Postgres
    s3: S3

    def settings(self, folder: Path) -> dict[str, str]:
        """Settings of a server with a migrated database and a warehouse of its own.

        `folder` stays allowed, for what tests put on the local disk to be registered, and so does the bucket.
        """
        return {
            "DATABASE_URL": self.database.database(),
            "WAREHOUSE": f"s3://{BUCKET}/wh{os.getpid()}-{next(_numbers)}",
            "WAREHOUSE_OPTIONS": json.dumps(options(self.s3)),
            "ALLOWED_LOCATIONS": f"{folder},s3://{BUCKET}",
        }


_running: Scaled | None = None


def scaled() -> Scaled:
    """One PostgreSQL and one S3 for the whole test process. CannotStart, with the reason, where there is none."""
    global _running
    if _running is None:
        stack = ExitStack()
        atexit.register(stack.close)
        database = stack.enter_context(postgres())
        folder = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="icekeel-s3-", ignore_cleanup_errors=True))
        )
        _running = Scaled(database, stack.enter_context(seaweedfs(folder)))
    return _running


def chosen(folder: Path) -> dict[str, str]:
    """The settings that the variable TEST_BACKEND asks for; none unless it says `postgresql+s3`."""
    asked = os.environ.get(VARIABLE, "")
    if not asked:
        return {}
    if asked != SCALED:
        raise ValueError(f"{VARIABLE} must be {SCALED}, not {asked}")
    return scaled().settings(folder)
