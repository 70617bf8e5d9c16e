"""Sessions are stored once: how the database grows by them, and what a position in them gives back."""

import json
import random
from typing import Any

import pytest
from django.db import connection

from curation.duels.models import Prompt, Session
from curation.projects.removal.carry_out import carry_out
from curation.runs.models import Run
from curation.runs.removal import begin_deletion
from tests.factories import make_project
from tests.imports.bringing import as_lines, bring, chat

pytestmark = pytest.mark.django_db(transaction=True)


def used_bytes() -> int:
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r'")
        else:
            cursor.execute(
                "SELECT (page_count - freelist_count) * page_size"
                " FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()"
            )
        return int(cursor.fetchone()[0])


def long_chat(steps: int, characters: int) -> dict[str, Any]:
    words = random.Random(1)
    row = chat(1, turns=steps)
    for message in row["messages"][2:]:
        message["content"] += "".join(f" {words.getrandbits(32):x}" for _ in range(characters // 9))
    return row


def histories() -> list[tuple[int, list[str]]]:
    """Return the number of messages before each turn, and their texts."""
    prompts = Prompt.objects.order_by("id").prefetch_related("text__session")
    return [(prompt.text.at, [str(message["content"]) for message in prompt.text.history]) for prompt in prompts]


def test_a_session_takes_about_its_own_size() -> None:
    project, row = make_project(), long_chat(steps=100, characters=4_000)
    bring(project, "turns", [chat(2)])  # what the first import needs besides
    size, before = len(json.dumps(row)), used_bytes()
    assert bring(project, "turns", [row]).result["prompts"] == 100
    assert used_bytes() - before < 2 * size  # 50 times its size if each turn repeats its history
    assert histories()[-1][1] == [message["content"] for message in row["messages"][:-2]]


def test_turns_that_are_imported_later_are_positions_in_the_same_session() -> None:
    project, row = make_project(), chat(1, turns=4)
    first = bring(project, "turns", [row], options={"turns_per_row": 1, "seed": 1})
    again = bring(project, "turns", [row], "renamed.jsonl")
    assert (first.result["prompts"], again.result["prompts"], again.result["duplicates"]) == (1, 3, 1)
    assert Session.objects.count() == 1
    assert sorted(at for at, _ in histories()) == [2, 4, 6, 8]


def test_a_session_that_went_on_grows() -> None:
    project = make_project()
    bring(project, "turns", [chat(1, turns=2)])
    before = histories()
    bring(project, "turns", [chat(1, turns=4)], "longer.jsonl")
    assert Session.objects.count() == 1 and histories()[:2] == before
    assert [at for at, _ in histories()] == [2, 4, 6, 8]


def test_two_sessions_that_begin_alike_do_not_change_each_other() -> None:
    project = make_project()
    bring(project, "turns", [chat(1, turns=1)])
    left, right = chat(1, turns=3), chat(1, turns=3)
    left["messages"][3]["content"], right["messages"][3]["content"] = "left", "right"
    bring(project, "turns", [left, right], "both.jsonl")
    assert Session.objects.count() == 2
    assert [texts[3] for _, texts in histories()[1:]] == ["left", "left", "right", "right"]


def test_rows_that_repeat_the_history_of_others_share_their_session() -> None:
    project, whole = make_project(), chat(1, turns=5)
    rows = [{**whole, "messages": whole["messages"][: 3 + 2 * turn]} for turn in range(5)]
    run = bring(project, "samples", as_lines(rows))
    assert (run.result["samples"], Session.objects.count()) == (5, 1)
    assert [texts for _, texts in histories()] == [
        [message["content"] for message in row["messages"][:-1]] for row in rows
    ]


class TestDeletion:
    def erase(self, run: Run) -> None:
        carry_out(begin_deletion(row=run, label=run.label, actor=None).pk)

    def test_a_prompt_that_a_later_import_had_keeps_its_session(self) -> None:
        project = make_project()
        run = bring(project, "turns", [chat(1), chat(2)])
        bring(project, "turns", [chat(2)], "again.jsonl")
        self.erase(run)
        assert histories() == [(2, ["You solve coding tasks.", "Task 2"])] and Session.objects.count() == 1

    def test_a_session_of_two_imports_is_deleted_with_the_second(self) -> None:
        project, row = make_project(), chat(1, turns=4)
        runs = [bring(project, "turns", [row], options={"turns_per_row": 1, "seed": seed}) for seed in (1, 2)]
        assert [run.result["prompts"] for run in runs] == [1, 1]
        self.erase(runs[0])
        assert Session.objects.count() == Prompt.objects.count() == 1
        self.erase(runs[1])
        assert not Session.objects.exists() and not Prompt.objects.exists()
