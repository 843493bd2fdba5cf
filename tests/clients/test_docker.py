"""The container image and the compose file, built and run for real."""

from __future__ import annotations

import json
import shutil
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

from tests.clients.docker import Docker, base_image, engine
from tests.server import ROOT

pytestmark = [pytest.mark.engines, pytest.mark.timeout(1500)]
TOKEN = "a-token-for-this-test-only"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass(frozen=True)
class Built:
    """The image and the engine that holds it."""

    docker: Docker
    image: str
    base: str


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Built]:
    work = tmp_path_factory.mktemp("docker")
    docker = engine(work)
    try:
        base = base_image(docker, work)
        docker.run(
            "build",
            "--network",
            "host",
            "--build-arg",
            f"BASE_IMAGE={base}",
            "-t",
            "icekeel-test",
            ".",
            cwd=ROOT,
            timeout=1200,
        )
        yield Built(docker, "icekeel-test", base)
        docker.run("rmi", "--force", "icekeel-test", check=False)
    finally:
        docker.close()


@dataclass(frozen=True)
class Container:
    docker: Docker
    name: str
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def logs(self) -> str:
        done = self.docker.run("logs", self.name, check=False)
        return done.stdout + done.stderr

    def ready(self, seconds: float = 60.0) -> Container:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                if httpx.get(f"{self.url}/health/ready", timeout=2).status_code == 200:
                    return self
            except httpx.TransportError:
                pass
            time.sleep(0.1)
        raise AssertionError(f"not ready: {self.logs()[-2000:]}")

    def healthy(self, seconds: float = 60.0) -> str:
        deadline = time.monotonic() + seconds
        while True:
            state = self.docker.run("inspect", "--format", "{{.State.Health.Status}}", self.name).stdout.strip()
            if state != "starting" or time.monotonic() > deadline:
                return state
            time.sleep(0.5)


def start(built: Built, name: str, volume: str, *words: str) -> Container:
    port = free_port()
    built.docker.run(
        "run",
        "--detach",
        "--name",
        name,
        "--read-only",
        "--tmpfs",
        "/tmp",
        "--cap-drop",
        "ALL",
        "--security-opt",
        "no-new-privileges",
        "--publish",
        f"127.0.0.1:{port}:8181",
        "--volume",
        f"{volume}:/data",
        *words,
        built.image,
    )
    return Container(built.docker, name, port)


@pytest.fixture
def container(built: Built) -> Iterator[Container]:
    one = start(built, "icekeel-one", "icekeel-vol", "--env", f"ICEKEEL_TOKEN={TOKEN}")
    try:
        yield one.ready()
    finally:
        built.docker.run("rm", "--force", "--volumes", "icekeel-one", check=False)
        built.docker.run("volume", "rm", "--force", "icekeel-vol", check=False)


def test_one_process_without_root(container: Container) -> None:
    """The container runs one process, not as root, on a read-only file system, and turns healthy."""
    top = container.docker.run("top", container.name, "-o", "uid,pid,args").stdout.splitlines()[1:]
    assert len(top) == 1, top
    assert top[0].split()[0] == "10001"
    assert container.healthy() == "healthy"


def test_a_client_works_and_data_outlive_the_container(built: Built, container: Container) -> None:
    """PyIceberg creates and evolves a table with the token; a new container on the same volume serves it."""
    assert httpx.get(f"{container.url}/v1/config").status_code == 401
    catalog = load_catalog("c", type="rest", uri=container.url, token=TOKEN)
    catalog.create_namespace("ns")
    table = catalog.create_table("ns.t", Schema(NestedField(1, "id", LongType(), required=False)))
    with table.update_schema() as update:
        update.add_column("v", StringType())
    built.docker.run("stop", "--time", "20", container.name)
    state = json.loads(built.docker.run("inspect", container.name).stdout)[0]["State"]
    assert state["ExitCode"] == 0, container.logs()[-2000:]
    again = start(built, "icekeel-two", "icekeel-vol", "--env", f"ICEKEEL_TOKEN={TOKEN}")
    try:
        fresh = load_catalog("c", type="rest", uri=again.ready().url, token=TOKEN)
        assert fresh.load_table("ns.t").metadata == table.metadata
    finally:
        built.docker.run("rm", "--force", "icekeel-two", check=False)


def test_no_token_no_start(built: Built) -> None:
    """The image listens on every address, so without a token it ends with one clear line."""
    done = built.docker.run("run", "--rm", built.image, check=False, timeout=60)
    said = (done.stdout + done.stderr).strip()
    assert done.returncode != 0
    assert "ICEKEEL_TOKEN" in said or "TOKEN" in said
    assert "Traceback" not in said


def test_the_image_is_small(built: Built) -> None:
    """What we add to the base stays below 140 MB (dependencies are 115), and no build tool or source tree is in it."""
    sizes = [
        int(built.docker.run("image", "inspect", "--format", "{{.Size}}", name).stdout)
        for name in (built.image, built.base)
    ]
    assert sizes[0] - sizes[1] < 140_000_000, sizes
    listing = built.docker.run(
        "run",
        "--rm",
        "--entrypoint",
        "sh",
        built.image,
        "-c",
        "ls / /opt /opt/icekeel/bin; test ! -e /src && echo clean",
    ).stdout
    assert "clean" in listing and "pip" not in listing.split()


def test_compose(built: Built, tmp_path: Path) -> None:
    """The compose file starts the service on loopback with a token and a named volume, and turns healthy."""
    if shutil.which("docker-compose") is not None:
        program, words = "docker-compose", []
    elif built.docker.run("compose", "version", check=False).returncode == 0:
        program, words = "docker", ["compose"]
    else:
        pytest.skip("no compose")
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", 8181)) == 0:
            pytest.skip("port 8181, which the compose file publishes, is taken")
    override = tmp_path / "override.yml"
    override.write_text(f"services:\n  icekeel:\n    image: {built.image}\n")
    words += ["-p", "icekeeltest", "-f", str(ROOT / "docker-compose.yml"), "-f", str(override)]

    def compose(*more: str, check: bool = True, **environment: str) -> str:
        done = built.docker.run(*words, *more, program=program, check=check, environment=environment)
        return done.stdout + done.stderr

    assert "ICEKEEL_TOKEN" in compose("config", check=False, ICEKEEL_TOKEN="")
    try:
        compose("up", "--detach", "--no-build", ICEKEEL_TOKEN=TOKEN)
        name = compose("ps", "--quiet", ICEKEEL_TOKEN=TOKEN).split()[0]
        service = Container(built.docker, name, 8181).ready()
        assert service.healthy() == "healthy"
        assert httpx.get(f"{service.url}/v1/config").status_code == 401
        answer = httpx.get(f"{service.url}/v1/config", headers={"Authorization": f"Bearer {TOKEN}"})
        assert answer.status_code == 200
        bindings = json.loads(built.docker.run("inspect", name).stdout)[0]["HostConfig"]["PortBindings"]
        assert {b["HostIp"] for each in bindings.values() for b in each} == {"127.0.0.1"}
    finally:
        compose("down", "--volumes", check=False, ICEKEEL_TOKEN=TOKEN)
