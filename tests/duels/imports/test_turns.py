"""Imported turns: the messages that count, the stored prompt, and rows that already exist."""

import json
from typing import Any

import pytest

from curation.duels.imports.conversation import read_document
from curation.duels.models import Prompt
from curation.imports.sources.rows import RowRefused
from curation.projects.models import Project
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


def history_of(project: Project) -> list[Any]:
    prompt = Prompt.objects.of(project).order_by("-turn_index").select_related("text")[0]
    return [*prompt.text.history, prompt.text.reference]


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


def test_anthropic_blocks_are_calls_results_and_reasoning() -> None:
    messages = [
        {"role": "user", "content": "Which file?"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Search."},
                {"type": "tool_use", "id": "t1", "name": "bash", "input": {"command": "grep"}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "a.txt"}]},
        {"role": "assistant", "content": "It is a.txt."},
    ]
    project = make_project()
    run = bring(project, "turns", [{"system_prompt": "Brief.", "messages": messages}])
    assert run.result["prompts"] == 2
    call = {"id": "t1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "grep"}'}}
    assert history_of(project) == [
        {"role": "system", "content": "Brief."},
        {"role": "user", "content": "Which file?"},
        {"role": "assistant", "content": "", "reasoning_content": "Search.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "t1", "content": "a.txt"},
        {"role": "assistant", "content": "It is a.txt."},
    ]


def test_rows_that_differ_in_their_system_prompt_only_are_different_turns() -> None:
    run = bring(make_project(), "turns", [chat(1, system="One."), chat(1, system="Two."), chat(1)])
    assert (run.result["prompts"], run.result["duplicates"]) == (3, 0)


def test_sharegpt_rows_and_their_function_calls() -> None:
    project = make_project()
    call = json.dumps({"name": "ls", "arguments": {"path": "."}})
    spoken = [
        ("system", "Brief."),
        ("human", "List."),
        ("function_call", call),
        ("observation", "a.py"),
        ("gpt", "Ok."),
    ]

    run = bring(project, "turns", [{"id": 1, "conversations": [{"from": who, "value": text} for who, text in spoken]}])

    assert (run.result["prompts"], run.result["layout"]) == (2, "sharegpt rows (conversations)")
    history = history_of(project)
    assert [message["role"] for message in history] == ["system", "user", "assistant", "tool", "assistant"]
    assert history[2]["tool_calls"][0]["function"]["name"] == "ls"


def test_tool_calls_and_content_parts_are_kept() -> None:
    project = make_project()
    calls = [{"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}]
    messages = [
        {"role": "developer", "content": [{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}]},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}, "What is this?"]},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c1", "name": "bash", "content": "a.py"},
        {"role": "assistant", "content": "A file."},
    ]

    bring(project, "turns", [{"messages": messages}])

    assert history_of(project) == [
        {"role": "system", "content": "One.\nTwo."},
        {
            "role": "user",
            "content": [{"type": "image_url", "image_url": {"url": "x"}}, {"type": "text", "text": "What is this?"}],
        },
        {"role": "assistant", "content": "", "tool_calls": calls},
        {"role": "tool", "content": "a.py", "tool_call_id": "c1", "name": "bash"},
        {"role": "assistant", "content": "A file."},
    ]


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


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ("text", "column messages is text that is not JSON"),
        ({}, "column messages is not a list"),
        ([], "column messages is empty"),
        ([3], "messages.0 is not an object"),
        ([{"role": "robot", "content": ""}], "messages.0 has the role 'robot'"),
        ([{"role": "user", "content": 5}], "messages.0 has a content that is neither"),
        ([{"role": "user", "content": [{"type": "document"}]}], "messages.0.0 is a part of type 'document'"),
        ([{"role": "assistant", "content": "", "tool_calls": [1]}], "messages.0.tool_calls is not a list of objects"),
        ([{"role": "assistant", "tool_calls": [{"a": 1}]}], "messages.0.tool_calls.0 is a tool call that names no"),
    ],
)
def test_an_invalid_row_is_refused_with_the_path_of_the_error(messages: Any, said: str) -> None:
    with pytest.raises(RowRefused) as refused:
        read_document({"messages": messages})
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("instance_id", "repo"),
    [
        ("tomerfiliba__plumbum-366_17", "tomerfiliba/plumbum"),
        ("brightway-lca__brightway2-analyzer-19_23", "brightway-lca/brightway2-analyzer"),
        ("django__django-12345", "django/django"),
        ("mozilla__bleach.73871d76.func_pm_remove_cond__lq60cp3u", "mozilla/bleach"),
        ("something else", ""),
    ],
)
def test_the_repo_is_read_from_the_instance_id(instance_id: str, repo: str) -> None:
    assert read_document(chat(1, instance_id=instance_id)).conversations[0].repo == repo


def test_the_repo_of_the_row_comes_first() -> None:
    assert read_document(chat(1, repo="other/repo")).conversations[0].repo == "other/repo"
