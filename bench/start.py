"""How long `icekeel serve` takes until its first 200, on an empty home and again on the same, and what it occupies.

    python bench/start.py [ROUNDS]

CPU seconds tell more than wall seconds on a machine that is busy with other things. Without bytecode on disk
(PYTHONDONTWRITEBYTECODE, packages installed without it) Python compiles every module first, which doubles them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


class Start(NamedTuple):
    """Wall and CPU seconds to the first 200, resident megabytes after it."""

    wall: float
    cpu: float
    resident: float

    def __str__(self) -> str:
        return f"200 after {self.wall:.2f} s, {self.cpu:.2f} s of CPU, {self.resident:.0f} MB resident"


def measure(home: Path) -> Start:
    opener = build_opener(ProxyHandler({}))
    output = home.with_name("output")
    command = [sys.executable, "-m", "app.cli", "serve", "--home", str(home), "--port", "0"]
    with output.open("wb") as sink:
        began = time.monotonic()
        process = subprocess.Popen(command, stdout=sink, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    try:
        while process.poll() is None:
            url = next((line.split()[1] for line in output.read_text().splitlines() if " url " in line), None)
            try:
                if url and opener.open(f"{url}/v1/config", timeout=5).status == 200:
                    break
            except (URLError, OSError):
                pass
            time.sleep(0.005)
        else:
            sys.exit("the server did not start")
        wall = time.monotonic() - began
        fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        cpu = (int(fields[11]) + int(fields[12])) / TICKS
        resident = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * PAGE / 1e6
    finally:
        process.terminate()
        process.wait()
    return Start(wall, cpu, resident)


def main() -> None:
    first: list[Start] = []
    later: list[Start] = []
    for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 5):
        with tempfile.TemporaryDirectory() as folder:
            first.append(measure(Path(folder) / "home"))
            later.append(measure(Path(folder) / "home"))
        print(f"first start: {first[-1]}\nlater start: {later[-1]}")
    for name, starts in (("first", first), ("later", later)):
        print(f"best {name}:  {Start(*(min(column) for column in zip(*starts, strict=True)))}")


if __name__ == "__main__":
    main()
