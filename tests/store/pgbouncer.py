"""PgBouncer in transaction mode in front of a test's PostgreSQL, where the machine has it."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.postgres import CannotStart, Postgres, free_port


@contextmanager
def pgbouncer(server: Postgres) -> Iterator[int]:
    """Its port. Two server connections for everybody, so that statements of one client meet different ones."""
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if program is None:
        raise CannotStart("no PgBouncer: pgbouncer is not on the PATH")
    folder = Path(tempfile.mkdtemp(prefix="icekeel-pgbouncer-"))
    port = free_port()
    (folder / "users.txt").write_text('"postgres" ""\n')
    (folder / "pgbouncer.ini").write_text(
        f"[databases]\n* = host=127.0.0.1 port={server.port} user=postgres\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
        "auth_file = users.txt\npool_mode = transaction\ndefault_pool_size = 2\n"
    )
    folder.chmod(0o755)
    log = (folder / "log").open("wb")
    process = subprocess.Popen(
        [program, "pgbouncer.ini"], cwd=folder, stdout=log, stderr=log, start_new_session=True, **server.account_of()
    )
    log.close()
    try:
        deadline = time.monotonic() + 15
        while "process up" not in (folder / "log").read_text():
            if process.poll() is not None or time.monotonic() > deadline:
                raise CannotStart(f"PgBouncer did not come up: {(folder / 'log').read_text()[-400:]}")
            time.sleep(0.05)
        yield port
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)
