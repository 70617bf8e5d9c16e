"""Sandbox sessions beside the machine's best possible figure: whole episodes a second, and one command's overhead.

    python -m benchmarks.sandbox [--episodes 200] [--threads 4] [--backend bubblewrap]

An episode is a fresh session, five commands, the checker and its removal. Both sides run in this one process: a bare
start of bubblewrap or of the container with `true` in it, and the same shell without any sandbox, or by `docker exec`.
Prints a table and exits with 1 if a figure misses its goal; a backend that is not on this machine is named and skipped.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from sandbox.choose import choose_backend
from sandbox.errors import SandboxUnavailable
from sandbox.protocol import SandboxBackend, Setup

COMMANDS = ("cat /etc/motd", "cd /srv", "echo done > note", "export STEP=5", "ls")
CHECKER = 'read word < /srv/note && test "$word $TERMINAL" = "done exit"'
EPISODES_A_SECOND = {"bubblewrap": 80.0, "docker": 5.0}
TIMES_AS_QUICK = 20.0


@dataclass(frozen=True, slots=True)
class Row:
    """One figure, the machine's best possible one, and the goal (`asked`)."""

    what: str
    measured: float
    unit: str
    ideal: float | None = None
    asked: float | None = None

    @property
    def holds(self) -> bool:
        return self.asked is None or self.measured >= self.asked


def episode(backend: SandboxBackend) -> None:
    with backend.session(Setup(motd="Read NOTICE\n")) as session:
        for command in COMMANDS:
            assert session.exec(command).exit_code == 0
        assert session.check(CHECKER, terminal="exit").passed


def a_second(once: Callable[[], None], times: int, threads: int) -> float:
    began = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        for ended in [pool.submit(once) for _ in range(times)]:
            ended.result()
    return times / (time.perf_counter() - began)


def milliseconds(once: Callable[[], object], times: int) -> float:
    """The median of `times` calls."""
    took = []
    for _ in range(times):
        began = time.perf_counter()
        once()
        took.append((time.perf_counter() - began) * 1000)
    return statistics.median(took)


def processor_seconds() -> float:
    """Return the processor time of this process and its children. Those that run are the templates of sessions."""
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(part.ru_utime + part.ru_stime for part in used) + sum(map(seconds_of, children(os.getpid())))


def children(process: int) -> list[int]:
    listed = [path.read_text() for path in Path(f"/proc/{process}/task").glob("*/children")]
    return [int(pid) for pid in " ".join(listed).split()]


def seconds_of(process: int) -> float:
    """Return the processor time of a process with its children, in ticks of the kernel."""
    times = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:15]
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK") + sum(map(seconds_of, children(process)))


def episode_rows(backend: SandboxBackend, bare: Callable[[], None], episodes: int, threads: int) -> list[Row]:
    episode(backend)
    used = processor_seconds()
    measured = a_second(lambda: episode(backend), episodes, threads)
    each = (processor_seconds() - used) / episodes
    ideal = a_second(bare, episodes, threads)
    asked = EPISODES_A_SECOND[backend.name]
    rows = [Row(f"{backend.name}: episodes, {threads} threads", measured, "/s", ideal, asked)]
    if backend.name == "bubblewrap":  # another engine's work is done by processes that are not ours
        cores = os.cpu_count() or 1
        rows.append(Row(f"{backend.name}: what the processor time allows on {cores} idle cores", cores / each, "/s"))
    return rows


def command_rows(backend: SandboxBackend) -> list[Row]:
    """Measure a command in a live session, beside the same shell started from here, without a sandbox."""
    with backend.session(Setup()) as session:
        session.exec("true")
        measured = milliseconds(lambda: session.exec("true"), 200)
    plain = milliseconds(lambda: subprocess.run(["/bin/sh", "-c", "true"], check=True), 200)
    return [Row(f"{backend.name}: one command in a live session", measured, "ms", plain)]


def bubblewrap_rows(folder: Path, episodes: int, threads: int) -> list[Row]:
    from sandbox.bubblewrap.command import as_agent, find_programs, sandboxing

    backend = choose_backend("bubblewrap", folder=folder)
    programs = find_programs()
    line = sandboxing(programs, root=None, files={})
    command = [*as_agent(programs, drop=os.geteuid() == 0), *line, "/usr/bin/true"]

    def bare() -> None:
        subprocess.run(command, check=True, env={})

    return [*episode_rows(backend, bare, episodes, threads), *command_rows(backend)]


def docker_rows(folder: Path, episodes: int, threads: int) -> list[Row]:
    """A fifth of the episodes: each takes as long as many of bubblewrap's."""
    from benchmarks.sandbox_docker import docker_side, with_live_session

    backend, bare = docker_side(folder)
    live, by_exec = with_live_session(backend, lambda once: milliseconds(once, 20))
    return [
        *episode_rows(backend, bare, max(threads, episodes // 5), threads),
        Row("docker: one command in a live session", live, "ms"),
        Row("docker: the same by `docker exec`", by_exec, "ms"),
        Row("docker: times as quick", by_exec / live, "×", asked=TIMES_AS_QUICK),
    ]


SIDES = {"bubblewrap": bubblewrap_rows, "docker": docker_rows}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--backend", choices=sorted(SIDES), action="append")
    given = parser.parse_args()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as kept:
        folder = Path(os.environ.get("WINNOW_DATA", kept)) / "sandbox"
        for name in given.backend or SIDES:
            try:
                rows += SIDES[name](folder, given.episodes, given.threads)
            except SandboxUnavailable as missing:
                print(f"{name} is left out: {missing}")
    for row in rows:
        ideal = "" if row.ideal is None else f"at best {row.ideal:9.2f} {row.unit}"
        asked = "" if row.asked is None else f"asked {row.asked:g}: {'holds' if row.holds else 'SHORT'}"
        print(f"{row.what:66} {row.measured:9.2f} {row.unit:3} {ideal:26} {asked}")
    return 0 if all(row.holds for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
