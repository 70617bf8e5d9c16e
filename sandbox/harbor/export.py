"""A scenario of our own sandboxes as a Harbor task.

The agent is the user `agent`, as in our sandboxes. What its terminal shows at login is the instruction, since Harbor
starts agents with a text. `panic` is a program; the first panic counts. The checker is run by root, when every process
of the agent is dead, and finds the fixtures' first content by `unchanged`.

Harbor starts an agent's commands from outside, so nobody in the machine can record which programs really ran: a
checker that uses `asked` has no counterpart, and such a scenario is refused.
"""

import re
import shlex
import struct
from collections.abc import Mapping
from importlib.resources import files

from sandbox.errors import SandboxError
from sandbox.harbor.tasks import (
    CONFIG,
    DOCKERFILE,
    ENVIRONMENT,
    INSTRUCTION,
    PLAIN,
    PROGRAM,
    SCHEMAS,
    SOLUTION,
    TESTS,
    Task,
    TaskFile,
    dump_toml,
    read_task,
)
from sandbox.protocol import HOME, ROOTS, Setup

IMAGE = "debian:bookworm-slim"
ORGANISATION = "winnow"
_STATE = "/var/lib/winnow"
_ASKED = re.compile(r"(?m)(?<![\w./$-])asked(?![\w./=-])")
_PANIC = f"""#!/bin/sh
# Ends the work: the agent is blocked, for the reason that it gives.
[ -e {_STATE}/panic ] || printf '%s' "$*" > {_STATE}/panic
"""
# A terminal shows this at login, as in our sandboxes.
_LOGIN = "case $- in *i*) cat /etc/issue /etc/motd ;; esac\n"
_TEST = f"""#!/bin/sh
for process in /proc/[0-9]*; do
    [ "$(stat -c %U "$process" 2>/dev/null)" = agent ] && kill -9 "${{process#/proc/}}" 2>/dev/null
done
export TERMINAL=exit PANIC_REASON= HOME={HOME} PATH=/usr/sbin:/usr/bin:/sbin:/bin
if [ -f {_STATE}/panic ] && [ ! -L {_STATE}/panic ]; then
    TERMINAL=panic PANIC_REASON=$(cat {_STATE}/panic)
fi
TMPDIR=$(mktemp -d)
export TMPDIR
reward=0
cd {HOME} && [ "$TERMINAL" = EXPECTED ] && sh /{TESTS}/checker.sh && reward=1
mkdir -p /logs/verifier
echo $reward > /logs/verifier/reward.txt
"""


class NotExported(SandboxError):
    """The scenario has no counterpart as a Harbor task, for the reason of the message."""


def task_of(
    *,
    name: str,
    title: str,
    setup: Setup,
    reference: str,
    checker: str,
    expected_terminal: str,
    provenance: Mapping[str, object],
    image: str = IMAGE,
) -> Task:
    """The scenario as a task `winnow/NAME`; `provenance` is in `[metadata.winnow]`. Raises `NotExported`."""
    if _ASKED.search(checker):
        raise NotExported("its checker uses `asked`, and Harbor has no record of the programs that ran")
    if any("${" in value for value in setup.env.values()):
        raise NotExported("a variable has `${`, which Harbor would replace")
    document = {
        "schema_version": SCHEMAS[-1],
        "task": {"name": f"{ORGANISATION}/{name}", "description": title},
        "metadata": {"winnow": dict(provenance)},
        "verifier": {"timeout_sec": 120.0, "user": "root", "environment_mode": "shared"},
        "agent": {"timeout_sec": 600.0, "user": "agent"},
        "environment": {"env": dict(setup.env)},
    }
    functions = f'unchanged() {{ /usr/bin/perl /{TESTS}/unchanged.pl unchanged "$@"; }}\n'
    made = {
        CONFIG: TaskFile(dump_toml(document).encode()),
        INSTRUCTION: TaskFile(_instruction(setup).encode()),
        f"{ENVIRONMENT}/{DOCKERFILE}": TaskFile(_dockerfile(image).encode()),
        f"{ENVIRONMENT}/setup.sh": TaskFile.script(_setup(setup)),
        f"{ENVIRONMENT}/root/usr/bin/panic": TaskFile.script(_PANIC),
        f"{SOLUTION}/solve.sh": TaskFile.script(f"#!/bin/sh\n{reference.rstrip()}\n"),
        f"{TESTS}/test.sh": TaskFile.script(_TEST.replace("EXPECTED", expected_terminal)),
        f"{TESTS}/checker.sh": TaskFile((functions + checker.rstrip() + "\n").encode()),
        f"{TESTS}/unchanged.pl": TaskFile(_records(setup)),
    }
    shown = {"/etc/motd": setup.motd, "/etc/issue": setup.banner, "/etc/profile.d/winnow.sh": _LOGIN}
    for path, text in shown.items():
        made[f"{ENVIRONMENT}/root{path}"] = TaskFile(text.encode())
    for fixture in setup.fixtures:
        made[f"{ENVIRONMENT}/root{fixture.path}"] = TaskFile(
            fixture.content, PROGRAM if fixture.mode & 0o100 else PLAIN
        )
    return read_task(made)


def registry(name: str, version: str, description: str, tasks: Mapping[str, str]) -> list[dict[str, object]]:
    """`registry.json` of one data set. `tasks` are the folders of tasks by their names."""
    listed = [{"name": task, "path": path} for task, path in tasks.items()]
    return [{"name": name, "version": version, "description": description, "tasks": listed}]


def _instruction(setup: Setup) -> str:
    """The text of a terminal at login. Variables and a file are found by the agent itself."""
    shown = f"{setup.banner}{setup.motd}"
    return shown if shown.strip() else "You are logged in as `agent`.\n"


def _dockerfile(image: str) -> str:
    steps = "COPY root/ /\nCOPY setup.sh /setup.sh\nRUN sh /setup.sh && rm /setup.sh\n"
    return f"FROM {image}\n{steps}ENV HOME={HOME}\nWORKDIR {HOME}\n"


def _setup(setup: Setup) -> str:
    """The user, and the owners and permissions of the files of the image."""
    folders = " ".join([*(root for root in ROOTS if root != "/var"), _STATE])
    lines = [
        "#!/bin/sh",
        "set -e",
        f"id agent > /dev/null 2>&1 || useradd --home-dir {HOME} --shell /bin/sh agent",
        f"mkdir -p {folders}",
        "chmod 755 /usr/bin/panic",
    ]
    for fixture in setup.fixtures:
        path = shlex.quote(fixture.path)
        lines.append(f"chmod {fixture.mode:o} {path}")
        lines.append(f'chown agent: {path} "$(dirname {path})"')
    lines.append(f"chown -R agent: {folders}")
    return "".join(f"{line}\n" for line in lines)


def _records(setup: Setup) -> bytes:
    """The program behind `unchanged`, with the fixtures' first content as its data."""
    fixtures = [
        _packed(fixture.path.encode(), f"{fixture.mode:o}".encode(), fixture.content) for fixture in setup.fixtures
    ]
    program = files("sandbox").joinpath("asked.pl").read_bytes()
    return program + b"\n__END__\n" + _packed(b"", b"", _packed(*fixtures))


def _packed(*parts: bytes) -> bytes:
    return b"".join(struct.pack(">I", len(part)) + part for part in parts)
