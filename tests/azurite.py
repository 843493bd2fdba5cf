"""Azure Blob Storage for the engine tests: Microsoft's own emulator, installed with npm into `.engines/`."""

from __future__ import annotations

import base64
import hmac
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path

from tests.server import ROOT

VERSION = "3.35.0"
"""The newest release that runs on Node 20."""

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The emulator's own, published account; it opens nothing else."""


class CannotStart(Exception):
    """Why there is no Azure here; tests skip with this text."""


@dataclass(frozen=True)
class Azure:
    endpoint: str
    account: str = ACCOUNT
    key: str = KEY

    def create_container(self, name: str) -> None:
        """Containers are not made by writing into them; the shared-key signature is the protocol's."""
        date = formatdate(usegmt=True)
        text = "\n".join(
            ["PUT", *[""] * 11, f"x-ms-date:{date}", "x-ms-version:2021-08-06",
             f"/{self.account}/{self.account}/{name}", "restype:container"]
        )  # fmt: skip
        signature = base64.b64encode(hmac.digest(base64.b64decode(self.key), text.encode(), "sha256")).decode()
        request = urllib.request.Request(
            f"{self.endpoint}/{name}?restype=container",
            method="PUT",
            headers={
                "x-ms-date": date,
                "x-ms-version": "2021-08-06",
                "Authorization": f"SharedKey {self.account}:{signature}",
            },
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            assert answer.status == 201


def _program() -> Path:
    folder = ROOT / ".engines" / f"azurite-{VERSION}"
    program = folder / "node_modules" / ".bin" / "azurite-blob"
    if not program.exists():
        if shutil.which("npm") is None:
            raise CannotStart("npm is not installed")
        folder.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            ["npm", "install", "--no-audit", "--no-fund", "--silent", f"azurite@{VERSION}"],
            cwd=folder, capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise CannotStart(f"npm could not install azurite: {(done.stdout + done.stderr)[-400:]}")
    return program


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


def _answers(endpoint: str) -> bool:
    try:
        with urllib.request.urlopen(endpoint, timeout=2):
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False


@contextmanager
def azurite(folder: Path) -> Iterator[Azure]:
    """Run the emulator while the context lasts. CannotStart when it cannot be had or does not come up in 40 s."""
    program = _program()
    port = _free_port()
    with (folder / "azurite.log").open("wb") as log:
        process = subprocess.Popen(
            [
                program, "--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", folder,
                "--skipApiVersionCheck", "--disableTelemetry", "--silent",
            ],
            stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        endpoint = f"http://127.0.0.1:{port}"
        try:
            deadline = time.monotonic() + 40
            while not _answers(endpoint):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise CannotStart("azurite did not come up: " + (folder / "azurite.log").read_text()[-400:])
                time.sleep(0.2)
            yield Azure(f"{endpoint}/{ACCOUNT}")
        finally:
            process.kill()
            process.wait()
