"""One-shot answers against the expected command: extraction, and the columns of the static screen.

Source of the columns: the specification of evaluations, section 1, whose figures of recorded answers a test repeats.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from judging.commands.words import same_command
from judging.messages import bash_blocks


@dataclass(frozen=True, slots=True)
class CommandFamily:
    """A family by its rule.

    prefix  a command is a line that starts with `prefix` and a blank (`aws`, `kubectl`, `git`)
    block   a command is the script of the first fenced shell block; `prefix` is empty
    line    a command is typed as it is, as in a recorded session of a shell; `prefix` is empty
    action  no command: an action by the schema of a live environment; `prefix` is empty

    `service` and `operation` are the places, from 0, of the words that name them. An episode runs `fallback` when an
    answer has no command; a command with `hint` in it asks the environment for one.
    """

    name: str
    rule: Literal["prefix", "block", "line", "action"]
    prefix: str = ""
    service: int = 1
    operation: int = 2
    fallback: str = ""
    hint: str = ""

    def __post_init__(self) -> None:
        if (self.rule == "prefix") != bool(self.prefix.strip()):
            raise ValueError(f"family {self.name!r}: a prefix is what the rule `prefix` needs, and only that")

    @property
    def lead(self) -> str:
        """The beginning of a command's line; empty for blocks."""
        return f"{self.prefix.strip()} " if self.prefix else ""


AWS = CommandFamily("aws", "prefix", "aws", fallback="aws help", hint="--task-hint")
BASH_BLOCK = CommandFamily("bash block", "block", service=0, operation=1, fallback="true")
SHELL_SESSION = CommandFamily("shell session", "line", service=0, operation=1, fallback="true")
ENVIRONMENT = CommandFamily("environment", "action")
FAMILIES: Mapping[str, CommandFamily] = MappingProxyType(
    {family.name: family for family in (AWS, BASH_BLOCK, SHELL_SESSION, ENVIRONMENT)}
)


def prefix_family(name: str, prefix: str) -> CommandFamily:
    """A project's own family: its first two words after the program name service and operation."""
    return CommandFamily(name, "prefix", prefix, fallback=f"{prefix.strip()} --help")


_FENCE = "```"
_CAPITAL = re.compile(r"[A-Z][a-z']*[,.:!]?$")
_SHELL_SIGNS = re.compile(r"[-/|<>$=;&*\"`~\\]")
FLAGS = ("fmt", "xtr", "exact", "svc", "op_token", "service_and_op", "exact_shell")
Mark = Literal["exact", "differs", "none"]


@dataclass(frozen=True, slots=True)
class CommandScore:
    """How one answer compares.

    fmt             the answer is a command with nothing before it
    xtr             a command can be extracted from it
    exact           the extracted command equals the expected one as a string
    svc, op_token   their service words, their operation words are equal; service_and_op: both
    exact_shell     equal after shell tokenisation, flags in any order; shown beside `exact`, never instead of it
    """

    extracted: str
    fmt: bool
    xtr: bool
    exact: bool
    svc: bool
    op_token: bool
    service_and_op: bool
    exact_shell: bool

    @property
    def mark(self) -> Mark:
        """`exact` ✓, `differs` ~ (extracted, but another command), `none` ✗."""
        return "exact" if self.exact else "differs" if self.xtr else "none"


FAILED = CommandScore("", *[False] * len(FLAGS))


def extract(answer: str, family: CommandFamily) -> str:
    """Return the command in an answer, or the whole stripped answer if there is none.

    Prefix rule: an answer that starts with a code fence loses every line that starts with one; then the first line
    that, stripped, starts with the prefix. Block rule: the script of the first fenced shell block. Line rule: the same
    if there is a block; else the text from the first line on that is no prose, without a prompt such as `$ `.
    """
    text = answer.strip()
    if family.rule == "line":
        return _typed(text) or text
    if family.rule == "block":
        blocks = bash_blocks(text)
        return blocks[0].script.strip() if blocks else text
    if text.startswith(_FENCE):
        text = "\n".join(line for line in text.splitlines() if not line.strip().startswith(_FENCE)).strip()
    for line in text.splitlines():
        if line.strip().startswith(family.lead):
            return line.strip()
    return text


def score_command(answer: str, expected: str, family: CommandFamily) -> CommandScore:
    """Score an answer without its thinking against the expected command, in linear time."""
    text, wanted = answer.strip(), expected.strip()
    found = extract(text, family)
    if family.rule == "block":
        blocks = bash_blocks(text)
        fmt, xtr = len(blocks) == 1 and text.startswith((_FENCE, "~~~")), bool(blocks)
        wanted = extract(wanted, family)
    elif family.rule == "line":
        fmt, xtr = _typed(text) == text != "", bool(_typed(text))
    else:
        fmt, xtr = text.startswith(family.lead), found.startswith(family.lead)
    svc = _same_word(found, wanted, family.service)
    op_token = _same_word(found, wanted, family.operation)
    return CommandScore(
        extracted=found,
        fmt=fmt,
        xtr=xtr,
        exact=found == wanted,
        svc=svc,
        op_token=op_token,
        service_and_op=svc and op_token,
        exact_shell=found == wanted or (xtr and same_command(found, wanted)),
    )


def _typed(text: str) -> str:
    """The script that somebody would type, or an empty text. Prose begins with a capital letter, or is a sentence: four
    words or more that end with a point or a colon, without a sign that a shell reads."""
    if blocks := bash_blocks(text):
        return blocks[0].script.strip()
    lines = text.splitlines()
    for place, line in enumerate(lines):
        bare = line.strip().removeprefix("$ ")
        if bare and not bare.startswith(_FENCE) and not _is_prose(bare):
            return "\n".join([bare, *lines[place + 1 :]]).strip()
    return ""


def _is_prose(line: str) -> bool:
    first = line.split(maxsplit=1)[0]
    if _CAPITAL.match(first) and "=" not in first and "/" not in first:
        return True
    return len(line.split()) >= 4 and line[-1] in ".:!?" and not _SHELL_SIGNS.search(line)


def _same_word(found: str, wanted: str, place: int) -> bool:
    """Whether both have the same word at this position. Words are split at blanks, as for the published figures."""
    mine, theirs = found.split(), wanted.split()
    return len(mine) > place and len(theirs) > place and mine[place] == theirs[place]
