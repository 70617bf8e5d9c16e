"""A scenario of our own sandboxes as a Harbor task.

The agent is the user `agent`, as in our sandboxes. What its terminal shows at login is the instruction, since Harbor
starts agents with a text. `panic` is a program; the first panic counts. The checker is run by root, when every process
of the agent is dead.

`asked` and `unchanged` read a record as in our sandboxes. Harbor starts an agent's commands from outside, so no parent
of theirs can watch them: the first line of each program that the checker asks about names `run.pl` before its
interpreter, and that tells `recorder.pl`, which root runs, of the run. The checker sees the line as it was.
"""

import re
import shlex
import struct
from collections.abc import Mapping
from importlib.resources import files

from sandbox.errors import SandboxError
from sandbox.harbor.task_folder import (
    CONFIG,
    DOCKERFILE,
    ENVIRONMENT,
    INSTRUCTION,
    PLAIN,
    PROGRAM,
    SCHEMAS,
    SOLUTION,
    TESTS,
    TaskFile,
    TaskFolder,
    dump_toml,
    read_task,
)
from sandbox.protocol import HOME, ROOTS, TEMPORARY, Setup

IMAGE = "debian:bookworm-slim"
ORGANISATION = "winnow"
_LARGEST = 1024  # KiB of a file that may be a copy of a program
_STATE = "/var/lib/winnow"
_OWN = "/usr/lib/winnow"
# In no folder of fixtures: the agent owns those, and could rename what is in them.
_RECORD = f"{_OWN}/record"
_RUNS = "#!/usr/bin/winnow-run "
_ASKED = re.compile(r"(?m)(?<![\w./$-])asked(?![\w./=-])(?:[ \t]+-x)?(?:[ \t]+([\w./+-]+)(?=[\s;&|)]|\Z))?")
_PANIC = f"""#!/bin/sh
# Ends the work: the agent is blocked, for the reason that it gives.
[ -e {_STATE}/panic ] || printf '%s' "$*" > {_STATE}/panic
"""
# A recorder that the machine killed for lack of memory is started again. The agent cannot connect before it is there.
_START = f"""#!/bin/sh
[ -S /run/winnow.sock ] && exit
setsid sh -c 'while :; do /usr/bin/perl {_OWN}/recorder.pl; sleep 1; done' < /dev/null > {_RECORD}/errors 2>&1 &
for _ in 1 2 3 4 5 6 7 8 9 10; do
    [ -S /run/winnow.sock ] && exit
    sleep 0.5
done
exit 1
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
export RECORD="$TMPDIR/record.pl"
find {" ".join([*ROOTS, *TEMPORARY])} -xdev -type f -size -{_LARGEST}k -exec /usr/bin/perl -0777 -e '
    for (@ARGV) {{
        open my $file, "+<", $_ or next;
        <$file> =~ m{{^{_RUNS}(.*)}}s or next;
        my ($text, @times) = ("#!$1", (stat $file)[8, 9]);
        seek $file, 0, 0;
        print {{$file}} $text;
        truncate $file, length $text;
        close $file;
        utime @times, $_;
    }}' {{}} +
{{
    cat /{TESTS}/asked.pl
    printf '\\n__END__\\n'
    /usr/bin/perl -0777 -e 'print pack "(N/a*)3", -f $ARGV[0],
        map {{ open my $f, "<", $_; $f ? scalar <$f> : "" }} @ARGV' \\
        {_RECORD}/runs /{TESTS}/fixtures
}} > "$RECORD"
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
) -> TaskFolder:
    """The scenario as a task `winnow/NAME`; `provenance` is in `[metadata.winnow]`. Raises `NotExported`."""
    programs = _asked_about(setup, checker)
    if unseen := [path for path, content in programs.items() if not content.startswith(b"#!")]:
        raise NotExported(f"its checker uses `asked`, and nothing records the runs of {unseen[0]}, which has no `#!`")
    if any("${" in value for value in setup.env.values()):
        raise NotExported("a variable has `${`, which Harbor would replace")
    document = {
        "schema_version": SCHEMAS[-1],
        "task": {"name": f"{ORGANISATION}/{name}", "description": title},
        "metadata": {"winnow": dict(provenance)},
        "verifier": {"timeout_sec": 120.0, "user": "root", "environment_mode": "shared"},
        "agent": {"timeout_sec": 600.0, "user": "agent"},
        # Harbor runs a health check as root before the agent, with every provider.
        "environment": {
            "env": dict(setup.env),
            "healthcheck": {"command": f"sh {_OWN}/start", "timeout_sec": 30.0},
        },
    }
    functions = "".join(f'{name}() {{ /usr/bin/perl "$RECORD" {name} "$@"; }}\n' for name in ("asked", "unchanged"))
    fixtures = [_packed(one.path.encode(), b"%o" % one.mode, one.content) for one in setup.fixtures]
    recorded = {path: _RUNS.encode() + content[2:] for path, content in programs.items()}
    made = {
        CONFIG: TaskFile(dump_toml(document).encode()),
        INSTRUCTION: TaskFile(_instruction(setup).encode()),
        f"{ENVIRONMENT}/{DOCKERFILE}": TaskFile(_dockerfile(image).encode()),
        f"{ENVIRONMENT}/setup.sh": TaskFile.script(_setup(setup)),
        f"{ENVIRONMENT}/root/usr/bin/panic": TaskFile.script(_PANIC),
        f"{SOLUTION}/solve.sh": TaskFile.script(f"#!/bin/sh\n{reference.rstrip()}\n"),
        f"{TESTS}/test.sh": TaskFile.script(_TEST.replace("EXPECTED", expected_terminal)),
        f"{TESTS}/checker.sh": TaskFile((functions + checker.rstrip() + "\n").encode()),
        f"{TESTS}/asked.pl": TaskFile(_source("asked.pl")),
        f"{TESTS}/fixtures": TaskFile(_packed(*fixtures)),
        f"{ENVIRONMENT}/root/usr/bin/winnow-run": TaskFile(_source("harbor/run.pl"), PROGRAM),
        f"{ENVIRONMENT}/root{_OWN}/recorder.pl": TaskFile(_source("harbor/recorder.pl")),
        f"{ENVIRONMENT}/root{_OWN}/start": TaskFile.script(_START),
        f"{ENVIRONMENT}/root{_OWN}/programs": TaskFile(
            b"".join(_packed(path.encode(), text) for path, text in recorded.items())
        ),
    }
    shown = {"/etc/motd": setup.motd, "/etc/issue": setup.banner, "/etc/profile.d/winnow.sh": _LOGIN}
    for path, text in shown.items():
        made[f"{ENVIRONMENT}/root{path}"] = TaskFile(text.encode())
    for fixture in setup.fixtures:
        content, mode = recorded.get(fixture.path, fixture.content), PROGRAM if fixture.mode & 0o100 else PLAIN
        made[f"{ENVIRONMENT}/root{fixture.path}"] = TaskFile(content, mode)
    return read_task(made)


def registry(
    name: str, version: str, description: str, tasks: Mapping[str, str], git_url: str = ""
) -> list[dict[str, object]]:
    """`registry.json` of one data set. `tasks` are the folders of tasks by their names, in the repository `git_url` or
    beside the file."""
    place = {"git_url": git_url} if git_url else {}
    listed = [{"name": task, **place, "path": path} for task, path in tasks.items()]
    return [{"name": name, "version": version, "description": description, "tasks": listed}]


def _asked_about(setup: Setup, checker: str) -> dict[str, bytes]:
    """The content of each program that the checker asks about, by path: those that it names, or else all."""
    named = set(_ASKED.findall(checker))
    programs = {fixture.path: fixture.content for fixture in setup.fixtures if fixture.mode & 0o111}
    return {path: text for path, text in programs.items() if "" in named or {path, path.rsplit("/", 1)[-1]} & named}


def _instruction(setup: Setup) -> str:
    """The text of a terminal at login. Variables and a file are found by the agent itself."""
    shown = f"{setup.banner}{setup.motd}"
    return shown if shown.strip() else "You are logged in as `agent`.\n"


def _dockerfile(image: str) -> str:
    steps = "COPY root/ /\nCOPY setup.sh /setup.sh\nRUN sh /setup.sh && rm /setup.sh\n"
    return f"FROM {image}\n{steps}ENV HOME={HOME}\nWORKDIR {HOME}\n"


def _setup(setup: Setup) -> str:
    """The user, and the owners and permissions of the files of the image."""
    folders = " ".join([*ROOTS, _STATE])
    lines = [
        "#!/bin/sh",
        "set -e",
        f"id agent > /dev/null 2>&1 || useradd --home-dir {HOME} --shell /bin/sh agent",
        f"mkdir -p {folders}",
        "chmod 755 /usr/bin/panic /usr/bin/winnow-run",
        f"mkdir -m 700 {_RECORD}",
    ]
    for fixture in setup.fixtures:
        path = shlex.quote(fixture.path)
        lines.append(f"chmod {fixture.mode:o} {path}")
    lines.append(f"chown -R agent: {folders}")
    return "".join(f"{line}\n" for line in lines)


def _source(name: str) -> bytes:
    return files("sandbox").joinpath(name).read_bytes()


def _packed(*parts: bytes) -> bytes:
    return b"".join(struct.pack(">I", len(part)) + part for part in parts)
