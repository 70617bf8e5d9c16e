"""The levels of contamination: how a row of an evaluation and a training row are the same."""

from collections.abc import Iterable
from enum import StrEnum


class Level(StrEnum):
    """How much of a row occurs in the training data, the strongest match first.

    `WHITESPACE` to `NAMES` name differences that are ignored: a match has those that it needs.
    """

    EXACT = "exact"
    PROMPT = "prompt"
    NEAR = "near"
    TASK_ANSWER = "task_answer"
    PREFIX = "prefix"
    SIMILAR = "similar"
    CONTAINED = "contained"
    PARAPHRASE = "paraphrase"
    ANSWER = "answer"
    ORIGIN = "origin"
    WHITESPACE = "whitespace"
    CASE = "case"
    UNICODE = "unicode"
    JSON = "json"
    FLAGS = "flags"
    NAMES = "names"
    COMMON = "common"

    @property
    def sentence(self) -> str:
        return _SENTENCES[self]

    @property
    def contaminates(self) -> bool:
        """False for an answer that many tasks share, such as `ls -la`: it is counted, and the row is clean."""
        return self != Level.COMMON


_SENTENCES = {
    Level.EXACT: "prompt and answer, word for word",
    Level.PROMPT: "the prompt, word for word",
    Level.NEAR: "the prompt, but for numbers, times, ids, output and reward",
    Level.TASK_ANSWER: "its task together with its answer",
    Level.PREFIX: "cut short: a prompt or an answer is the beginning of the other",
    Level.SIMILAR: "nearly the same words, with nearly the same answer",
    Level.CONTAINED: "inside a longer text: an example, an earlier turn or an explained answer",
    Level.PARAPHRASE: "the task in other words or in another language",
    Level.ANSWER: "the same answer to another task",
    Level.ORIGIN: "made from the same instance, scenario or task, also with another text",
    Level.WHITESPACE: "the same but for white space",
    Level.CASE: "the same but for upper and lower case",
    Level.UNICODE: "the same but for look-alike letters and other forms of Unicode",
    Level.JSON: "the same but for the order of JSON keys",
    Level.FLAGS: "the same but for the order of shell flags",
    Level.NAMES: "the same but for the names of resources",
    Level.COMMON: "a common answer, which three or more tasks share: not counted as contaminated",
}


def in_order(levels: Iterable[Level]) -> tuple[Level, ...]:
    """Return each level once, the strongest first."""
    given = set(levels)
    return tuple(level for level in Level if level in given)


def contaminates(levels: Iterable[Level]) -> bool:
    return any(level.contaminates for level in levels)
