"""A stand-in for "Harbor runs a job": each trial is a bubblewrap sandbox with the task's files where Harbor puts them.

It knows what the tasks of our tests have: a Dockerfile of `WORKDIR` and `COPY`, one machine for agent and verifier.
"""

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbox.harbor.trials import Ended, LintFinding

# What Harbor does in the machine, in its order.
_TRIAL = """
cd "$1"
case $2 in
oracle) chmod +x /solution/solve.sh; /solution/solve.sh > /logs/agent/oracle.txt 2>&1 < /dev/null ;;
esac
cd "$1"
rm -f /logs/verifier/reward.txt /logs/verifier/reward.json
cp -R /hidden/. /tests/
chmod +x /tests/test.sh
/tests/test.sh > /logs/verifier/test-stdout.txt 2>&1 < /dev/null
sleep 0.2
"""


@dataclass(slots=True)
class Room:
    """`folder` is a scratch folder; `lints` are findings by the names of tasks."""

    folder: Path
    lints: Mapping[str, list[LintFinding]] | None = None
    trials: int = 0

    def lint(self, task: Path) -> list[LintFinding]:
        return list((self.lints or {}).get("all", []))

    def run(self, tasks: Mapping[str, Path], agents: Sequence[str], attempts: int) -> list[Ended]:
        return [
            self._trial(name, path, agent) for name, path in tasks.items() for agent in agents for _ in range(attempts)
        ]

    def _trial(self, name: str, task: Path, agent: str) -> Ended:
        self.trials += 1
        root = self.folder / f"trial-{self.trials}"
        for place in ("logs/verifier", "logs/agent", "logs/artifacts", "tests", "root", "tmp"):
            (root / place).mkdir(parents=True)
        workdir = _build(task / "environment", root)
        shutil.copytree(task / "solution", root / "solution")
        binds = [part for path in sorted(root.iterdir()) for part in ("--bind", str(path), f"/{path.name}")]
        base = [
            "--ro-bind",
            "/usr",
            "/usr",
            "--ro-bind",
            "/etc/alternatives",
            "/etc/alternatives",
            "--symlink",
            "usr/bin",
            "/bin",
            "--symlink",
            "usr/lib",
            "/lib",
        ]
        base += ["--symlink", "usr/lib64", "/lib64", "--dev", "/dev", "--proc", "/proc"]
        isolated = ["--unshare-all", "--uid", "0", "--gid", "0", "--die-with-parent", "--clearenv"]
        path = ["--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin", "--setenv", "HOME", "/root"]
        hidden = ["--ro-bind", str(task / "tests"), "/hidden"]
        command = [
            "bwrap",
            *isolated,
            *base,
            *binds,
            *hidden,
            *path,
            "/bin/bash",
            "-c",
            _TRIAL,
            "trial",
            workdir,
            agent,
        ]
        subprocess.run(command, check=False, capture_output=True, timeout=120)
        verifier = root / "logs/verifier"
        return Ended(
            task=name,
            agent=agent,
            reward=_reward(verifier),
            exception="" if _reward(verifier) is not None else "RewardFileNotFoundError: No reward file found",
            said=_text(root / "logs/agent/oracle.txt"),
            printed=_text(verifier / "test-stdout.txt"),
            seconds=0.1,
            artifacts=root / "logs/artifacts",
        )


def _build(environment: Path, root: Path) -> str:
    workdir = "/"
    for line in (environment / "Dockerfile").read_text().splitlines():
        word, _, rest = line.partition(" ")
        if word == "WORKDIR":
            workdir = rest
            (root / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)
        if word == "COPY":
            source, target = rest.split()
            place = root / (target if target.startswith("/") else f"{workdir}/{target}").lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(environment / source, place / source if place.is_dir() else place)
    return workdir


def _reward(verifier: Path) -> float | None:
    if (verifier / "reward.json").is_file():
        return float(min(json.loads((verifier / "reward.json").read_text()).values()))
    text = _text(verifier / "reward.txt").strip()
    return float(text) if text else None


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.is_file() else ""
