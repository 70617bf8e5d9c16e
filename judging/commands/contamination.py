"""Rows of an evaluation that occur in training data: exactly, nearly, or by their task and answer."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

# Lines of an agent's prompt that differ from one recording of the same step to the next.
VOLATILE_LABELS = ("last command output", "last output", "command output", "output", "last reward", "reward")
_UUID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE)
_TIME = re.compile(
    r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?\b"
    r"|\b\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?\b"
)
# Hexadecimal digests, and names of resources such as i-0abc12de or req_9f8e7d6c: letters and digits mixed, long.
_ID = re.compile(r"\b(?=[\w-]*\d)(?=[\w-]*[a-z])(?:[0-9a-f]{7,64}|[a-z]{1,6}[-_][0-9a-f]{8,40})\b", re.IGNORECASE)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


class Level(StrEnum):
    """How much of a row occurs in the training data, the strongest match first."""

    EXACT = "exact"
    PROMPT = "prompt"
    NEAR = "near"
    TASK_ANSWER = "task_answer"

    @property
    def sentence(self) -> str:
        return _SENTENCES[self]


_SENTENCES = {
    Level.EXACT: "prompt and answer, word for word",
    Level.PROMPT: "the prompt, word for word",
    Level.NEAR: "the prompt, but for numbers, times, ids, output and reward",
    Level.TASK_ANSWER: "its task together with its answer",
}


@dataclass(frozen=True, slots=True)
class EvalRow:
    """What is compared of a row. `prompt` is every message before the answer, `opening` the first user message."""

    prompt: str
    opening: str
    answer: str
    task_id: str = ""


@dataclass(frozen=True, slots=True)
class Match:
    """`row` and `train_row` count from 0 in the given order; `levels` are all that apply, the strongest first."""

    row: int
    train_row: int
    levels: tuple[Level, ...]


def normalised(text: str, *, volatile: Sequence[str] = VOLATILE_LABELS) -> str:
    """Return the text without what changes between recordings.

    Lines `label: …` of `volatile` are taken out, times, ids and numbers become one sign each, blanks one blank.
    """
    if volatile:
        labels = "|".join(map(re.escape, volatile))
        text = re.sub(rf"^[ \t]*(?:{labels})[ \t]*:.*$", "", text, flags=re.IGNORECASE | re.MULTILINE)
    text = _TIME.sub("⟨time⟩", _UUID.sub("⟨id⟩", text))
    return " ".join(_NUMBER.sub("#", _ID.sub("⟨id⟩", text)).split())


def task_of(opening: str) -> str:
    """The task's own words: the first paragraph of the first user message, as one line."""
    return " ".join(re.split(r"\n\s*\n", opening.strip(), maxsplit=1)[0].split())


def contamination(
    rows: Sequence[EvalRow], training: Iterable[EvalRow], *, volatile: Sequence[str] = VOLATILE_LABELS
) -> Iterator[Match]:
    """The matches, in the order of the training rows; a row's first match of each level is given, later ones not.

    The evaluation is held in memory (by hashes), the training data is read once and may be of any length.
    """
    index: dict[bytes, list[tuple[int, Level]]] = {}
    for number, row in enumerate(rows):
        for level, key in _keys(row, volatile):
            index.setdefault(key, []).append((number, level))
    found: set[tuple[int, Level]] = set()
    for train_number, train_row in enumerate(training):
        levels: dict[int, list[Level]] = {}
        for _, key in _keys(train_row, volatile):
            for number, level in index.get(key, ()):
                if (number, level) not in found and level not in levels.setdefault(number, []):
                    levels[number].append(level)
        for number, its in sorted(levels.items()):
            if its:
                found.update((number, level) for level in its)
                yield Match(number, train_number, tuple(level for level in Level if level in its))


def _keys(row: EvalRow, volatile: Sequence[str]) -> list[tuple[Level, bytes]]:
    """By id and by words: a training file may not have the evaluation's ids."""
    answer = row.answer.strip()
    keys = [
        (Level.EXACT, _digest("exact", row.prompt, answer)),
        (Level.PROMPT, _digest("prompt", row.prompt)),
        (Level.NEAR, _digest("near", normalised(row.prompt, volatile=volatile))),
        (Level.TASK_ANSWER, _digest("words", task_of(row.opening), answer)),
    ]
    if row.task_id:
        keys.append((Level.TASK_ANSWER, _digest("id", row.task_id, answer)))
    return keys


def _digest(*parts: str) -> bytes:
    return hashlib.blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=16).digest()
