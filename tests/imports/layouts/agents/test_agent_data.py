"""Trajectories of the Agent Data Protocol."""

from typing import Any

import pytest

from curation.imports.layouts.agents import agent_data
from curation.imports.layouts.recognise import recognise
from curation.imports.layouts.session import SessionOutcome
from curation.imports.sources.rows import RowRefused
from tests.imports.layouts.golden import said

TOOLS = '[{"type": "function", "function": {"name": "click", "parameters": {"type": "object", "properties": {}}}}]'
ROW: dict[str, Any] = {
    "id": "swe_1",
    "content": [
        {"class_": "text_observation", "content": "Fix it.", "name": None, "source": "user"},
        {"class_": "code_action", "language": "bash", "content": "ls", "description": "I look."},
        {"class_": "text_observation", "content": "a.py", "name": "shell", "source": "environment"},
        {"class_": "code_action", "language": "python", "content": "print(1)", "description": None},
        {"class_": "text_observation", "content": "1", "source": "environment"},
        {"class_": "text_observation", "content": "It is late.", "source": "environment"},
        {"class_": "api_action", "function": "click", "kwargs": {"bid": "7"}, "description": "The link."},
        {
            "class_": "web_observation",
            "html": "<p>Home</p>",
            "axtree": "[7] Home",
            "url": "http://x",
            "image_observation": {
                "class_": "image_observation",
                "content": "data:image/png;base64,QQ==",
                "source": "user",
            },
            "viewport_size": [3, 4],
        },
        {"class_": "message_action", "content": "Done.", "description": "It works."},
    ],
    "details": {"resolved": "True", "run_id": "r-1", "tools": TOOLS},
}


def test_actions_and_observations_are_steps_and_details_are_columns() -> None:
    layout = recognise(ROW)
    assert layout is not None and layout.name == agent_data.NAME
    reading = layout.read(ROW)
    (session,) = reading.sessions
    assert said(session) == [
        ("user", "Fix it."),
        ("agent", "I look."),
        ("agent", ""),
        ("user", "It is late."),
        ("agent", "The link."),
        ("agent", "Done."),
    ]
    calls = [call for step in session.steps for call in step.get("tool_calls", ())]
    assert [(call["function_name"], call["arguments"]) for call in calls] == [
        ("execute_bash", {"command": "ls"}),
        ("execute_python", {"code": "print(1)"}),
        ("click", {"bid": "7"}),
    ]
    shown = [step["observation"]["results"][0]["content"] for step in session.steps if "observation" in step]
    assert shown[:2] == ["a.py", "1"]
    assert [part["type"] for part in shown[2]] == ["text", "image"] and shown[2][0]["text"] == "[7] Home"
    assert session.steps[-1]["reasoning_content"] == "It works."
    assert (session.verdict.outcome, session.origin.id, session.metadata) == (
        SessionOutcome.SOLVED,
        "swe_1",
        {"run_id": "r-1"},
    )
    assert [tool["function"]["name"] for tool in session.tools] == ["click"]
    account = {entry["field"]: entry["becomes"] for entry in reading.account.entries()}
    assert account["details.resolved"] == "reward.resolved" and account["details.run_id"] == "metadata"
    assert account["content[].url"] == account["content[].viewport_size"] == "ignored"
    assert account["content[].html"] == "ignored: the accessibility tree beside it is read"


@pytest.mark.parametrize(
    "item", [{"class_": "dance_action", "content": "?"}, {"class_": "text_observation", "source": "oracle"}]
)
def test_a_class_or_source_that_is_not_known_makes_the_row_bad(item: dict[str, Any]) -> None:
    with pytest.raises(RowRefused, match=r"content\.0 has the class"):
        agent_data.read({"content": [item]})


@pytest.mark.parametrize(
    "changed",
    [
        {"content": [{"class_": [], "source": "user"}]},
        {"content": [{"class_": {}, "source": {}}]},
        {"content": [{"class_": "web_observation", "image_observation": "a"}]},
        {"details": "none"},
    ],
)
def test_values_of_another_form_refuse_the_row(changed: dict[str, Any]) -> None:
    with pytest.raises(RowRefused):
        agent_data.read(ROW | changed)
