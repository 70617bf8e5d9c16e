"""The options of a multiple-choice question, which may stand in another order or under other labels elsewhere."""

import json
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

# In scripts without blanks between words each sign is a word.
_SIGNS = r"\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_SIGN = re.compile(f"[{_SIGNS}]")
# In those of Thai, Lao, Burmese and Khmer it is a letter with the marks around it.
_LETTERS = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_MARKS = r"\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u17b4-\u17d3"
WORD = re.compile(rf"[{_SIGNS}]|[^\W{_SIGNS}{_LETTERS}]+|[{_LETTERS}][{_MARKS}]*")
_ASCII_WORD = re.compile(r"\w+")
# Lines that many programs begin with, and the numbers that listings put before their lines.
_HEADER = re.compile(
    r"^[ \t]*(?:#!.*|# -\*-.*|(?:from [\w.]+ )?import [\w.*]+(?: as \w+)?(?:, [\w.]+(?: as \w+)?)*;?|#include [<\"].*"
    r"|using [\w.]+;|package [\w.]+;?)[ \t]*$",
    re.MULTILINE,
)
_NUMBERED = re.compile(r"^[ \t]*\d{1,6}(?:[:|)\t→]|[ ]{2,})", re.MULTILINE)
# What stands between words where a text is a string of JSON or part of a page.
_MARK = re.compile(
    r"\\+(?:[nrt\"/]|u(?P<code>[0-9a-fA-F]{4}))|</?[A-Za-z][A-Za-z0-9]{0,9}\s?/?>|&(?:nbsp|quot|lt|gt|amp|#\d{1,5});"
)


def words_of(text: str) -> list[str]:
    return (_ASCII_WORD if text.isascii() else WORD).findall(text.casefold())


def with_blanks(text: str) -> str:
    """Return the text with a blank around each sign that is a word."""
    return text if text.isascii() else _SIGN.sub(r" \g<0> ", text)


def without_headers(text: str) -> str:
    return _HEADER.sub("", text)


def readings(text: str) -> list[str]:
    """Return the text without headers: as it is, without escapes and tags, and without the numbers of its lines."""
    text = without_headers(text)
    return list(dict.fromkeys([text, _MARK.sub(_letter, text), _NUMBERED.sub("", text)]))


def _letter(mark: re.Match[str]) -> str:
    """Return a letter for its code, and a blank for any other mark, also for half of a pair of codes."""
    number = int(mark["code"] or "0", 16)
    return chr(number) if number > 0x20 and not 0xD800 <= number < 0xE000 else " "


# `A.`, `(b)`, `3)`, `[C]` and their like.
_LABEL = re.compile(r"(?:^|(?<=\s))[(\[]?(?P<label>[A-Ja-j1-9])[.):\]、][ \t]*(?=\S)", re.MULTILINE)
_BULLET = re.compile(r"^[ \t]*[-*•][ \t]+(?=\S)", re.MULTILINE)
_LINE = re.compile(r"^(?=\S)", re.MULTILINE)
_LIST = re.compile(r'"text":\s?(\[[^\]]{1,4000}\])')
# What names the question and the options.
_FRAME = re.compile(
    r"^\W*(?:question|problem|q)[ \d]{0,5}[:.)]|(?:\banswer )?\b(?:options|choices):?\s*$", re.IGNORECASE
)
# What stands below the options.
_BELOW = re.compile(r"\n\s*\n|\n(?=[^\n]{0,40}\b(?:answer|response|choice)\b)", re.IGNORECASE)
FEWEST, LONGEST, FEWEST_WORDS = 3, 300, 4
_NAMES = frozenset("abcdefghij123456789")


class MultipleChoice(NamedTuple):
    """`stem` is the text before the options, `parts` are the words of the question that ends it, and of each option."""

    stem: str
    parts: Sequence[str]


def multiple_choice(prompt: str, answer: str) -> MultipleChoice | None:
    """Return the question of a prompt that has options, one of which is the answer or is named by it."""
    for begin, options in (_labelled(prompt), _listed(prompt), _below(prompt, _BULLET), _below(prompt, _LINE)):
        parts = [" ".join(words_of(option)) for option in options]
        if len(parts) >= FEWEST and all(parts) and max(map(len, options)) <= LONGEST and _is_one(answer, parts):
            lines = (" ".join(words_of(_FRAME.sub("", line))) for line in reversed(prompt[:begin].splitlines()))
            question = next((line for line in lines if len(line.split()) >= FEWEST_WORDS), "")
            return MultipleChoice(prompt[:begin], [question, *parts]) if question else None
    return None


def _labelled(prompt: str) -> tuple[int, list[str]]:
    """Return the last texts after labels that follow each other."""
    run: list[re.Match[str]] = []
    for match in _LABEL.finditer(prompt):
        if run and ord(match["label"]) == ord(run[-1]["label"]) + 1:
            run.append(match)
        elif match["label"] in ("A", "a", "1"):
            run = [match]
    return _between(prompt, [match.span() for match in run])


def _below(prompt: str, mark: re.Pattern[str]) -> tuple[int, list[str]]:
    """Return the last texts after marks, without anything else between them."""
    begin = prompt.rstrip().rfind("?\n") + 2
    return _between(prompt, [match.span() for match in mark.finditer(prompt, begin)]) if begin > 1 else (0, [])


def _listed(prompt: str) -> tuple[int, list[str]]:
    """Return the texts of the options that datasets have as an object of labels and texts."""
    found = _LIST.search(prompt)
    try:
        given = json.loads(found[1]) if found else []
    except json.JSONDecodeError:
        given = []
    begin = prompt.rfind("{", 0, found.start()) if found else -1
    return max(0, begin), [one for one in given if isinstance(one, str)]


def _between(prompt: str, marks: Sequence[tuple[int, int]]) -> tuple[int, list[str]]:
    if not marks:
        return 0, []
    ends = [prompt[end:start] for (_, end), (start, _) in pairwise(marks)]
    return marks[0][0], [*ends, _BELOW.split(prompt[marks[-1][1] :], maxsplit=1)[0]]


def _is_one(answer: str, options: Sequence[str]) -> bool:
    words = words_of(answer)
    said = f" {' '.join(words)} "
    return bool(words) and (not _NAMES.isdisjoint((words[0], words[-1])) or any(f" {one} " in said for one in options))
