"""Copies of a task whose solutions look at the machine or try attempts in it, and their findings.

A probe runs the reference and collects the files before and after it. A scan does the reference and then tries many
attempts in one machine: after each it runs the tests and puts the state back. Both are solutions, so Harbor runs them
as it runs the reference.
"""

import json
import shlex
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbox.gate.state import Entry, State
from sandbox.harbor.tasks import SOLUTION, TESTS, Task, TaskFile

# More than this is no state that attempts can be made of.
MAX_STATE, MAX_PATHS = 64 * 1024 * 1024, 20_000
SCAN_SECONDS = 600
_LARGEST = "2048"  # blocks of 512 bytes
_REFERENCE = f"/{SOLUTION}/winnow-reference.sh"
# The machine's own folders; what the tests and Harbor put there is no result.
_SNAPSHOT = f"""
snapshot() {{
    for root in /* /usr/local/bin /usr/local/etc /usr/local/share /var/www /var/spool /var/mail; do
        case $root in
        /proc | /sys | /dev | /run | /usr | /var | /lib* | /bin | /sbin | /boot | /logs | /{SOLUTION} | /{TESTS}) ;;
        *) find "$root" -xdev \\( -type f -size -{_LARGEST} -o -type l \\) -print 2>/dev/null ;;
        esac
    done | tar -cf "$1" -T - 2>/dev/null
}}
"""
_RUN = f"chmod +x {_REFERENCE}\n{_REFERENCE}\nstatus=$?\n"
_PROBE = f"""#!/bin/sh
{_SNAPSHOT}
mkdir -p /logs/artifacts
pwd > /logs/artifacts/folder
snapshot /logs/artifacts/before.tar
{_RUN}
snapshot /logs/artifacts/after.tar
exit $status
"""
# The tests get a fresh folder each time, and no more than their own time.
_SCAN = f"""#!/bin/sh
here=$PWD
{_RUN}
began=$(date +%s)
attempt() {{
    [ $(($(date +%s) - began)) -lt {SCAN_SECONDS} ] || return
    out=/logs/artifacts/$1
    mkdir -p "$out"
    cd "$here" && sh /{SOLUTION}/winnow/$1.sh > "$out/said" 2>&1
    rm -rf /{TESTS}/* /{TESTS}/.[!.]* /logs/verifier/reward.txt /logs/verifier/reward.json
    mkdir -p /{TESTS} /logs/verifier
    cp -R /{SOLUTION}/winnow/tests/. /{TESTS}/ && chmod -R +x /{TESTS}
    cd "$here" && timeout TIMEOUT env ENVIRONMENT /{TESTS}/test.sh 2>&1 < /dev/null | head -c 8192 > "$out/printed"
    cat /logs/verifier/reward.json > "$out/reward.json" 2>/dev/null
    cat /logs/verifier/reward.txt > "$out/reward.txt" 2>/dev/null
    cd "$here" && sh /{SOLUTION}/winnow/$1.undo.sh > /dev/null 2>&1
    echo done > "$out/done"
}}
"""


@dataclass(frozen=True, slots=True)
class Scanned:
    """One entry of a scan: a script, the script that puts the state back, and its name."""

    name: str
    script: str
    undo: str = ""


@dataclass(frozen=True, slots=True)
class Probed:
    """The files of the machine before and after the reference, and the folder that it began in. None where the state
    could not be read."""

    before: State
    after: State
    folder: str


def with_solution(task: Task, name: str, script: str, more: Mapping[str, TaskFile] | None = None) -> Task:
    """A copy with this name, whose only solution is the script. Steps have it as their solution too."""
    folders = task.solutions() or [SOLUTION]
    gone: dict[str, TaskFile | None] = dict.fromkeys(task.below(SOLUTION))
    made = {f"{folder}/solve.sh": TaskFile.script(script) for folder in folders}
    return task.changed({**gone, **made, **(more or {})}, task={"name": name})


def probe(task: Task, name: str) -> Task:
    """A copy that runs the reference and collects the files before and after it."""
    return with_solution(task, name, _PROBE, _with_reference(task))


def scan(task: Task, name: str, entries: Sequence[Scanned]) -> Task:
    """A copy that tries the entries one after the other. They have their numbers as names."""
    verifier = task.config.verifier
    values = " ".join(f"{key}={shlex.quote(value)}" for key, value in verifier.env.items())
    driver = _SCAN.replace("TIMEOUT", f"{verifier.timeout_sec:g}").replace("ENVIRONMENT", values)
    more = dict(_with_reference(task))
    for entry in entries:
        driver += f"attempt {entry.name}\n"
        more[f"{SOLUTION}/winnow/{entry.name}.sh"] = TaskFile.script(entry.script)
        more[f"{SOLUTION}/winnow/{entry.name}.undo.sh"] = TaskFile.script(entry.undo)
    for path, file in task.files.items():
        if path.startswith(f"{TESTS}/"):
            more[f"{SOLUTION}/winnow/{path}"] = file
    copy = with_solution(task, name, driver, more)
    return copy.changed({}, agent={"timeout_sec": 2.0 * SCAN_SECONDS + (task.config.agent.timeout_sec or 600.0)})


def scannable(task: Task) -> bool:
    """Whether the tests can run in the agent's machine as its own user: then one machine can try many attempts."""
    config = task.config
    users = {str(config.agent.user or "root"), str(config.verifier.user or "root")}
    return not task.steps and not task.is_separate and users == {"root"} and "tests/test.sh" in task.files


def probed(artifacts: Path) -> Probed | None:
    """A probe's collected files; None if a part is missing, damaged or too large. The task may have changed it."""
    states = []
    for name in ("before.tar", "after.tar"):
        path = artifacts / name
        if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_STATE:
            return None
        try:
            states.append(_state(path))
        except (tarfile.TarError, OSError):
            return None
    if any(len(state) > MAX_PATHS for state in states):
        return None
    return Probed(states[0], states[1], _text(artifacts / "folder").strip() or "/")


def rewards_of(artifacts: Path, name: str) -> tuple[bool, float, str]:
    """Whether the entry of a scan was tried, its reward, and its output."""
    folder = artifacts / name
    if not (folder / "done").is_file():
        return False, 0.0, ""
    reward = 0.0
    try:
        if text := _text(folder / "reward.json").strip():
            found = json.loads(text)
            reward = min(map(float, found.values() if isinstance(found, dict) else [found]), default=0.0)
        elif text := _text(folder / "reward.txt").strip():
            reward = float(text)
    except (ValueError, TypeError):
        reward = 0.0
    return True, reward, _text(folder / "said") + _text(folder / "printed")


def _with_reference(task: Task) -> dict[str, TaskFile]:
    """The files of the solution, its script under another name."""
    files = {path: file for path, file in task.below(SOLUTION).items() if path.startswith(f"{SOLUTION}/")}
    script = files.pop(f"{SOLUTION}/solve.sh")
    return {**files, _REFERENCE.lstrip("/"): script}


def _state(path: Path) -> State:
    found: dict[str, Entry] = {}
    with tarfile.open(path) as archive:
        for member in archive:
            name = f"/{member.name.lstrip('/')}"
            if member.isreg() and (file := archive.extractfile(member)) is not None:
                found[name] = Entry("file", member.mode & 0o777, file.read())
            elif member.issym():
                found[name] = Entry("link", 0o777, member.linkname.encode(errors="surrogateescape"))
    return found


def _text(path: Path) -> str:
    if path.is_symlink() or not path.is_file():
        return ""
    with path.open("rb") as file:
        return file.read(16 * 1024).decode(errors="replace")
