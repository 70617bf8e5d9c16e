"""`make bench`: every benchmark in turn, each in its own process and data folder; fails where one falls short.

`--small` runs those that take a size at a small one and fails only where one ends with an error: its figures
say nothing. `make soak` does that, so that no benchmark stops working unseen. Both list at the end the written
figures that are older than their code, and fail where one names no commit.
"""

import os
import subprocess
import sys
import tempfile

from benchmarks import stale

NAMES = (
    *("install", "start", "runs", "rollouts", "imports", "exports", "review", "samples", "trajectories"),
    *("sandbox", "gate", "evaluations"),
)
SMALL = {
    "runs": ["20"],
    "imports": ["300"],
    "exports": ["100"],
    "review": ["--samples", "200", "--seconds", "1", "--clients", "2"],
    "samples": ["--rows", "2000", "--times", "1"],
    "trajectories": ["--rows", "2000", "--times", "1"],
    "gate": ["kiln-idle"],
    "evaluations": ["1", "50"],
}
LONGEST = 120.0  # seconds of a small one, which takes 10


def main(small: bool) -> int:
    short = []
    names = tuple(SMALL) if small else NAMES
    for name in names:
        print(f"\n== benchmarks.{name}", flush=True)
        if not (_works(name) if small else _holds(name)):
            short.append(name)
    word = "work" if small else "hold"
    print(f"\n{len(names) - len(short)} of {len(names)} {word}" + (f"; not: {', '.join(short)}" if short else ""))
    print("\n== benchmarks.stale", flush=True)
    return max(stale.main(), int(bool(short)))


def _holds(name: str) -> bool:
    with tempfile.TemporaryDirectory(prefix=f"winnow-bench-{name}-") as folder:
        env = {**os.environ, "WINNOW_DATA": folder}
        return subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], env=env, check=False).returncode == 0


def _works(name: str) -> bool:
    with tempfile.TemporaryDirectory(prefix=f"winnow-bench-{name}-") as folder:
        env = {key: value for key, value in os.environ.items() if key != "DATABASE_URL"} | {"WINNOW_DATA": folder}
        command = [sys.executable, "-m", f"benchmarks.{name}", *SMALL[name]]
        try:
            done = subprocess.run(command, env=env, check=False, capture_output=True, text=True, timeout=LONGEST)
        except subprocess.TimeoutExpired:
            print(f"not done within {LONGEST:.0f} s")
            return False
    # A figure that is not reached ends with 1 as well, but without a traceback.
    works = done.returncode in (0, 1) and "Traceback (most recent call last)" not in done.stderr
    print(
        "works" if works else f"exit status {done.returncode}\n{done.stdout[-1000:]}\n{done.stderr[-3000:]}", flush=True
    )
    return works


if __name__ == "__main__":
    sys.exit(main("--small" in sys.argv[1:]))
