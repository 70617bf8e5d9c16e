"""Compares commands as a shell reads them, without quotes and with flags in any order."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from judging.shell.script import Command, split_commands


@dataclass(frozen=True, slots=True)
class Shape:
    """One command: its plain words in order, and each flag with the values that follow it.

    `--name=value` and `--name value` are the same flag. A word after a flag counts as its value, since only the
    program knows better: `rm -f a b` and `rm a b -f` are therefore different commands.
    """

    words: tuple[str, ...]
    flags: tuple[tuple[str, tuple[str, ...]], ...]
    body: str


@dataclass(frozen=True, slots=True)
class CommandPart:
    """A piece of a comparison: `kind` is word, flag or body; `side` is the answer that contains it."""

    kind: Literal["word", "flag", "body"]
    text: str
    side: Literal["both", "found", "expected"]


def same_command(found: str, expected: str) -> bool:
    """Whether two scripts are the same commands in the same order, each with the same words and flags."""
    mine, theirs = shapes(found), shapes(expected)
    return len(mine) == len(theirs) and bool(mine) and all(map(_equal, mine, theirs))


def shapes(script: str) -> tuple[Shape, ...]:
    return tuple(_shape(command) for command in split_commands(script))


def difference(found: str, expected: str) -> tuple[CommandPart, ...]:
    """What both commands have and what only one of them has: words in order, then flags by name, then heredocs.

    Commands after the first are compared by position; one without a counterpart is listed as a whole.
    """
    mine, theirs = shapes(found), shapes(expected)
    empty = Shape((), (), "")
    parts: list[CommandPart] = []
    for place in range(max(len(mine), len(theirs))):
        one = mine[place] if place < len(mine) else empty
        other = theirs[place] if place < len(theirs) else empty
        parts += [*_word_parts(one.words, other.words), *_flag_parts(one, other), *_body_parts(one, other)]
    return tuple(parts)


def _equal(one: Shape, other: Shape) -> bool:
    return one.words == other.words and Counter(one.flags) == Counter(other.flags) and one.body == other.body


def _shape(command: Command) -> Shape:
    words: list[str] = []
    flags: list[tuple[str, tuple[str, ...]]] = []
    name, values = "", list[str]()
    given = command.words
    end = given.index("--") if "--" in given else len(given)
    for word in given[:end]:
        if not _is_flag(word):
            (values if name else words).append(word)
            continue
        if name:
            flags.append((name, tuple(values)))
        name, _, value = word.partition("=")
        values = [value] if value else []
    if name:
        flags.append((name, tuple(values)))
    # After `--` every word is plain, also with a leading `-`.
    words += given[end:]
    return Shape(tuple(words), tuple(flags), command.body)


def _is_flag(word: str) -> bool:
    """`-5` is a number and `-` is standard input."""
    return word.startswith("-") and word.strip("-") != "" and not word[1:].replace(".", "", 1).isdigit()


def _word_parts(found: Sequence[str], expected: Sequence[str]) -> list[CommandPart]:
    """Words are compared by position: the same word elsewhere is another argument."""
    parts: list[CommandPart] = []
    for place in range(max(len(found), len(expected))):
        mine = found[place] if place < len(found) else None
        theirs = expected[place] if place < len(expected) else None
        if mine is not None and mine == theirs:
            parts.append(CommandPart("word", mine, "both"))
            continue
        parts += [CommandPart("word", mine, "found")] if mine is not None else []
        parts += [CommandPart("word", theirs, "expected")] if theirs is not None else []
    return parts


def _flag_parts(found: Shape, expected: Shape) -> list[CommandPart]:
    mine, theirs = Counter(found.flags), Counter(expected.flags)
    sides: tuple[tuple[Literal["both", "found", "expected"], Counter[tuple[str, tuple[str, ...]]]], ...] = (
        ("both", mine & theirs),
        ("found", mine - theirs),
        ("expected", theirs - mine),
    )
    rows = sorted((name, values, side) for side, counted in sides for name, values in counted.elements())
    order = {"both": 0, "found": 1, "expected": 2}
    return [
        CommandPart("flag", " ".join([name, *values]), side)
        for _, group in groupby(rows, key=lambda row: row[0])
        for name, values, side in sorted(group, key=lambda row: order[row[2]])
    ]


def _body_parts(found: Shape, expected: Shape) -> list[CommandPart]:
    if found.body == expected.body:
        return [CommandPart("body", found.body, "both")] if found.body else []
    sides: list[CommandPart] = [CommandPart("body", found.body, "found")] if found.body else []
    return sides + ([CommandPart("body", expected.body, "expected")] if expected.body else [])
