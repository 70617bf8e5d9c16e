"""Scripted judges: one comparison by counted facts, with four temperaments.

A judge reads the last user message, which ends with ``<answer_1>``…``</answer_1>`` and ``<answer_2>``…``</answer_2>``
after ``<history>``…``</history>``, and replies one JSON object on one line: 1 = the first answer is better, 2 = the
second, 0 = a draw. Asked for leaks, it names the sentences of the record that an answer repeats in other forms of their
words.
"""

import json
import re
from dataclasses import dataclass
from hashlib import blake2b

from curation.llm.scripted.reading import HistoryEvidence, ScriptedMark, general_mark, read_answer, read_history
from curation.llm.scripted.text import BLOCK, commands_of

KEY = r'(?: key="\w+")?>'
OPENED = re.compile(rf"<answer_1{KEY}\n")
ANSWERS = re.compile(rf"<answer_1{KEY}\n(.*?)\n?</answer_1{KEY}\s*<answer_2{KEY}\n(.*?)\n?</answer_2{KEY}", re.DOTALL)
ASKED = re.compile(r'"(\w+)": 0\|1\|2')
HISTORY = re.compile(rf"<history{KEY}(.*?)</history{KEY}", re.DOTALL)
ROOM_FOR_QUOTES = 1700  # characters of both answers that judge-first can restate before its reply is cut
EPSILON = 1e-9


@dataclass(frozen=True)
class Temper:
    """How large a lead must be to count, whether the THOUGHT is checked too, and who wins a close case. `taste` is how
    far the judge's own opinion of an answer moves a mark, in either direction."""

    name: str
    margin: float
    taste: float
    thought_counts: bool = True
    leans_first: bool = False


@dataclass(frozen=True)
class JudgedCase:
    evidence: HistoryEvidence
    answer_1: str
    answer_2: str
    dimensions: tuple[str, ...]

    def marks(self, answer: str, temper: "Temper") -> dict[str, ScriptedMark]:
        known = read_answer(answer, self.evidence, thought_counts=temper.thought_counts)
        return {name: known.get(name) or general_mark(answer, self.evidence) for name in self.dimensions}


CAREFUL = Temper("careful", margin=0.16, taste=0.1)
BRISK = Temper("brisk", margin=0.07, taste=0.2, thought_counts=False)
FIRST = Temper("first", margin=0.12, taste=0.0, leans_first=True)


class NothingToCompare(ValueError):
    """The last user message does not end with two delimited answers."""


def _case(prompt: str) -> JudgedCase:
    """Split the judge's prompt into history and answers, or raise `NothingToCompare`."""
    start = max((match.start() for match in OPENED.finditer(prompt)), default=-1)
    found = ANSWERS.search(prompt, start) if start >= 0 else None
    if found is None:
        raise NothingToCompare("I compare <answer_1> with <answer_2>, but the last message does not hold both.")
    shown = HISTORY.search(prompt, 0, start)
    history = shown[1] if shown else prompt[:start]
    dimensions = tuple(ASKED.findall(prompt, found.end())) or tuple(read_answer("", read_history("")))
    return JudgedCase(read_history(history), found.group(1), found.group(2), dimensions)


def _choice(difference: float, temper: Temper) -> int:
    if abs(difference) < EPSILON:
        return 0
    if abs(difference) <= temper.margin:
        return 1 if temper.leans_first else 0
    return 1 if difference > 0 else 2


def _reason(marks: tuple[dict[str, ScriptedMark], dict[str, ScriptedMark]], choices: dict[str, int]) -> str:
    """One sentence naming the dimension with the widest lead and the fact that made it."""
    one, two = marks
    leads = {d: abs(one[d].value - two[d].value) for d in choices}
    decided = [d for d in choices if choices[d]]
    if not decided:
        return "No dimension differs enough to call: " + _both(one, two, max(choices, key=leads.__getitem__))
    widest = max(decided, key=leads.__getitem__)
    value_1, value_2 = one[widest].value, two[widest].value
    weaker, mark = (2, two[widest]) if value_1 > value_2 else (1, one[widest])
    if choices[widest] == weaker:
        return f"Close on every dimension, so the first answer gets it: {_both(one, two, widest)}"
    stronger = choices[widest]
    better = marks[stronger - 1][widest]
    return f"{widest.capitalize()} decided most: answer {weaker} {mark.fact}, answer {stronger} {better.fact}."


