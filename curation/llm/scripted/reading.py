"""How a scripted judge reads an answer: five marks from 0 to 1, each with its reason."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from curation.llm.scripted.text import (
    ANY_BLOCK,
    BLOCK,
    THOUGHT,
    WORD,
    command_count,
    commands_of,
    identifiers_in,
    paths_in,
    style_of,
    targets_of,
    words_in,
)

LONG_ANSWER = 1400  # characters; an edit of a whole function stays below
WIDE = re.compile(r"\bfind\s+/(?:\s|$)|\bls\s+-\w*R|\bgrep\s+-\w*r\w*\s.*\s/(?:\s|$)|\btree\s*$|\bfind\s+\.\s*(?:$|\|)")
WHOLE_FILE = re.compile(r"(?:^|&&\s*)(?:cat|nl)\s+(?:-\w+\s+)?[\w./-]+\s*$")
NARROW = re.compile(r"\d+,\d+p|::|\s-k\s|\s-run\s|head\s+-|tail\s+-|--test-name-pattern|-g\s+'")
STEP_FACTS = {
    "explore": "only lists what is there",
    "search": "searches for the place",
    "read": "reads on",
    "edit": "makes the change",
    "test": "checks the work",
    "submit": "submits the work",
    "other": "does little for the task",
}
WORD_WEIGHT = 0.03
SCRATCH = re.compile(r"/(?:tmp|dev)\b")
CONVENTIONAL = {"package.json", "pyproject.toml", "go.mod", "README.md"}  # common names, which an answer may assume
LATE_STEPS = {"explore": 0.35, "search": 0.55, "read": 0.7, "edit": 0.85, "test": 0.85, "submit": 0.9, "other": 0.3}
EARLY_STEPS = {"explore": 0.6, "search": 0.8, "read": 0.75, "edit": 0.35, "test": 0.7, "submit": 0.0, "other": 0.3}


@dataclass(frozen=True)
class HistoryEvidence:
    """The evidence that a judge reads in the history: its text, the task's words, and the agent's actions."""

    text: str
    task_words: frozenset[str]
    commands: frozenset[str]
    read_paths: frozenset[str]
    edited: bool
    tested_after_edit: bool


@dataclass(frozen=True)
class ScriptedMark:
    """A mark from 0 (bad) to 1 (good) and the fact behind it, which continues the sentence "answer 1 …"."""

    value: float
    fact: str


@lru_cache(maxsize=128)  # both orders and all judges of a duel read the same history
def read_history(text: str) -> HistoryEvidence:
    commands = list(commands_of(text, ANY_BLOCK))
    styles = [style_of(command) for command in commands]
    last_edit = max((i for i, style in enumerate(styles) if style == "edit"), default=-1)
    read = {path for c, style in zip(commands, styles, strict=True) if style == "read" for path in paths_in(c)}
    opening = text.split("\nTHOUGHT:", 1)[0]  # the task; a mention of THOUGHT: inside the system message is no turn
    return HistoryEvidence(
        text=text,
        task_words=words_in(opening[-4000:]),
        commands=frozenset(commands),
        read_paths=frozenset(read),
        edited=last_edit >= 0,
        tested_after_edit=last_edit >= 0 and "test" in styles[last_edit + 1 :],
    )


def read_answer(answer: str, evidence: HistoryEvidence, *, thought_counts: bool = True) -> Mapping[str, ScriptedMark]:
    """The marks of `answer` by dimension. Without `thought_counts` only its command is compared with the history."""
    blocks = list(commands_of(answer, BLOCK))
    command = blocks[0] if blocks else ""
    style = style_of(command)
    prose = answer.split("```", 1)[0] if thought_counts else ""
    invented = _unseen(command, prose, style, evidence)
    again = command in evidence.commands
    return {
        "correctness": _correctness(answer, command, style, invented, again, evidence),
        "grounding": _grounding(command, prose, invented),
        "progress": _progress(command, style, invented, again, evidence),
        "protocol": _protocol(answer, blocks),
        "efficiency": _efficiency(answer, command, style, again, evidence),
    }


def general_mark(answer: str, evidence: HistoryEvidence) -> ScriptedMark:
    """The mark for a dimension of a project's own: what the answer shares with the first message, and its length."""
    shared = len(words_in(answer) & evidence.task_words)
    value = 0.3 + WORD_WEIGHT * min(shared, 16) - (0.2 if len(answer) > LONG_ANSWER else 0.0)
    return ScriptedMark(value, f"shares {shared} words with the question" if answer.strip() else "says nothing")


