"""Signatures and groups: what counts as the same text, and what as nearly the same."""

import random

import numpy as np
import pytest

from curation.exports.hygiene.signatures import PARTS, Signature, signature
from judging.near_duplicates import Groups, bands_of, group_exact, group_near

WORDS = [f"{first}{second}" for first in "bdfgklmnprst" for second in ("ala", "eno", "iro", "ulu", "ost", "ink", "arm")]


def text(seed: int, words: int = 200) -> list[str]:
    chosen = random.Random(seed)
    return [chosen.choice(WORDS) for _ in range(words)]


def changed(words: list[str], places: int, seed: int = 0) -> list[str]:
    chosen = random.Random(seed)
    for place in chosen.sample(range(len(words)), places):
        words = [*words[:place], f"other{place}", *words[place + 1 :]]
    return words


def signed(words: list[str], history: str = "") -> Signature:
    return signature(history=history, learned=[" ".join(words)])


def grouped(signatures: list[Signature], threshold: float = 0.85) -> list[list[int]]:
    near = [one.near for one in signatures]
    groups = Groups(len(signatures))
    group_exact(groups, np.frombuffer(b"".join(one.exact for one in signatures), dtype="<u8"))
    group_near(
        groups,
        bands_of(near, PARTS),
        lambda rows: [near[row] for row in rows.tolist()],
        threshold=threshold,
        parts=PARTS,
    )
    return sorted(sorted(rows) for rows in groups.sets().values())


def test_case_and_white_space_do_not_count() -> None:
    words = text(1)
    assert signed(words) == signature(history=" \n", learned=["  ".join(words).upper()])


def test_a_short_text_is_only_compared_as_a_whole_with_all_of_its_prompt() -> None:
    shared = " ".join(text(7, 500))
    prompts = [f"{shared} Count the {task}." for task in ("orders", "users", "orders")]

    assert grouped([row(["ls", "-l"], shown=shown) for shown in prompts]) == [[0, 2]]
    assert grouped([row(["ls", "-l"], shown=shared), row(["ls", "-a"], shown=shared)]) == []


@pytest.mark.parametrize("answer", [3, 12, 30])
def test_equal_answers_to_different_tasks_under_one_long_text_are_no_duplicates(answer: int) -> None:
    shared, task = (
        text(8, 1_000),
        "add a column with the year of {} to each table of the {} that the report of {} and {} reads",
    )
    prompts = [" ".join(["Solve the task.", task.format(*text(number, 4)), *shared]) for number in range(30)]

    assert grouped([row(text(9, answer), shown=shown) for shown in prompts]) == []


def test_a_word_more_or_less_in_the_prompt_of_a_long_answer_hides_no_duplicate() -> None:
    prompt, answer = text(10, 60), text(11, 300)
    rows = [row(answer, shown=" ".join(words)) for words in (prompt, changed(prompt, 1), ["please", *prompt])]

    assert grouped(rows) == [[0, 1, 2]]


def row(learned: list[str], *, steps: str = "", shown: str = "", setting: str = "") -> Signature:
    return signature(
        history="\n".join([setting, shown, steps]),
        learned=[" ".join(learned)],
        steps=[steps],
        shown=[shown],
        setting=setting,
    )


def test_rows_are_near_only_if_what_is_learned_the_steps_and_the_rest_are() -> None:
    learned, steps, shown = text(2), " ".join(text(3)), " ".join(text(4))
    other = " ".join(text(5))
    near = row(changed(learned, 2), steps=steps, shown=shown, setting="You are an agent.")
    rows = [
        row(learned, steps=steps, shown=shown, setting="You are an agent."),
        row(text(6), steps=steps, shown=shown, setting="You are an agent."),
        row(learned, steps=other, shown=shown, setting="You are an agent."),
        row(learned, steps=steps, shown=other, setting="You are an agent."),
        row(learned, steps=steps, shown=shown, setting="You are a poet."),
        near,
    ]

    assert grouped(rows) == [[0, 5]]


def test_rows_with_one_short_last_step_are_found_by_the_steps_before() -> None:
    def step(number: int, clock: str) -> str:
        return " ".join(f"cat part{place} # {clock}" for place in range(number, number + 20))

    rows = [
        row(["submit"], steps=step(number, clock)) for number, clock in ((1, "10:01"), (1, "10:02"), (300, "10:01"))
    ]

    assert grouped(rows) == [[0, 1]]


@pytest.mark.parametrize("seed", range(20))
def test_a_text_with_few_changes_is_found_and_one_with_many_is_not(seed: int) -> None:
    words = text(seed, 400)
    few, many = changed(words, 4, seed), changed(words, 60, seed)

    assert grouped([signed(words), signed(text(seed + 1000)), signed(few), signed(many)]) == [[0, 2]]


def test_groups_are_found_among_many_texts() -> None:
    texts = [text(seed) for seed in range(500)]
    pairs = [(seed, 500 + number) for number, seed in enumerate(range(0, 500, 10))]
    texts += [changed(texts[seed], 2, seed) for seed, _ in pairs]

    assert grouped([signed(words) for words in texts]) == sorted(map(list, pairs))


def test_groups_are_transitive() -> None:
    groups = Groups(6)
    for first, second in ((4, 5), (1, 2), (5, 1)):
        groups.join(first, second)

    assert {root: sorted(rows) for root, rows in groups.sets().items()} == {1: [1, 2, 4, 5]}
