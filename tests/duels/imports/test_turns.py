"""Imported turns: the messages that count, the stored prompt, and rows that already exist."""

import json

import pytest

from curation.duels.models import Prompt
from tests.factories import make_project
from tests.imports.bringing import SYSTEM, bad_rows, bring, chat
from tests.parts import shared_data

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("name", "column", "role", "layout"),
    [
        ("swe_agent_nebius.jsonl", "trajectory", "ai", "SWE-agent rows (trajectory)"),
        ("mini_coder.jsonl", "messages", "assistant", "chat rows (messages)"),
    ],
)
def test_real_trajectories_give_every_assistant_turn(name: str, column: str, role: str, layout: str) -> None:
    content = shared_data("turns", name).read_bytes()
    rows = [json.loads(line) for line in content.splitlines()]
    project = make_project()

    run = bring(project, "turns", content, name)

    turns = sum(m["role"] == role and i > 1 for row in rows for i, m in enumerate(row[column]))
    assert (run.result["prompts"], run.result["layout"], run.result["bad_rows"]) == (turns, layout, 0)
    assert Prompt.objects.of(project).count() == turns
    for prompt in Prompt.objects.of(project).select_related("text"):
        row = rows[prompt.row_offset]
        spoken = row[column][prompt.turn_index]
        assert prompt.text.reference["content"] == (spoken.get("text") or spoken.get("content"))
        assert prompt.text.history[0]["role"] == "system" and len(prompt.text.history[0]["content"]) > 10
        assert len(prompt.text.history) == prompt.turn_index
        assert prompt.tokens == sum(len(message["content"]) for message in prompt.text.history) // 4
        assert prompt.instance_id == row["instance_id"]
        assert "/" in prompt.repo


def test_two_files_of_one_name_are_both_imported_and_each_only_once() -> None:
    project = make_project()
    first, second = [chat(1, 2), chat(2)], [chat(8, 3), chat(9)]

    assert bring(project, "turns", first).result["prompts"] == 3
    run = bring(project, "turns", second)

    assert run.result["prompts"] == 4
    assert run.result["also_as"].startswith("turns.jsonl#")
    for rows in (first, second, first):
        assert bring(project, "turns", rows).result["prompts"] == 0
    assert Prompt.objects.count() == 7


def test_a_corrected_file_adds_its_corrected_rows_under_the_same_name() -> None:
    project = make_project()
    bring(project, "turns", [chat(1), "{broken", chat(3)])

    run = bring(project, "turns", [chat(1), chat(2), chat(3)])

    assert (run.result["prompts"], run.result["duplicates"]) == (1, 2)
    assert set(Prompt.objects.values_list("source", flat=True)) == {"turns.jsonl"}


def test_the_same_rows_under_another_name_or_at_other_offsets_add_nothing() -> None:
    project = make_project()
    bring(project, "turns", [chat(1, 2), chat(2)])

    copy = bring(project, "turns", [chat(2), chat(1, 2), chat(3)], "renamed.jsonl")
    again = bring(project, "turns", [chat(2), chat(1, 2), chat(3)], "renamed.jsonl")

    figures = ("prompts", "duplicates", "copies")
    assert [copy.result[name] for name in figures] == [1, 3, 3]
    assert copy.result["copies_of"] == "turns.jsonl"
    assert [again.result[name] for name in figures] == [0, 4, 3]
    assert Prompt.objects.of(project).count() == 4


def test_the_same_messages_of_another_instance_are_another_turn() -> None:
    project = make_project()
    bring(project, "turns", [{**chat(1), "instance_id": "acme__a-1"}])

    run = bring(project, "turns", [{**chat(1), "instance_id": "acme__a-2"}], "other.jsonl")

    assert (run.result["prompts"], run.result["copies"]) == (1, 0)


def test_another_project_has_its_own_prompts() -> None:
    for project in (make_project(), make_project()):
        assert bring(project, "turns", [chat(1)]).result["prompts"] == 1


def test_one_character_does_not_cost_a_row() -> None:
    rows = [
        chat(1, system="a\x00b"),
        '{"messages": [{"role": "user", "content": "\\ud83d"}, {"role": "assistant", "content": "x"}], "score": NaN}',
    ]
    project = make_project()
    run = bring(project, "turns", rows)
    assert (run.result["prompts"], run.result["bad_rows"]) == (2, 0)
    histories = [prompt.text.history[0]["content"] for prompt in Prompt.objects.order_by("row_offset")]
    assert histories == ["a\N{REPLACEMENT CHARACTER}b", "\N{REPLACEMENT CHARACTER}"]


def test_rows_that_differ_in_their_system_prompt_only_are_different_turns() -> None:
    run = bring(make_project(), "turns", [chat(1, system="One."), chat(1, system="Two."), chat(1)])
    assert (run.result["prompts"], run.result["duplicates"]) == (3, 0)


def test_a_turn_without_a_history_does_not_count() -> None:
    greeting = {"role": "assistant", "content": "Hello."}
    rows = [
        {"messages": [SYSTEM, greeting, {"role": "user", "content": "Hi"}, greeting]},
        {"messages": [{"role": "user", "content": "Hi"}, greeting]},
        {"messages": [SYSTEM, greeting]},
    ]

    run = bring(make_project(), "turns", rows)

    assert set(Prompt.objects.values_list("row_offset", "turn_index")) == {(0, 3), (1, 1)}
    assert bad_rows(run) == {"row 3": "no assistant message with a history before it"}
