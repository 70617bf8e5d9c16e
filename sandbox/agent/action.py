"""Reads a model's reply: the one command in it, or why there is none; and whether commands loop.

Thinking is removed first. The action is the first fenced block, or without one the whole reply. `exit` and
`panic [reason]` alone are terminals, everything else is a command.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

MAX_ACTION_BYTES = 16 * 1024
_OPENING = re.compile(r"<think(?:ing)?>", re.IGNORECASE)
_CLOSING = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})", re.MULTILINE)
_OPENS_BLOCK = re.compile(r"[ \t]*(?P<marks>`{3,}|~{3,})[^`]*")
_ONE_LINE_BLOCK = re.compile(r"[ \t]*```(?P<command>[^`]+)```[ \t]*")
_TERMINAL = re.compile(r"(?P<exit>exit)(?: +0)?|(?P<panic>panic)(?:[ \t]+(?P<reason>.*))?")
_CUT = frozenset({"length", "max_tokens"})


class FormatError(Exception):
    """The reply contains no action; the message is sent to the model."""


@dataclass(frozen=True, slots=True)
class Ending:
    """An action that ends the session: `terminal` is `exit` or `panic`, `reason` the text after `panic`."""

    terminal: str
    reason: str = ""

    @property
    def line(self) -> str:
        """The action as recorded; `exit 0` becomes `exit`."""
        return f"{self.terminal} {self.reason}".strip()


def read_action(reply: str, *, finish_reason: str = "") -> str:
    """Return the command of a reply, stripped; raises `FormatError` if it is missing, unfinished or too long.

    `finish_reason` is the endpoint's: a reply cut by the token limit counts only if its block is complete.
    """
    said = cut_thinking(reply)
    block = _first_block(said)
    if block is None and finish_reason in _CUT:
        raise FormatError("Your reply was cut off before its command was complete. Keep it short.")
    action = (said if block is None else block).strip()
    if not action:
        raise FormatError("Your reply holds no command. Give exactly one command in one fenced block.")
    return checked_command(action)


def checked_command(action: str) -> str:
    """Return the command, a terminal in its recorded form. Raises `FormatError` for one that no terminal takes."""
    if "\0" in action or any("\ud800" <= sign <= "\udfff" for sign in action):
        raise FormatError("Your command holds characters that no terminal takes (NUL, half a character).")
    size = len(action.encode())
    if size > MAX_ACTION_BYTES:
        raise FormatError(f"Your command has {size:,} bytes; at most {MAX_ACTION_BYTES:,} are taken.")
    ending = ending_of(action)
    return ending.line if ending else action


def ending_of(action: str) -> Ending | None:
    """Return the ending if the action is a terminal and nothing else."""
    found = _TERMINAL.fullmatch(action.strip())
    if found is None:
        return None
    return Ending(found["exit"] or found["panic"], (found["reason"] or "").strip())


def cut_thinking(reply: str) -> str:
    """Return the reply without its thinking: closed sections, everything before a lone closing tag, and an unclosed
    section at the start. Tags inside a fenced block belong to the command."""
    said = reply
    while True:
        closing = _CLOSING.search(said)
        before = closing.start() if closing else len(said)
        opening = _OPENING.search(said, 0, before)
        if opening and not _FENCE.search(said, 0, opening.start()):
            if closing is None:
                return said if said[: opening.start()].strip() else ""
            said = said[: opening.start()] + said[closing.end() :]
        elif closing and len(_FENCE.findall(said, 0, before)) % 2 == 0:
            said = said[closing.end() :]
        else:
            return said


def _first_block(said: str) -> str | None:
    """Return the text of the first fenced block, None without one; raises `FormatError` if it is not closed."""
    lines = said.split("\n")
    for number, line in enumerate(lines):
        if inline := _ONE_LINE_BLOCK.fullmatch(line):
            return inline["command"]
        if opens := _OPENS_BLOCK.fullmatch(line.rstrip("\r")):
            inside: list[str] = []
            for inner in lines[number + 1 :]:
                if _closes(inner.strip(), opens["marks"]):
                    return "\n".join(inside)
                inside.append(inner)
            raise FormatError("The fenced block of your reply is not closed. Close it after the command.")
    return None


def _closes(line: str, marks: str) -> bool:
    return len(line) >= len(marks) and set(line) == {marks[0]}


LONG_RUN = 3
HALF, ENOUGH = 0.5, 4


@dataclass(frozen=True, slots=True)
class LoopFacts:
    """`repeated_share` (0–1) of the commands repeat earlier ones; `longest_repeat` is the longest run of equal ones."""

    commands: int
    repeated_share: float
    longest_repeat: int

    @property
    def looping(self) -> bool:
        """Three equal commands in a row, or at least four commands of which half are repeats."""
        return self.longest_repeat >= LONG_RUN or (self.commands >= ENOUGH and self.repeated_share >= HALF)


def loop_facts(commands: Sequence[str] | Sequence[bytes]) -> LoopFacts:
    """`commands` are without the terminal and compared as they are written."""
    total = len(commands)
    repeated = (total - len(set(commands))) / total if total else 0.0
    longest = max((len(list(run)) for _, run in groupby(commands)), default=0)
    return LoopFacts(total, repeated, longest)
