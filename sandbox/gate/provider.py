"""Which paths only the provider's own programs write: the trace that it was asked.

The reference runs twice more. First every call of a provider's program is recorded with its output; then the programs
only print the recorded output and do nothing. A path that changes in the first run and not in the second was written by
the provider alone, if its programs name the path or its folder. If recording disturbs the reference, the texts decide
alone: the paths that the programs name and the reference does not.
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from sandbox.gate.play import REFERENCE_SECONDS, PlayedSession, Rooms, snapshot_in
from sandbox.gate.state import Changes, State, changes_between
from sandbox.protocol import Fixture, SandboxSession

CALLS = "/tmp/.winnow-calls"  # noqa: S108
ANSWERS = "/var/tmp/.winnow-answers"  # noqa: S108
REAL = "-winnow-real"
REPLAY_SECONDS = 20.0
_SHELLS = re.compile(rb"#!\s*(?:/usr)?/bin/(?:env\s+)?(?:sh|dash)\b[ \t]*(-[a-z]+)?")
_KEY = (
    "#!/bin/sh\n[ -d {calls} ] || mkdir -p {calls}\nkey=$(printf '%s\\n' {path} \"$@\" | cksum)\n"
    'key=${{key%% *}}-${{key##* }}\nn=1\nwhile ! mkdir {calls}/"$key.$n" 2> /dev/null; do n=$((n + 1)); done\n'
)
_ANSWER = '[ ! -s "$d/out" ] || cat "$d/out"\n[ ! -s "$d/err" ] || cat "$d/err" >&2\nexit $code\n'
_RECORDER = _KEY + 'd={calls}/"$key.$n"\n{call} > "$d/out" 2> "$d/err"\ncode=$?\necho $code > "$d/code"\n' + _ANSWER
_REPLAYER = _KEY + 'd={answers}/"$key.$n"\n[ -f "$d/code" ] || exit 1\nread code < "$d/code"\n' + _ANSWER


@dataclass(frozen=True, slots=True)
class Traces:
    """Paths that only the provider writes, and everything that it said to the reference."""

    paths: frozenset[str]
    said: tuple[str, ...]


def programs_of(fixtures: Sequence[Fixture], told: str) -> list[Fixture]:
    """Scripts among the fixtures that the announcement or the provider's description names; all if it names none."""
    scripts = [file for file in fixtures if file.content.startswith(b"#!")]
    named = [file for file in scripts if file.path in told or re.search(_word(file.path.rsplit("/", 1)[1]), told)]
    return named or [file for file in scripts if file.mode & 0o111]


def find_traces(rooms: Rooms, commands: Sequence[str], changes: Changes, told: str) -> Traces:
    """Raises `SandboxFailed`."""
    fixtures = rooms.task.setup.fixtures
    programs = programs_of(fixtures, told)
    if not programs:
        return Traces(frozenset(), ())
    rest = [file for file in fixtures if file not in programs]
    recorders = [file for program in programs for file in _recording(program)]
    recorded, after, _ = rooms.fresh(lambda session: _run(session, commands), setup=rooms.roomy([*rest, *recorders]))
    calls = {path: entry for path, entry in after.items() if path.startswith(f"{CALLS}/")}
    said = tuple(entry.text or "" for path, entry in calls.items() if path.endswith(("/out", "/err")))
    answers = [
        Fixture(f"{ANSWERS}/{path.removeprefix(f'{CALLS}/')}", entry.data or b"")
        for path, entry in calls.items()
        if entry.kind == "file"
    ]
    players = [
        Fixture(
            file.path, _REPLAYER.format(path=shlex.quote(file.path), calls=CALLS, answers=ANSWERS).encode(), file.mode
        )
        for file in programs
    ]
    own, _, ended = rooms.fresh(
        lambda session: _run(session, commands, REPLAY_SECONDS), setup=rooms.roomy([*rest, *players, *answers])
    )
    typed = "\n".join(commands)
    unnamed = {path for path in changes if not re.search(_word(path.rsplit("/", 1)[1]), typed)}
    theirs = changes.keys() - own if ended and recorded >= changes.keys() else unnamed
    scripts = "\n".join(file.content.decode(errors="replace") for file in fixtures if file.content.startswith(b"#!"))
    return Traces(frozenset(path for path in theirs if _names(scripts, path)), said)


def _run(
    session: SandboxSession, commands: Sequence[str], seconds: float = REFERENCE_SECONDS
) -> tuple[set[str], State, bool]:
    """The paths that a run changed, its state, and whether it came to its end."""
    before = snapshot_in(session).paths
    played = PlayedSession(None)
    played.solve(session, commands, seconds)
    after = snapshot_in(session).paths
    return set(changes_between(before, after)), after, not played.stopped


def _recording(program: Fixture) -> list[Fixture]:
    """The recorder in the program's place. A shell's script runs under its own name, any other beside its place."""
    shell = _SHELLS.match(program.content)
    if shell:
        flags = f" {shell[1].decode()}" if shell[1] else ""
        call = f'sh{flags} -c {shlex.quote(program.content.decode(errors="replace"))} {shlex.quote(program.path)} "$@"'
        real = []
    else:
        call = f'{shlex.quote(program.path + REAL)} "$@"'
        real = [Fixture(program.path + REAL, program.content, program.mode | 0o111)]
    text = _RECORDER.format(path=shlex.quote(program.path), calls=CALLS, call=call)
    return [Fixture(program.path, text.encode(), program.mode), *real]


def _names(scripts: str, path: str) -> bool:
    """Whether the scripts name the path or its folder. A program cannot write to an unknown path."""
    return any(re.search(_word(name), scripts) for name in path.split("/")[-2:])


def _word(name: str) -> str:
    return rf"(?<![\w.-]){re.escape(name)}(?![\w-])"
