"""The product behind PgBouncer with transaction pooling: web and workers share a few connections to PostgreSQL."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.parts import missing
from tests.product import Product

pytestmark = [pytest.mark.slow, pytest.mark.postgres, pytest.mark.long, pytest.mark.timeout(900)]
CONNECTIONS = 8


@contextmanager
def pooled(url: str) -> Iterator[str]:
    """Start a PgBouncer before the database server of `url`; yield the URL of the same database through it."""
    program = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
    if not Path(program).exists():
        missing("pgbouncer is not installed")
    parts = urlsplit(url)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    password = f" password={parts.password}" if parts.password else ""
    settings = (
        f"[databases]\n* = host={parts.hostname} port={parts.port or 5432} user={parts.username}{password}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
        f"pool_mode = transaction\ndefault_pool_size = {CONNECTIONS}\nmax_client_conn = 500\n"
    )
    # It refuses to be root, and must be able to read its file.
    folder = Path(tempfile.mkdtemp(prefix="winnow-pgbouncer-"))
    folder.chmod(0o755)
    file = folder / "pgbouncer.ini"
    file.write_text(settings)
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.getuid() == 0 else []
    process = subprocess.Popen([*user, program, "--quiet", str(file)])
    try:
        through = parts._replace(netloc=f"{parts.username}:x@127.0.0.1:{port}").geturl()
        until = time.monotonic() + 30
        while True:
            try:
                psycopg.connect(through).close()
                break
            except psycopg.OperationalError:
                assert process.poll() is None and time.monotonic() < until, "pgbouncer did not start"
                time.sleep(0.1)
        yield through
    finally:
        process.terminate()
        process.wait(20)
        shutil.rmtree(folder)


def test_the_demo_is_made_and_read_through_a_pool(tmp_path_factory: pytest.TempPathFactory) -> None:
    product = Product(tmp_path_factory.mktemp("pooled"))
    direct = product.environment["DATABASE_URL"]
    name = urlsplit(direct).path.removeprefix("/")
    with pooled(direct) as through:
        product.environment |= {"DATABASE_URL": through, "DATABASE_POOLED": "1"}
        try:
            product.start()
            product.wait_for_line("Winnow is ready")
            runs = product.rows("/projects/demo/runs")
            assert runs and all(run["state"] == "succeeded" for run in runs), [run["error"] for run in runs]
            assert product.get("/projects/demo/stats")["funnel"]["duels"] > 0
            assert product.api.post("/projects/demo/queue/next", json={}).status_code == 200
            with psycopg.connect(direct) as connection:
                used = connection.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = %s", [name]).fetchone()
            assert used is not None and used[0] <= CONNECTIONS + 1
        finally:
            product.stop()
