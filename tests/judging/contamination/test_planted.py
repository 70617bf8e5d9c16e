"""Rows of the published split, planted in unrelated training rows with one kind of difference each."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain
from typing import Any

import pytest

from judging.contamination.find import Match, contamination
from judging.contamination.levels import Level, contaminates
from judging.contamination.rows import ComparedRow, TrainingRow
from tests.parts import shared_data

Plant = Callable[[ComparedRow], ComparedRow | None]
CYRILLIC = str.maketrans("aeoc", "аеос")


def compare(rows: Sequence[ComparedRow], training: Sequence[ComparedRow]) -> Iterator[Match]:
    return contamination(rows, [TrainingRow.of(row, line) for line, row in enumerate(training)])


@cache
def rows_of(name: str) -> list[ComparedRow]:
    return [_row(json.loads(line)) for line in shared_data("aws_cli", f"{name}.jsonl").open()]


def _row(value: dict[str, Any]) -> ComparedRow:
    *before, last = value["messages"]
    opening = next(message["content"] for message in before if message["role"] == "user")
    prompt = "\n\n".join(f"{message['role']}:\n{message['content']}" for message in before)
    return ComparedRow(prompt, opening, last["content"], str(value["task_id"]))


def apart() -> tuple[list[ComparedRow], list[ComparedRow]]:
    """Held-out rows of every third task, and training rows of the other tasks with other answers."""
    held_out = [row for row in rows_of("val") if int(row.task_id) % 3 == 0]
    answers = {row.answer for row in held_out}
    training = [row for row in rows_of("train") if int(row.task_id) % 3 and row.answer not in answers]
    return held_out, training


def rewritten(row: ComparedRow, change: Callable[[str], str], answer: str | None = None) -> ComparedRow:
    """The row with another text of its user and without its id."""
    user = change(row.opening)
    return ComparedRow(row.prompt.replace(row.opening, user), user, row.answer if answer is None else answer)


def values(row: ComparedRow) -> ComparedRow:
    return rewritten(row, lambda text: re.sub(r"reward: \S+", "reward: 0.123", re.sub(r"Step: \d+", "Step: 77", text)))


def whitespace(row: ComparedRow) -> ComparedRow:
    return rewritten(row, lambda text: text.replace(" ", "  "), row.answer.replace(" ", "\t"))


def unicode(row: ComparedRow) -> ComparedRow:
    return rewritten(row, lambda text: text.translate(CYRILLIC), row.answer.translate(CYRILLIC))


def json_keys(row: ComparedRow) -> ComparedRow | None:
    found = re.search(r"(?<=')\{.*\}(?='$)", row.answer)
    if not found or len(json.loads(found[0])) < 2:
        return None
    turned = json.dumps(dict(reversed(list(json.loads(found[0]).items()))))
    return rewritten(row, lambda text: f"{text}\n\nNow.", row.answer.replace(found[0], turned))


def flags(row: ComparedRow) -> ComparedRow | None:
    first, *others = re.split(r" (?=--)", row.answer)
    if len(others) < 2:
        return None
    return rewritten(row, lambda text: f"{text}\n\nNow.", " ".join([first, *reversed(others)]))


def names(row: ComparedRow) -> ComparedRow | None:
    found = sorted(set(re.findall(r"'([a-z-]{3,})'", row.opening.split("\n")[0])), key=len, reverse=True)

    def change(text: str) -> str:
        for number, name in enumerate(found):
            text = text.replace(name, f"{'zyx'[number]}-thing")
        return text

    return rewritten(row, change, change(row.answer)) if found and change(row.answer) != row.answer else None


def answer(row: ComparedRow) -> ComparedRow | None:
    other = f"Do what my colleague asked for. {row.opening[::-1][:30]}"
    return ComparedRow(f"user:\n{other}", other, row.answer) if len(row.answer.split()) > 2 else None


def cut(row: ComparedRow) -> ComparedRow:
    return rewritten(row, lambda text: text[: len(text) * 6 // 10])


def reworded(row: ComparedRow) -> ComparedRow:
    def change(text: str) -> str:
        return text.replace("TASK: ", "TASK: Now, ").replace("Send your next AWS CLI", "Send the one")

    return rewritten(row, change)


KINDS: dict[Level, Plant] = {
    Level.EXACT: lambda row: row,
    Level.NEAR: values,
    Level.CASE: lambda row: rewritten(row, str.upper, row.answer.upper()),
    Level.UNICODE: unicode,
    Level.WHITESPACE: whitespace,
    Level.JSON: json_keys,
    Level.FLAGS: flags,
    Level.NAMES: names,
    Level.ANSWER: answer,
    Level.PREFIX: cut,
    Level.SIMILAR: reworded,
}


@pytest.mark.parametrize("kind", KINDS)
def test_planted_rows_are_found_and_named(kind: Level) -> None:
    held_out, training = apart()
    seen: set[str] = set()
    for row in held_out:
        planted = KINDS[kind](row)
        if planted is None or row.answer in seen or len(seen) == 4:
            continue
        seen.add(row.answer)
        found = set(chain.from_iterable(match.levels for match in compare([row], [*training[:40], planted])))
        assert kind in found and contaminates(found), (row.answer, found)
    assert seen


def test_a_row_with_several_differences_names_each_that_it_needs() -> None:
    row = next(row for row in rows_of("val") if "put-item" in row.answer)
    planted = whitespace(unicode(replace(row, answer=row.answer.upper())))
    found = {level for match in compare([row], [planted]) for level in match.levels}
    assert {Level.UNICODE, Level.WHITESPACE, Level.CASE} <= found
    assert found.isdisjoint({Level.EXACT, Level.PROMPT, Level.JSON, Level.FLAGS, Level.NAMES})


def test_unrelated_rows_are_clean() -> None:
    held_out, training = apart()
    assert len(held_out) > 30 and len(training) > 500
    found = list(compare(held_out, training))
    assert not [match for match in found if contaminates(match.levels)]


def test_an_answer_that_many_tasks_share_is_counted_apart() -> None:
    def asked(task: str, answer: str = "aws help --task-hint") -> ComparedRow:
        return ComparedRow(f"user:\n{task}", task, answer)

    row = asked("Make a bucket for the photos of the team.")
    once = list(compare([row], [asked("Send mail to all users who left.")]))
    assert [match.levels for match in once] == [(Level.ANSWER,)]
    often = list(compare([row], [asked("Send mail to all users who left."), asked("Stop the two old servers.")]))
    assert {match.levels for match in often} == {(Level.COMMON,)}
    short = compare([asked("Look around here.", "ls -la")], [asked("Which files are large?", "ls -la")])
    assert [match.levels for match in short] == [(Level.COMMON,)]


@pytest.mark.parametrize("text", ['{"a": ' * 50_000, "{" * 50_000, "--a " * 30_000, "'a " * 30_000, "a" * 200_000])
def test_hostile_texts_take_no_time(text: str) -> None:
    row = ComparedRow(text, text, text[:2000])
    list(compare([row], [ComparedRow(f"{text} b", f"{text} b", text[:1000])]))
