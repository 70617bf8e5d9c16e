"""`make bench`: every benchmark in turn, each in its own process and data folder; fails where one falls short."""

import os
import subprocess
import sys
import tempfile

NAMES = ("install", "start", "runs", "rollouts", "imports", "exports", "review", "samples", "sandbox", "evaluations")


def main() -> int:
    short = []
    for name in NAMES:
        print(f"\n== benchmarks.{name}", flush=True)
        with tempfile.TemporaryDirectory(prefix=f"winnow-bench-{name}-") as folder:
            env = {**os.environ, "WINNOW_DATA": folder}
            if subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], env=env, check=False).returncode:
                short.append(name)
    print(f"\n{len(NAMES) - len(short)} of {len(NAMES)} hold" + (f"; short: {', '.join(short)}" if short else ""))
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