def _both(one: dict[str, ScriptedMark], two: dict[str, ScriptedMark], dimension: str) -> str:
    facts = one[dimension].fact, two[dimension].fact
    return f"each {facts[0]}." if facts[0] == facts[1] else f"answer 1 {facts[0]}, answer 2 {facts[1]}."


def _taste(answer: str, dimension: str, temper: Temper) -> float:
    """The judge's own opinion of an answer's commands, the same in both orders: without one all judges of facts are
    copies of each other."""
    commands = "\0".join(commands_of(answer, BLOCK))
    byte = blake2b(f"{temper.name}\0{dimension}\0{commands}".encode(), digest_size=1).digest()[0]
    return temper.taste * (byte / 127.5 - 1)


def _verdict(case: JudgedCase, temper: Temper) -> str:
    one, two = case.marks(case.answer_1, temper), case.marks(case.answer_2, temper)
    tastes = {d: _taste(case.answer_1, d, temper) - _taste(case.answer_2, d, temper) for d in case.dimensions}
    choices = {d: _choice(one[d].value - two[d].value + tastes[d], temper) for d in case.dimensions}
    return json.dumps({**choices, "reason": _reason((one, two), choices)}, ensure_ascii=False)


def careful(prompt: str, attempt: int) -> tuple[str, str]:
    return _verdict(_case(prompt), CAREFUL), "stop"


def brisk(prompt: str, attempt: int) -> tuple[str, str]:
    return _verdict(_case(prompt), BRISK), "stop"


def first(prompt: str, attempt: int) -> tuple[str, str]:
    """Prefers the first answer; restates long answers before judging, and then the verdict is cut off."""
    case = _case(prompt)
    if len(case.answer_1) + len(case.answer_2) > ROOM_FOR_QUOTES:
        quoted = f"Let me restate both answers before I compare them. The first one says: {case.answer_1}"
        return quoted[: ROOM_FOR_QUOTES // 3], "length"
    return _verdict(case, FIRST), "stop"


def rambling(prompt: str, attempt: int) -> tuple[str, str]:
    """Prose without JSON in 2 of 10 cases, cut JSON in 1 of 10; in another 1 of 10 prose in the first attempt only."""
    case = _case(prompt)
    verdict = _verdict(case, CAREFUL)
    lot = blake2b(f"{case.answer_1}\0{case.answer_2}".encode(), digest_size=2).digest()[0] % 10
    if lot < 2 or (lot == 3 and attempt == 1):
        return ("Both answers have their merits. On the whole I lean towards the calmer one.", "stop")
    if lot == 2:
        return verdict[: len(verdict) // 3], "length"
    return f"Here is my verdict.\n\n```json\n{verdict}\n```", "stop"


_PART = re.compile(r"<(history|title|description|files|patch|answer)( key=\"\w+\")?>\n(.*?)\n</\1\2?>", re.DOTALL)
_SENTENCE = re.compile(r"[^.!?\n]{8,400}")
_WORD = re.compile(r"[a-z]{5,}")
_BEGINNING = 5  # letters that two forms of a word share
_ENOUGH = 2


def is_reading(prompt: str) -> bool:
    """Whether a judge is asked for leaks instead of a verdict."""
    return {"history", "patch", "answer"} <= {match[1] for match in _PART.finditer(prompt)}


def read_leaks(prompt: str) -> str:
    """Reply with findings as JSON: a sentence of title or description that shares two words with one of the answer,
    by their first five letters, which the history has not."""
    parts = {match[1]: match[3] for match in _PART.finditer(prompt)}
    known = _beginnings(parts.get("history", ""))
    findings = []
    for said in _SENTENCE.findall(parts.get("answer", "")):
        own = _beginnings(said) - known
        for place in ("title", "description"):
            sentences = _SENTENCE.findall(parts.get(place, ""))
            source = next((text for text in sentences if len(own & _beginnings(text)) >= _ENOUGH), None)
            if source is not None:
                finding = {"answer": said.strip(), "place": place, "record": source.strip(), "reason": "the same fact"}
                findings.append(finding)
                break
    return json.dumps({"findings": findings})


def _beginnings(text: str) -> set[str]:
    return {word[:_BEGINNING] for word in _WORD.findall(text.lower())}
