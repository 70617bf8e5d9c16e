"""Splits by the coarsest group that the shares allow, and caps."""

from collections.abc import Sequence
from typing import Any

from curation.exports.hygiene.plan import Candidate, over_cap
from curation.exports.recipes.recipe import GroupKey, choose_splitting, split_of, splitting_at

NO_KEY = GroupKey("", "", "")
SHARES = {"train": 0.8, "val": 0.2}


def read_lines(ids: Sequence[int]) -> Any:
    return dict.fromkeys(ids, ["a row"])


def keys(repos: int, instances: int, rows: int) -> list[GroupKey]:
    return [
        GroupKey(f"acme/r{repo}", f"acme__r{repo}-{instance}", f"turns.jsonl#{repo}-{instance}-{row}")
        for repo in range(repos)
        for instance in range(instances)
        for row in range(rows)
    ]


def test_many_repositories_are_not_divided() -> None:
    found = choose_splitting(keys(200, 2, 2), seed=1, wanted=SHARES)

    assert (found.level, found.groups) == ("repo", 200)
    assert abs(found.shares["val"] - 0.2) < 0.1


def test_one_repository_is_divided_by_instance_and_one_instance_never() -> None:
    assert choose_splitting(keys(1, 200, 2), seed=1, wanted=SHARES).level == "instance_id"
    found = choose_splitting(keys(1, 1, 200), seed=1, wanted=SHARES)
    assert found.groups == 1


def test_one_conversation_is_never_divided() -> None:
    found = choose_splitting([GroupKey("", "", "turns.jsonl#1")] * 50, seed=1, wanted=SHARES)

    assert found.groups == 1
    assert sorted(found.shares.values()) == [0.0, 1.0]


def test_a_key_that_is_missing_falls_back_to_the_next_finer_one() -> None:
    assert GroupKey("", "task-1", "a#1").at("repo") == "instance task-1"
    assert GroupKey("acme/x", "", "a#1").at("instance_id") == "row a#1"


def test_the_chosen_level_is_where_the_rows_go() -> None:
    rows = keys(200, 2, 2)
    found = splitting_at("repo", rows, seed=7, wanted=SHARES)

    splits = [split_of(key.at("repo"), seed=7, shares=SHARES) for key in rows]
    assert found.shares == {name: splits.count(name) / len(rows) for name in SHARES}


def test_caps_keep_the_best_scored_of_each_value() -> None:
    rows = [Candidate(n, float(n), NO_KEY, ("acme/x" if n < 6 else "acme/y", "")) for n in range(8)]

    assert over_cap(rows, {"repo": 2, "task": 1}, read_lines) == {0: "repo", 1: "repo", 2: "repo", 3: "repo"}


def test_a_row_beyond_one_cap_takes_no_place_under_another() -> None:
    values = [("x", "a"), ("x", "b"), ("y", "b")]
    rows = [Candidate(number, 4.0 - number, NO_KEY, one) for number, one in enumerate(values, 1)]

    assert over_cap(rows, {"repo": 1, "task": 1}, read_lines) == {2: "repo"}
