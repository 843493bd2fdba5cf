"""The direction of imports, and what the server loads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_room_imports_only_what_it_may() -> None:
    """The contracts of pyproject.toml hold for every module, and every room has its place in them."""
    lint = Path(sys.executable).parent / "lint-imports"
    done = subprocess.run([lint, "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 broken" in done.stdout


def test_the_server_loads_only_what_its_settings_use() -> None:
    """Importing everything that serves costs none of them, no second driver, and nothing of other commands."""
    loaded = set(python("import sys, app.main, app.cli.serving; print(*sys.modules)").split())
    assert "app.main" in loaded
    assert loaded & {"pyarrow", "pandas", "numpy", "pyiceberg", "pytest", "hypothesis"} == set()
    assert loaded & {"alembic", "asyncpg", "obstore", "sqlalchemy.ext.asyncio"} == set()
    assert "sqlalchemy.dialects.postgresql" not in loaded
    assert loaded & {"httpx", "rich"} == set()


def test_importing_starts_nothing() -> None:
    """No thread is running after everything that serves has been imported."""
    assert python("import threading, app.main, app.cli; print(threading.active_count())").strip() == "1"
