"""How long `icekeel serve` takes on an empty home until its first 200, and what it then occupies.

    python bench/start.py [ROUNDS]

CPU seconds tell more than wall seconds on a machine that is busy with other things.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


def measure() -> tuple[float, float, float]:
    """Wall seconds and CPU seconds to the first 200, resident megabytes after it."""
    opener = build_opener(ProxyHandler({}))
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "output"
        command = [sys.executable, "-m", "app.cli", "serve", "--home", f"{folder}/home", "--port", "0"]
        with output.open("wb") as sink:
            began = time.monotonic()
            process = subprocess.Popen(command, stdout=sink, env={**os.environ, "PYTHONUNBUFFERED": "1"})
        try:
            while True:
                url = next((line.split()[1] for line in output.read_text().splitlines() if " url " in line), None)
                try:
                    if url and opener.open(f"{url}/v1/config", timeout=5).status == 200:
                        break
                except (URLError, OSError):
                    pass
                time.sleep(0.005)
            wall = time.monotonic() - began
            fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
            cpu = (int(fields[11]) + int(fields[12])) / TICKS
            resident = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * PAGE / 1e6
        finally:
            process.terminate()
            process.wait()
    return wall, cpu, resident


def main() -> None:
    rounds = [measure() for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 5)]
    for wall, cpu, resident in rounds:
        print(f"first 200 after {wall:.2f} s, {cpu:.2f} s of CPU, {resident:.0f} MB resident")
    wall, cpu, resident = (min(column) for column in zip(*rounds, strict=True))
    print(f"best            {wall:.2f} s, {cpu:.2f} s of CPU, {resident:.0f} MB resident")


if __name__ == "__main__":
    main()
