"""Tools, calls and reasoning of a turn, from the imported row to the exported one."""

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from curation.duels.models import Duel, Prompt
from curation.exports.models import Export
from curation.llm.client.completion import Completion, CompletionRequest
from curation.projects.models import Project, Role
from curation.review.models import Pick
from curation.samples.models import Sample
from judging.messages import message_text
from tests.duels.running import JUDGES, Models, run_to_end, shown, verdict
from tests.exports.exporting import approve, content, export_of, revise, rows
from tests.factories import make_endpoint, make_member, make_project, make_pull_request, make_user
from tests.imports.bringing import bring

pytestmark = pytest.mark.django_db(transaction=True)
TOOLS = [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object", "properties": {}}}}]
FIRST = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
SECOND = {"id": "c2", "type": "function", "function": {"name": "bash", "arguments": '{"command": "cat a.py"}'}}
THIRD = {"id": "c3", "type": "function", "function": {"name": "bash", "arguments": '{"command": "rm a.py"}'}}
ROW = {
    "instance_id": "acme__billing-1",
    "tools": TOOLS,
    "messages": [
        {"role": "user", "content": "Fix it."},
        {"role": "assistant", "content": "", "reasoning_content": "I look first.", "tool_calls": [FIRST]},
        {"role": "tool", "tool_call_id": "c1", "content": "a.py"},
        {"role": "assistant", "content": "Done.", "tool_calls": [THIRD]},
    ],
}
CALLED = '[tool call c2] bash {"command": "cat a.py"}'


def calling(text: str, calls: list[Any], thinking: str) -> Completion:
    said = message_text({"content": text, "tool_calls": calls})
    return Completion(said, thinking, "tool_calls", 100, 10, 0, None, 5, calls)


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Models:
    """The challenger calls a function, the king calls another, and every judge prefers the challenger."""

    def judged(request: CompletionRequest) -> str:
        return verdict(*[1 if CALLED in shown(request)[0] else 2] * 5)

    found = Models(
        {
            "challenger": lambda request: calling("I read it.", [SECOND], "The file is short."),
            "king": lambda request: calling("", [THIRD], ""),
            **dict.fromkeys(JUDGES, judged),
        }
    )
    monkeypatch.setattr("curation.runs.engine.llm_stage.client_for", lambda target: found)
    return found


def judged_project() -> Project:
    project = make_project(
        settings_json={"panel": {"judges": list(JUDGES), "controls": 0.0}, "generation": {"read_leaks": False}}
    )
    for name in ("king", "challenger", *JUDGES):
        make_endpoint(project, name, model=f"fake/{name}")
    assert bring(project, "turns", [ROW]).result["prompts"] == 2
    Prompt.objects.get(turn_index=1).delete()
    make_pull_request(project, "acme__billing-1")
    return project


def test_a_call_is_made_judged_shown_and_exported_as_a_call(models: Models, client: Client) -> None:
    project = judged_project()
    run_to_end(project)
    (asked,) = models.requests("challenger")
    assert asked.tools == TOOLS
    assert not [message for message in asked.messages if "reasoning_content" in message]
    assert asked.messages[2]["tool_calls"] == [FIRST] and asked.messages[3]["tool_call_id"] == "c1"
    assert CALLED in models.text_sent("judge-a") and "I look first." not in models.text_sent("judge-a")

    duel = Duel.objects.get()
    assert duel.challenger.text.tool_calls == [SECOND]
    client.force_login(make_member(project, role=Role.CURATOR))
    page = client.get(reverse("duel-page", args=[project.slug, duel.pk])).content.decode()
    assert "[tool call c2] bash" in page and "[tool call c3] bash" in page

    assert duel.sample is not None
    approve(duel.sample, by=make_user())
    export = export_of(project, {"formats": ["sft-prompt-completion", "dpo", "openai-sft", "llamafactory-sft"]})
    completion, pair, weighted, turn = (row for name in export.recipe["formats"] for row in data(export, name))
    called = {"name": "bash", "arguments": {"command": "cat a.py"}}
    answer = {"role": "assistant", "content": "I read it."}
    assert completion["tools"] == TOOLS
    assert completion["completion"] == [
        {**answer, "tool_calls": [{"id": "c2", "type": "function", "function": called}]}
    ]
    assert [list(message) for message in completion["prompt"]] == [
        ["role", "content"],
        ["role", "content", "tool_calls"],
        ["role", "content", "tool_call_id"],
    ]
    assert pair["rejected"][0]["tool_calls"][0]["function"]["arguments"] == {"command": "rm a.py"}
    assert [message.get("weight") for message in weighted["messages"]] == [None, 0, None, 1]
    assert weighted["messages"][-1]["tool_calls"] == [SECOND]
    assert (
        turn["conversations"][-1]["value"]
        == f"I read it.\n<tool_call>{json.dumps(called, separators=(',', ':'))}</tool_call>"
    )
    assert json.loads(turn["tools"]) == TOOLS
    assert "short" not in str(completion) and "I look first." not in str(weighted)


def test_reasoning_is_kept_in_its_own_field_by_choice(models: Models) -> None:
    project = judged_project()
    run_to_end(project)
    approve(judged_sample(), by=make_user())
    formats = ["sft-prompt-completion", "axolotl-chat", "openai-sft", "llamafactory-sft"]
    export = export_of(project, {"formats": formats, "reasoning": "keep"})
    completion, chat, *others = (row for name in formats for row in data(export, name))
    assert completion["completion"][0]["reasoning_content"] == "The file is short."
    assert completion["prompt"][1]["reasoning_content"] == "I look first."
    assert [message.get("reasoning_content") for message in chat["messages"]] == [
        None,
        "I look first.",
        None,
        "The file is short.",
    ]
    assert "reasoning_content" not in str(others) and "short" not in str(others)


def test_a_revision_may_change_a_call(models: Models) -> None:
    project = judged_project()
    run_to_end(project)
    sample = judged_sample()
    revise(sample, 'I read it.\n[tool call c9] bash {"command": "head a.py"}\n', by=make_user())
    approve(sample, by=make_user())
    export = export_of(project, {"formats": ["sft-prompt-completion", "dpo"], "sources": ["revisions"]})
    completion, pair = (row for name in export.recipe["formats"] for row in data(export, name))
    (answer,) = completion["completion"]
    assert answer["content"] == "I read it." and answer["tool_calls"][0]["id"] == "c9"
    assert answer["tool_calls"][0]["function"]["arguments"] == {"command": "head a.py"}
    assert pair["rejected"][0]["tool_calls"][0]["function"]["arguments"] == {"command": "cat a.py"}


def test_calls_that_the_approved_text_does_not_show_never_leave(models: Models) -> None:
    project = judged_project()
    run_to_end(project)
    duel = Duel.objects.get()
    approve(judged_sample(), by=make_user())
    duel.challenger.text.tool_calls = [THIRD]
    duel.challenger.text.save()
    export = export_of(project, {"formats": ["dpo"]})
    assert [row["reason"] for row in rows(export, "excluded.jsonl")] == ["not_as_approved"]


def test_the_reference_keeps_its_calls(models: Models) -> None:
    project = judged_project()
    run_to_end(project, mode=1)
    approve(judged_sample(), by=make_user(), pick=Pick.KING)
    export = export_of(project, {"formats": ["openai-preference"]})
    (row,) = data(export, "openai-preference")
    assert row["input"]["tools"] == TOOLS
    assert row["preferred_output"] == [{"role": "assistant", "content": "Done.", "tool_calls": [THIRD]}]
    assert row["non_preferred_output"][0]["tool_calls"] == [SECOND]


def judged_sample() -> Sample:
    sample = Duel.objects.get().sample
    assert sample is not None
    return sample


def data(export: Export, name: str) -> list[Any]:
    return [json.loads(line) for line in content(export, f"{name}.train.jsonl").splitlines()]
