"""From the start of `serve` to its first page, and the memory of all its processes at rest.

Three starts on an existing folder and one on a new one. Memory is the proportional set size (PSS): what processes
share counts once.
"""

import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

EXISTING, NEW, MEMORY = 2.0, 8.0, 350
SETTLED = 12.0


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="winnow-bench-start-") as folder:
        new, _ = start(folder)
        starts = [start(folder) for _ in range(3)]
    existing, rest = min(seconds for seconds, _ in starts), max(size for _, size in starts)
    print(f"first page on a new folder        {new:5.1f} s   (asked {NEW:.0f} s)")
    print(f"first page on an existing folder  {existing:5.1f} s   (asked {EXISTING:.0f} s; the best of three)")
    print(f"memory of all processes at rest   {rest:5.0f} MB  (asked {MEMORY} MB)")
    return 0 if new <= NEW and existing <= EXISTING and rest <= MEMORY else 1


def start(folder: str) -> tuple[float, float]:
    """Start the site and stop it; return the seconds to its first page, and its memory at rest in MB."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    env = {**os.environ, "WINNOW_DATA": folder, "PORT": str(port), "BIND": "127.0.0.1"}
    began = time.monotonic()
    with (Path(folder) / "serve.log").open("w") as log:
        process = subprocess.Popen([sys.executable, "manage.py", "serve"], env=env, stdout=log, stderr=log)
    try:
        while not answers(f"http://127.0.0.1:{port}/login/"):
            if process.poll() is not None or time.monotonic() > began + 120:
                sys.exit((Path(folder) / "serve.log").read_text())
            time.sleep(0.02)
        seconds = time.monotonic() - began
        time.sleep(SETTLED)
        return seconds, sum(map(memory, [process.pid, *descendants(process.pid)]))
    finally:
        process.terminate()
        process.wait(30)


def descendants(pid: int) -> Iterator[int]:
    for child in map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
        yield child
        yield from descendants(child)


def memory(pid: int) -> float:
    """Return the proportional set size in MB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5) as page:  # noqa: S310 - our own address
            return bool(page.status == 200)
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(main())
