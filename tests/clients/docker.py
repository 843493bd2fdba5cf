"""A Docker engine: the one that is running, or one that the tests start for themselves and take away again."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.clients.maven import ENGINES

CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")


class Docker:
    """The command-line client, bound to one engine."""

    def __init__(
        self, host: str | None, daemon: subprocess.Popen[bytes] | None = None, work: Path | None = None
    ) -> None:
        self.work = work
        self.environment = {**os.environ, **({"DOCKER_HOST": host} if host else {})}
        self.daemon = daemon
        self.own = daemon is not None

    def run(
        self,
        *words: str,
        timeout: float = 600,
        check: bool = True,
        cwd: Path | None = None,
        program: str = "docker",
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [program, *words],
            env={**self.environment, **(environment or {})},
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if check and done.returncode != 0:
            raise AssertionError(f"{program} {' '.join(words)}: {(done.stdout + done.stderr)[-3000:]}")
        return done

    def answers(self) -> bool:
        return self.run("info", check=False, timeout=30).returncode == 0

    def close(self) -> None:
        """Stop an engine of our own and remove the bridges that it made."""
        if self.daemon is None:
            return
        bridges = [
            "docker0",
            *(
                f"br-{line.split()[0]}"
                for line in self.run(
                    "network",
                    "ls",
                    "--filter",
                    "driver=bridge",
                    "--filter",
                    "type=custom",
                    "--format",
                    "{{.ID}}",
                    check=False,
                ).stdout.splitlines()
            ),
        ]
        self.daemon.terminate()
        try:
            self.daemon.wait(60)
        except subprocess.TimeoutExpired:
            self.daemon.kill()
            self.daemon.wait()
        for bridge in bridges:
            subprocess.run(["ip", "link", "delete", bridge], capture_output=True, check=False)
        if self.work is not None:
            _unmount_below(self.work)
            shutil.rmtree(self.work, ignore_errors=True)


def _unmount_below(folder: Path) -> None:
    """An engine leaves the mount of its network namespace behind, which would keep the folder from being removed."""
    places = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for place in sorted((p for p in places if p.startswith(f"{folder}/")), reverse=True):
        subprocess.run(["umount", place], capture_output=True, check=False)


def engine(work: Path) -> Docker:
    """A Docker engine that answers; skips with the reason where none can be had."""
    if shutil.which("docker") is None:
        pytest.skip("no docker client")
    running = Docker(None)
    if running.answers():
        return running
    if shutil.which("dockerd") is None or os.geteuid() != 0:
        pytest.skip("no Docker engine is running, and none can be started (dockerd, root)")
    host = f"unix://{work}/d.sock"
    with (work / "dockerd.log").open("wb") as log:
        # Without firewall rules of its own the engine leaves the machine's network as it was.
        daemon = subprocess.Popen(
            [
                "dockerd",
                "--data-root",
                f"{work}/root",
                "--exec-root",
                f"{work}/exec",
                "--pidfile",
                f"{work}/pid",
                "-H",
                host,
                "--iptables=false",
                "--ip6tables=false",
                "--ip-masq=false",
                "--ip-forward=false",
            ],
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )
    own = Docker(host, daemon, work)
    deadline = time.monotonic() + 60
    while not own.answers():
        if daemon.poll() is not None or time.monotonic() > deadline:
            own.close()
            pytest.skip(f"dockerd does not start here: {(work / 'dockerd.log').read_text(errors='replace')[-400:]}")
        time.sleep(0.3)
    return own


def base_image(docker: Docker, work: Path) -> str:
    """An image with Python to build on: the Dockerfile's own where it is at hand, else Debian from its packages."""
    default = "python:3.12-slim"
    if docker.run("image", "inspect", default, check=False).returncode == 0:
        return default
    if not docker.own:
        return default
    archive = ENGINES / "docker" / "base.tar"
    if not archive.exists():
        _debian(archive, work)
    certificates = ["--change", f"ENV PIP_CERT={CERTIFICATES} SSL_CERT_FILE={CERTIFICATES}"]
    docker.run("import", *certificates, str(archive), "icekeel-base")
    return "icekeel-base"


def _debian(archive: Path, work: Path) -> None:
    """A minimal Debian with Python, from the mirror that this machine's package manager uses."""
    if shutil.which("debootstrap") is None or shutil.which("apt-get") is None:
        pytest.skip("no base image is at hand, and debootstrap is not installed")
    codename = next(
        (
            line.partition("=")[2].strip()
            for line in Path("/etc/os-release").read_text().splitlines()
            if line.startswith("VERSION_CODENAME=")
        ),
        "",
    )
    targets = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(SITE) $(RELEASE)", "Created-By: Packages"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.splitlines()
    mirror = next((line.split()[0] for line in targets if line.split()[1:] == [codename]), None)
    if mirror is None:
        pytest.skip("no base image is at hand, and this machine's package manager names no mirror")
    tree = work / "debian"
    made = subprocess.run(
        [
            "debootstrap",
            "--variant=minbase",
            "--include=python3,python3-venv,ca-certificates",
            codename,
            str(tree),
            mirror,
        ],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    if made.returncode != 0:
        pytest.skip(f"debootstrap could not make a base image: {made.stdout[-400:]}")
    if CERTIFICATES.exists():
        shutil.copyfile(CERTIFICATES, tree / CERTIFICATES.relative_to("/"))
    shutil.rmtree(tree / "var/cache/apt", ignore_errors=True)
    archive.parent.mkdir(parents=True, exist_ok=True)
    part = archive.with_suffix(".part")
    subprocess.run(["tar", "-C", str(tree), "--one-file-system", "-cf", str(part), "."], check=True)
    part.rename(archive)
    shutil.rmtree(tree, ignore_errors=True)
