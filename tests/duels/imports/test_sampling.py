"""Samples of turns: exact in number, repeatable by seed, from windows over the whole source."""

from typing import Any

import pytest

from curation.duels.imports.sampling import SamplingPlan
from curation.duels.models import Prompt
from curation.projects.models import Project
from tests.factories import make_project
from tests.imports.bringing import as_lines, bring, chat

ROWS = [chat(number, turns=1 + number % 4) for number in range(40)]  # 100 turns


def keys(project: Project) -> set[tuple[int, int]]:
    return set(Prompt.objects.of(project).values_list("row_offset", "turn_index"))


def sample(content: bytes, **options: Any) -> set[tuple[int, int]]:
    project = make_project()
    run = bring(project, "turns", content, options=options)
    found = keys(project)
    assert run.result["prompts"] == len(found)
    return found


@pytest.mark.django_db(transaction=True)
def test_the_same_seed_gives_the_same_turns_and_another_seed_others() -> None:
    content = as_lines(ROWS)
    options = {"count": 24, "windows": 5, "window_size": 4}

    first = sample(content, seed=7, **options)

    assert len(first) == 24
    assert sample(content, seed=7, **options) == first
    assert sample(content, seed=8, **options) != first


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("count", "windows"),
    [
        *((count, windows) for count in (1, 3, 99, 100, 101) for windows in ({"windows": 5, "window_size": 3}, {})),
        # One window for each row, and one more. Each is a transaction of its own, which takes long.
        *(pytest.param(count, {"windows": 41, "window_size": 1}, marks=pytest.mark.slow) for count in (3, 101)),
    ],
)
def test_a_sample_has_exactly_the_requested_turns_if_they_exist(count: int, windows: dict[str, int]) -> None:
    assert len(sample(as_lines(ROWS), count=count, **windows)) == min(count, 100)


@pytest.mark.django_db(transaction=True)
def test_rows_give_at_most_turns_per_row_turns() -> None:
    content = as_lines(ROWS)

    for options in ({"count": 30}, {}):
        found = sample(content, turns_per_row=1, **options)
        assert len(found) == len({offset for offset, _ in found}) == options.get("count", 40)
    # all of the first two turns of a row of two, at most two of the others
    assert len(sample(content, turns_per_row=2, count=5000)) == 10 + 30 * 2


@pytest.mark.django_db(transaction=True)
def test_a_second_sample_of_a_source_adds_only_new_turns() -> None:
    project, content = make_project(), as_lines(ROWS)
    options = {"count": 50, "windows": 5, "window_size": 4}

    first = bring(project, "turns", content, options={**options, "seed": 1}).result
    second = bring(project, "turns", content, options={**options, "seed": 2}).result

    assert (first["prompts"], first["duplicates"]) == (50, 0)
    assert second["prompts"] + second["duplicates"] == 50
    assert 0 < second["duplicates"] < 50
    assert len(keys(project)) == 50 + second["prompts"]


@pytest.mark.parametrize("total", [0, 1, 5, 31, 32, 33, 1000, 12345])
@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_blocks_cover_every_row_once(total: int, seed: int) -> None:
    plan = SamplingPlan(total, count=100, windows=7, window_size=32, seed=seed)

    blocks = [*plan.first_blocks(), *plan.further_blocks()]
    rows = [row for start, length in map(plan.span, blocks) for row in range(start, start + length)]

    assert len(blocks) == len(set(blocks))
    assert sorted(rows) == list(range(total))
    assert sum(plan.shares()) == (100 if total else 0)


def test_windows_are_spread_over_the_whole_source() -> None:
    """One in each part of the source, anywhere in it: over many seeds all places come about equally often."""
    total, windows = 1_000_000, 20
    seen = [0] * 200
    for seed in range(500):
        plan = SamplingPlan(total, count=1000, windows=windows, window_size=10, seed=seed)
        starts = [plan.span(block)[0] for block in plan.first_blocks()]
        assert [min(windows - 1, start * windows // total) for start in starts] == pytest.approx(range(windows), abs=1)
        for start in starts:
            seen[start * 200 // total] += 1

    # 10,000 windows in 200 places: 50 each, and six standard deviations are 42
    assert min(seen) > 8 and max(seen) < 92
