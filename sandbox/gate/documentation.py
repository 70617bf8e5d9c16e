"""How a provider's programs document themselves, found by asking them in a fresh sandbox.

A program that answers a nonsense word as it answers `--help` does not know help. A topic counts if the help names it
and asking for it shows a text that asking for a nonsense topic does not.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sandbox.agent.shell_environment import exit_code_of
from sandbox.gate.play import PlayedSession, Rooms
from sandbox.gate.report import ReportLine
from sandbox.protocol import ExecResult, Fixture, ProgramRun, SandboxSession

MAX_PROGRAMS = 4
MAX_TOPICS = 24
SECONDS = 5.0
NONSENSE = "no-such-thing-zq"
HELP = ("--help", "help", "-h")
# Words before a topic, besides `help`; they are tried if the help names them.
ASKING = ("topic", "topics", "man", "manual", "doc", "docs", "about", "info", "guide", "explain", "describe")
_WORD = re.compile(r"[A-Za-z][\w.-]*\w|[A-Za-z]")
_USAGE = re.compile(r"\busage\b|\bsynopsis\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Documentation:
    """Calls of the programs. `helps`: calls that print help and succeed; `topics`: calls that print a topic of it;
    `usages`: wrong calls that print the usage and fail."""

    helps: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    usages: tuple[str, ...] = ()
    lines: tuple[ReportLine, ...] = ()


def read_documentation(rooms: Rooms, programs: Sequence[Fixture]) -> Documentation:
    """Raises `SandboxFailed` and `SetupRefused`."""
    if not programs:
        return Documentation()
    return rooms.fresh(lambda session: _ask_all(session, programs[:MAX_PROGRAMS]))


def is_call_for_help(run: ProgramRun) -> bool:
    """Whether a program was run for its documentation: by its first argument, or as a reader of pages."""
    words = ("help", "h", "?", "usage", *ASKING)
    first = run.arguments[0].lstrip("-").lower() if run.arguments else ""
    return first in words or run.path.rsplit("/", 1)[1] in ("man", "help")


class _Program:
    """Calls one program and keeps its output."""

    def __init__(self, session: SandboxSession, path: str, played: PlayedSession) -> None:
        self._session, self.path, self._played = session, path, played
        self.name = path.rsplit("/", 1)[1]

    def call(self, *words: str) -> ExecResult:
        return self._played.run(self._session, shlex.join([self.path, *words]), SECONDS)

    def named(self, *words: str) -> str:
        return " ".join([self.name, *words])


def _ask_all(session: SandboxSession, programs: Sequence[Fixture]) -> Documentation:
    played = PlayedSession(None)
    helps: list[str] = []
    topics: list[str] = []
    usages: list[str] = []
    for program in (_Program(session, file.path, played) for file in programs):
        bare, wrong = program.call(), program.call(f"--{NONSENSE}")
        found = {word: said for word in HELP if _is_help(said := program.call(word), wrong)}
        helps += [program.named(word) for word in found]
        for said in found.values():
            topics += [topic for topic in _topics_in(program, said.output) if topic not in topics]
        if not found and any(_is_usage(said, program.name) for said in (bare, wrong)):
            usages.append(program.named())
    return Documentation(tuple(helps), tuple(topics), tuple(usages), tuple(played.lines))


def _is_help(said: ExecResult, wrong: ExecResult) -> bool:
    if exit_code_of(said) != 0 or not said.output.strip():
        return False
    same = exit_code_of(wrong) == 0 and wrong.output == said.output
    return not same or bool(_USAGE.search(said.output))


def _is_usage(said: ExecResult, name: str) -> bool:
    """Whether a failed call shows how the program is called, and not only where to read that."""
    if exit_code_of(said) == 0:
        return False
    calls = re.findall(rf"(?m)(?<![\w/.-]){re.escape(name)}\s+(?:[\w-]|\[|<)", said.output)
    return bool(_USAGE.search(said.output)) or len(calls) > 1 or len(said.output.strip().splitlines()) > 2


def _topics_in(program: _Program, text: str) -> Iterator[str]:
    """Topics that a help text names. Words that the text puts after a word of asking come first."""
    words = list(dict.fromkeys(_WORD.findall(text)))
    asking = ["help", *(word for word in ASKING if word in words)]
    named = [after for word in asking for after in re.findall(rf"\b{word}\s+({_WORD.pattern})", text)]
    plain = {word: program.call(word, NONSENSE) for word in asking}
    for topic in list(dict.fromkeys([*named, *words]))[:MAX_TOPICS]:
        for word in asking:
            said = program.call(word, topic)
            shown = said.output.replace(topic, NONSENSE).strip()  # it may repeat a topic that it does not know
            if exit_code_of(said) == 0 and shown not in ("", *_shown(topic, text, plain[word].output)):
                yield program.named(word, topic)
                break


def _shown(topic: str, *texts: str) -> list[str]:
    return [text.replace(topic, NONSENSE).strip() for text in texts]