def _unseen(command: str, prose: str, style: str, evidence: HistoryEvidence) -> list[str]:
    """Names in the answer that are not in the history.

    Files that the command writes, names that it searches for, and code inside an edit or script do not count.
    """
    created = set(re.findall(r">\s*([\w./-]+)", command)) if style in ("edit", "test") else set()
    searched = command if style == "search" else ""
    names = [path for path in (*targets_of(command), *paths_in(prose)) if path not in created | CONVENTIONAL]
    names += [name for name in identifiers_in(prose) if name not in searched and name not in command]
    return [n for n in dict.fromkeys(names) if n not in evidence.text and not SCRATCH.match(n)]


def _correctness(
    answer: str, command: str, style: str, invented: list[str], again: bool, evidence: HistoryEvidence
) -> ScriptedMark:
    if not command:
        return ScriptedMark(0.0, "runs nothing")
    if style == "submit" and not evidence.tested_after_edit:
        return ScriptedMark(0.1, "submits work that no test has confirmed")
    if again:
        return ScriptedMark(0.15, "repeats a command whose output is already there")
    targets = targets_of(command)
    missing = next((name for name in targets if name in invented), None)
    if missing:
        return ScriptedMark(0.2, f"acts on {missing}, which may not exist")
    shared = len(words_in(answer) & evidence.task_words)
    known = next((path for path in targets if path in evidence.text), None)
    narrow = NARROW.search(command) is not None or style == "search"
    due = (style == "edit" and bool(evidence.read_paths)) or (style in ("test", "submit") and evidence.edited)
    value = 0.25 + WORD_WEIGHT * min(shared, 12) + 0.12 * bool(known) + 0.08 * narrow + 0.2 * due
    facts = [f"shares {shared} words with the task"]
    facts += [f"acts on {known}"] if known else []
    facts += ["asks for a part only"] if narrow else []
    facts += ["takes the step that is due"] if due else []
    return ScriptedMark(min(value, 1.0), " and ".join([", ".join(facts[:-1]), facts[-1]] if len(facts) > 1 else facts))


def _grounding(command: str, prose: str, invented: list[str]) -> ScriptedMark:
    if not invented:
        return ScriptedMark(0.8, "names only what the history shows")
    targets = targets_of(command)
    named = len({*targets, *paths_in(prose), *identifiers_in(prose)})
    value = 0.75 - 0.5 * len(invented) / max(named, 1) - (0.25 if set(targets) & set(invented) else 0.0)
    return ScriptedMark(max(value, 0.0), f"names {invented[0]}, which the history does not show")


def _progress(command: str, style: str, invented: list[str], again: bool, evidence: HistoryEvidence) -> ScriptedMark:
    if not command:
        return ScriptedMark(0.0, "runs nothing")
    if again:
        return ScriptedMark(0.0, "runs a command that was run before")
    if style == "submit" and not evidence.tested_after_edit:
        return ScriptedMark(0.1, "stops before the change was tested")
    if style == "edit" and not evidence.read_paths:
        return ScriptedMark(0.3, "edits code it has not read")
    targets = targets_of(command)
    if style == "read" and targets and NARROW.search(command) is None and set(targets) <= evidence.read_paths:
        return ScriptedMark(0.25, f"reads {targets[0]} once more")
    value = (LATE_STEPS if evidence.commands else EARLY_STEPS)[style]
    if set(targets) & set(invented):
        return ScriptedMark(min(value, 0.35), "would most likely end in a missing file")
    if evidence.edited and not evidence.tested_after_edit and style in ("explore", "search"):
        value = 0.3
    return ScriptedMark(value, STEP_FACTS[style])


def _protocol(answer: str, blocks: list[str]) -> ScriptedMark:
    if len(blocks) != 1:
        return ScriptedMark(0.2, f"has {len(blocks)} bash blocks")
    commands = command_count(blocks[0])
    before = THOUGHT.sub("", answer.split("```", 1)[0])
    if len(WORD.findall(before)) < 2:  # the label alone is no thought
        return ScriptedMark(0.4, "has no THOUGHT")
    if commands != 1:
        return ScriptedMark(0.6, f"has {commands} commands in its block")
    return ScriptedMark(1.0, "has a THOUGHT and one command")


def _efficiency(answer: str, command: str, style: str, again: bool, evidence: HistoryEvidence) -> ScriptedMark:
    if again or not command:
        return ScriptedMark(0.1, "repeats output that is already there" if again else "runs nothing")
    if WIDE.search(command):
        return ScriptedMark(0.25, "lists far more than it needs")
    if WHOLE_FILE.search(command):
        return ScriptedMark(0.5, "prints a whole file")
    if style == "explore" and evidence.read_paths:
        return ScriptedMark(0.45, "goes back to listing files")
    if len(answer) > LONG_ANSWER:
        return ScriptedMark(0.6, f"takes {len(answer)} characters")
    return ScriptedMark(max(0.9 - 0.15 * (command_count(command) - 1), 0.4), "is a cheap step")
