"""The wheel: what is inside, and that it serves from an empty environment."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.server import Server

ROOT = Path(__file__).resolve().parent.parent

pytestmark = pytest.mark.timeout(400)


def run(*command: str | Path, cwd: Path) -> str:
    outside = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=cwd, env=outside, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(
        sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-deps",
        "--no-build-isolation", "--wheel-dir", folder, ROOT, cwd=folder,
    )  # fmt: skip
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment that holds the locked runtime and the wheel, nothing else."""
    folder = tmp_path_factory.mktemp("empty") / "venv"
    venv.create(folder, with_pip=True)
    pip = [folder / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    run(*pip, "--require-hashes", "-r", ROOT / "requirements" / "runtime.lock", cwd=folder)
    run(*pip, "--no-deps", "--no-index", wheel, cwd=folder)
    return folder / "bin"


@pytest.fixture(scope="module")
def server(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("package") / "home", program=[str(installed / "icekeel")]) as running:
        yield running


def test_the_wheel_holds_rooms_migrations_and_licence(wheel: Path) -> None:
    """Everything needed to serve and to migrate is inside; tests and caches are not."""
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"app/main.py", "app/cli/__init__.py", "icekeel_migrations/env.py"} <= names
    revisions = {path.name for path in (ROOT / "migrations" / "versions").glob("*.py")}
    assert revisions
    assert {f"icekeel_migrations/versions/{name}" for name in revisions} <= names
    assert any(re.fullmatch(r"icekeel-[^/]+\.dist-info/licenses/LICENSE", name) for name in names)
    assert not [name for name in names if name.startswith(("tests/", "bench/")) or "__pycache__" in name]


def test_the_wheel_names_its_version_and_dependencies(wheel: Path, installed: Path) -> None:
    """The program, the wheel and the package agree on the version, and pip finds every dependency in place."""
    version = run(installed / "icekeel", "--version", cwd=installed).split()[-1]
    assert wheel.name.startswith(f"icekeel-{version}-")
    assert run(installed / "python", "-c", "import app; print(app.__version__)", cwd=installed).strip() == version
    assert "No broken requirements" in run(installed / "python", "-m", "pip", "check", cwd=installed)


def test_an_installed_wheel_serves_from_an_empty_home(server: Server) -> None:
    """Outside any checkout: the database is created and migrated from the wheel, and the first requests succeed."""
    with server.client() as client:
        config = client.get("/v1/config")
        assert config.status_code == 200, config.text
        created = client.post("/v1/namespaces", json={"namespace": ["first"]})
        assert created.status_code == 200, created.text
        assert client.get("/v1/namespaces").json()["namespaces"] == [["first"]]
        assert client.get("/health/ready").status_code == 200


def test_data_survives_a_restart_of_the_installed_server(server: Server) -> None:
    """What was acknowledged is there after the process was killed and started again."""
    with server.client() as client:
        answer = client.post("/v1/namespaces", json={"namespace": ["kept"]})
        assert answer.status_code == 200, answer.text
    server.kill()
    server.start()
    assert ["kept"] in httpx.get(f"{server.url}/v1/namespaces").json()["namespaces"]
