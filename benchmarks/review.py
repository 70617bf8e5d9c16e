"""Reviewers at the speed of a script: eight clients take and decide in a loop over HTTP.

Asked for: 150 pairs (take and decide) a second on two cores, p95 of each under 100 ms at 1,000,000 samples. The ideal
in the same run is the bare conditional update of one row that a decision cannot do without. Afterwards the log is
compared with the clients' responses.

    python -m benchmarks.review [--samples 5000 1000000] [--seconds 15] [--clients 8] [--empty] [--reading 0]
"""

import argparse
import http.client
import json
import os
import random
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Figures:
    """`p95` in milliseconds; `ideal` are bare conditional updates a second in the same database.

    `cpu_ms` is the server's processor time for a pair: on a busy machine it is a better figure than the rate.
    """

    samples: int
    clients: int
    pairs_per_second: float
    take_p95: float
    decide_p95: float
    cpu_ms: float
    ideal: float
    decided: int
    twice: int
    wrong: tuple[str, ...]


def measure(
    samples: int, *, clients: int = 8, seconds: float = 15.0, empty: bool = False, reading: float = 0.0
) -> Figures:
    """Fills a fresh database, serves and drives it: SQLite, or the PostgreSQL of `BENCH_DATABASE_URL`, emptied.

    `empty`: until no sample is left, however long it takes. `reading`: the mean seconds between the answer to taking a
    sample and the decision, spread evenly between half and one and a half of it; 0 is a script that never waits.
    """
    with tempfile.TemporaryDirectory(prefix="winnow-bench-") as data:
        environment = {**os.environ, "WINNOW_DATA": data, "PORT": str(free_port()), "LOG_LEVEL": "ERROR"}
        if url := os.environ.get("BENCH_DATABASE_URL"):
            environment["DATABASE_URL"] = url
        environment.setdefault("API_REQUESTS_PER_MINUTE", "10000000")
        given = rows(environment, "fill", str(samples), str(clients))
        before = _children_cpu()
        with server(environment):
            takes, decides, ids, spent = _drive(
                int(environment["PORT"]), given["tokens"], None if empty else seconds, reading
            )
        answered = Path(data, "answered.json")
        answered.write_text(json.dumps(ids))
        audit = rows(environment, "audit", str(answered))
        return Figures(
            samples=samples,
            clients=clients,
            pairs_per_second=len(ids) / spent,
            take_p95=_p95(takes),
            decide_p95=_p95(decides),
            cpu_ms=(_children_cpu() - before) / max(len(ids), 1) * 1000,
            ideal=given["ideal"],
            decided=len(ids),
            twice=len(ids) - len({sample for _, sample in ids}),
            wrong=tuple(audit["wrong"]),
        )


def rows(environment: dict[str, str], *words: str) -> dict[str, Any]:
    """Run `benchmarks.review_rows` and return the JSON that it prints."""
    command = [sys.executable, "-m", "benchmarks.review_rows", *words]
    done = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@contextmanager
def server(environment: dict[str, str]) -> Iterator[None]:
    """gunicorn as the demo and the image start it: sizes from `gunicorn.conf.py`."""
    gunicorn = str(Path(sys.executable).parent / "gunicorn")
    command = [gunicorn, "config.wsgi:application", "--access-logfile", "/dev/null"]
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", int(environment["PORT"])), timeout=1).close()
                break
            except OSError:
                if time.monotonic() > deadline or process.poll() is not None:
                    raise RuntimeError("the server did not come up") from None
                time.sleep(0.1)
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def _drive(
    port: int, tokens: list[str], seconds: float | None, reading: float
) -> tuple[list[float], list[float], list[tuple[int, str]], float]:
    """(seconds of each take and decision, client and sample of each, all seconds); `None`: until all are decided."""
    takes: list[float] = []
    decides: list[float] = []
    ids: list[tuple[int, str]] = []
    errors: list[BaseException] = []
    together = threading.Barrier(len(tokens) + 1)
    stop = threading.Event()
    pauses = random.Random(0)

    def review(number: int, token: str) -> None:
        try:
            client = _Client(port, token)
            client("GET", "/projects/bench", None, 200)  # imports and first connections are not what is measured
            together.wait(60)
            while not stop.is_set():
                spent, got = client("POST", "/projects/bench/queue/next", {"order": "borderline"}, 200, 204)
                if got is None:
                    return
                takes.append(spent)
                time.sleep(reading * pauses.uniform(0.5, 1.5))
                sample = got["sample"]
                body = {"action": "approve", "version": sample["version"], "seconds": 1}
                decides.append(client("POST", f"/samples/{sample['id']}/decisions", body, 201)[0])
                ids.append((number, sample["id"]))
        except BaseException as error:
            errors.append(error)
            together.abort()
            raise

    threads = [threading.Thread(target=review, args=client) for client in enumerate(tokens)]
    for thread in threads:
        thread.start()
    together.wait(60)
    started = time.monotonic()
    # The queue must not run dry: then a client would measure an empty answer.
    while any(thread.is_alive() for thread in threads) and not errors:
        time.sleep(0.1)
        if seconds is not None and (time.monotonic() - started > seconds or len(ids) > 4_500):
            break
    stop.set()
    spent = time.monotonic() - started
    for thread in threads:
        thread.join(60)
    if errors:
        raise RuntimeError(f"a client failed: {errors[0]!r}") from errors[0]
    return takes, decides, ids, spent


class _Client:
    """One connection that stays open, as a script's session does."""

    def __init__(self, port: int, token: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._connection.connect()
        # Headers and body leave in two writes; without this each call waits for the other side's delayed answer.
        self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def __call__(self, method: str, path: str, body: object, *expected: int) -> tuple[float, Any]:
        """(seconds, answer)."""
        started = time.perf_counter()
        sent = None if body is None else json.dumps(body)
        self._connection.request(method, f"/api/v1{path}", sent, self._headers)
        response = self._connection.getresponse()
        text = response.read()
        spent = time.perf_counter() - started
        if response.status not in expected:
            raise RuntimeError(f"{method} {path}: {response.status} {text[:300]!r}")
        return spent, json.loads(text) if text else None


def _children_cpu() -> float:
    """Seconds of processor time of all children that have ended; the server's start, about 5 s, is in it."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _p95(seconds: list[float]) -> float:
    return quantiles(seconds, n=20)[-1] * 1000 if len(seconds) > 1 else float("nan")


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--samples", type=int, nargs="+", default=[5_000, 1_000_000])
    options.add_argument("--seconds", type=float, default=15.0)
    options.add_argument("--clients", type=int, default=8)
    options.add_argument("--empty", action="store_true")
    options.add_argument("--reading", type=float, default=0.0)
    given = options.parse_args()
    for samples in given.samples:
        found = measure(samples, clients=given.clients, seconds=given.seconds, empty=given.empty, reading=given.reading)
        print(
            f"{found.samples:>9,} samples, {found.clients} clients: {found.pairs_per_second:6.0f} pairs/s, "
            f"take p95 {found.take_p95:5.1f} ms, decide p95 {found.decide_p95:5.1f} ms, "
            f"{found.cpu_ms:.1f} ms of the server's processor a pair, "
            f"{found.decided:,} decided, {found.twice} twice, "
            f"log: {', '.join(found.wrong) or 'right'} (ideal: {found.ideal:,.0f} bare updates/s)"
        )


if __name__ == "__main__":
    main()
