"""Rollouts of operators that call functions: the scenario's programs are their tools, and the rows train calls."""

import json
from typing import Any

import pytest

from curation.llm.client.completion import Completion
from curation.scenarios.bundles.document import parse_bundle
from curation.trajectories.imported.document import atif_of
from curation.trajectories.models import Trajectory
from curation.web.problems import Invalid
from judging.messages import ToolCall, message_text
from tests.exports.exporting import approve, rows, run_export
from tests.factories import BUNDLE, make_scenario, make_user
from tests.sandbox.fake import FakeBackend, FakeSession
from tests.trajectories.rolling import Operators, has_greeting, make_stage, played, run_to_end, todo_machine

LOOKUP = {
    "name": "lookup",
    "description": "Look up a ticket.",
    "parameters": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
}
WITH_TOOL: dict[str, Any] = {
    "fixtures": [*BUNDLE["fixtures"], {"path": "/usr/local/bin/lookup", "mode": "755", "content": "#!/bin/sh\n"}],
    "tools": [LOOKUP],
}
WRITES = ("bash", {"command": "echo 'hello world' > greeting.txt"})


def calls(*functions: tuple[str, Any], content: str = "") -> Completion:
    """An answer that calls these functions with their arguments, a text as it is."""
    made: list[ToolCall] = [
        {
            "id": f"c{place}",
            "type": "function",
            "function": {"name": name, "arguments": given if isinstance(given, str) else json.dumps(given)},
        }
        for place, (name, given) in enumerate(functions)
    ]
    text = message_text({"content": content, "tool_calls": made})
    return Completion(text, "", "tool_calls", 100, 10, 0, None, 5, made)


def machine(session: FakeSession, command: str) -> Any:
    return "ticket 7: write\n" if command == """lookup '{"id": 7}'""" else todo_machine(session, command)


@pytest.fixture
def shop(rooms: FakeBackend, monkeypatch: pytest.MonkeyPatch) -> FakeBackend:
    monkeypatch.setattr(rooms, "answers", machine)
    monkeypatch.setattr(rooms, "passes", has_greeting)
    return rooms


def test_calls_are_executed_in_the_terminal_and_answered_by_their_ids(operators: Operators, shop: FakeBackend) -> None:
    operators.scripts["operator-a"] = (
        calls(("bash", {"command": "todo"}), ("lookup", {"id": 7}), content="I look."),
        calls(WRITES),
        calls(("exit", {})),
    )
    found = played(operators, shop, WITH_TOOL, tools=True)

    assert (found.outcome, found.keep, found.terminal) == ("solved", True, "exit")
    assert shop.sessions[0].commands == ["todo", """lookup '{"id": 7}'""", "echo 'hello world' > greeting.txt"]
    first, second, *_ = operators.asked
    names = [tool["function"]["name"] for tool in first.tools]  # type: ignore[index]
    assert names == ["bash", "exit", "panic", "lookup"]
    assert [message["role"] for message in second.messages] == ["system", "user", "assistant", "tool", "tool"]
    assert second.messages[2]["content"] == "I look."
    assert [second.messages[at]["tool_call_id"] for at in (3, 4)] == ["c0", "c1"]
    assert str(second.messages[4]["content"]).startswith("ticket 7: write")
    assert found.commands == shop.sessions[0].commands


@pytest.mark.django_db(transaction=True)
def test_it_is_stored_and_exported_as_calls_of_the_offered_functions(operators: Operators, shop: FakeBackend) -> None:
    operators.scripts["operator-a"] = (calls(("lookup", {"id": 7})), calls(WRITES), calls(("exit", {})))
    project = make_stage()
    make_scenario(project, bundle=WITH_TOOL)
    run = run_to_end(project, tools=True)
    row = Trajectory.objects.select_related("text", "sample", "scenario").get(run=run)
    document = atif_of(row)
    assert [tool["function"]["name"] for tool in document["agent"]["tool_definitions"]][-1] == "lookup"
    looked = document["steps"][1]
    assert looked["tool_calls"] == [{"tool_call_id": "c0", "function_name": "lookup", "arguments": {"id": 7}}]
    assert looked["observation"]["results"][0]["source_call_id"] == "c0"

    approve(row.sample, by=make_user("anna"), pick="")
    (exported,) = rows(run_export(project, {"formats": ["sft-messages"]}), "sft-messages.train.jsonl")
    roles = [message["role"] for message in exported["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant", "tool", "assistant"]
    called = [call["function"]["name"] for message in exported["messages"] for call in message.get("tool_calls") or ()]
    assert called == ["lookup", "bash", "exit"]
    assert "lookup" in json.dumps(exported["tools"])


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (("launch", {}), "There is no tool `launch`. The tools are bash, exit, panic, lookup."),
        (("lookup", {}), "The call of `lookup` lacks `id`."),
        (("bash", '{"command": "ls'), "The arguments of `bash` are no JSON"),
        (("bash", "[]"), "no JSON object"),
        (("bash", {"command": "  "}), "is a text that is not empty"),
        (("bash", {"command": 7}), "is a text that is not empty"),
    ],
)
def test_a_call_that_cannot_be_executed_is_answered_in_words(
    operators: Operators, shop: FakeBackend, wrong: tuple[str, Any], told: str
) -> None:
    operators.scripts["operator-a"] = (calls(wrong), calls(WRITES), calls(("exit", {})))
    found = played(operators, shop, WITH_TOOL, tools=True)
    answer = operators.asked[1].messages[-1]
    assert (answer["role"], answer["tool_call_id"]) == ("tool", "c0")
    assert told in str(answer["content"])
    assert (found.outcome, found.format_errors) == ("solved", 1)


def test_a_model_that_calls_nothing_has_a_format_error(operators: Operators, shop: FakeBackend) -> None:
    operators.scripts["operator-a"] = ("I would now list the files.",)
    found = played(operators, shop, WITH_TOOL, tools=True)
    assert (found.outcome, found.format_errors, shop.sessions[0].commands) == ("format_error", 3, [])
    assert "calls no tool" in str(operators.asked[1].messages[-1]["content"])


def test_panic_gives_its_reason(operators: Operators, shop: FakeBackend) -> None:
    operators.scripts["operator-a"] = (calls(("panic", {"reason": "the disk\nis full"})),)
    found = played(operators, shop, WITH_TOOL, tools=True)
    assert (found.terminal, found.panic_reason) == ("panic", "the disk is full")


@pytest.mark.parametrize(
    ("tools", "path", "said"),
    [
        ([{**LOOKUP, "name": "find_it"}], "tools.0.name", "no executable fixture /usr/local/bin/find_it"),
        ([LOOKUP, LOOKUP], "tools.1.name", "another tool has this name"),
        ([{**LOOKUP, "name": "bash"}], "tools.0.name", "another tool has this name"),
        ([{**LOOKUP, "parameters": {"type": "array"}}], "tools.0", "schema of an object"),
        ([{**LOOKUP, "name": "look up"}], "tools.0.name", "only letters"),
    ],
)
def test_a_tool_of_a_bundle_is_a_program_of_it(tools: list[dict[str, Any]], path: str, said: str) -> None:
    bundle = {**BUNDLE, "name": "tools", **WITH_TOOL, "tools": tools}
    with pytest.raises(Invalid) as refused:
        parse_bundle(bundle)
    assert [error.path for error in refused.value.errors] == [path]
    assert said in refused.value.errors[0].message
