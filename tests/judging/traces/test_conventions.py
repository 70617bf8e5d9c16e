"""The conventions in which tools write a model's input and output on a span."""

import json
from typing import Any

import pytest

from judging.traces.read import is_model_call, read_trace

ASKED = [{"role": "user", "content": "Fix the parser."}]
SAID = {"role": "assistant", "content": "```bash\nls\n```"}
TOOLS = [{"type": "function", "function": {"name": "bash"}}]
REQUEST = json.dumps({"model": "any", "messages": ASKED, "tools": TOOLS})
RESPONSE = json.dumps({"choices": [{"index": 0, "message": SAID}]})


def span(**attributes: str) -> dict[str, Any]:
    return {"traceId": "a" * 32, "spanId": "b" * 16, "name": "call", "attributes": attributes}


def langfuse(**fields: str) -> dict[str, Any]:
    return span(**{f"langfuse.observation.{name}": value for name, value in fields.items()})


def openinference(kind: str = "LLM", **values: str) -> dict[str, Any]:
    named = {f"{name}.value": value for name, value in values.items()}
    return span(**{"openinference.span.kind": kind}, **named)


@pytest.mark.parametrize("make", [langfuse, openinference])
@pytest.mark.parametrize(
    ("given", "answer"),
    [(json.dumps(ASKED), json.dumps(SAID)), (REQUEST, RESPONSE), (ASKED[0]["content"], SAID["content"])],
)
def test_messages_bodies_and_text_are_read(make: Any, given: str, answer: str) -> None:
    kind = {"type": "generation"} if make is langfuse else {}
    one = make(**kind, input=given, output=answer)
    assert is_model_call(one)
    [call] = read_trace(one).generations
    assert [(m["role"], m["content"]) for m in call.messages] == [
        ("user", "Fix the parser."),
        ("assistant", "```bash\nls\n```"),
    ]
    assert [tool["function"]["name"] for tool in call.tools] == (["bash"] if given == REQUEST else [])  # type: ignore[index]


@pytest.mark.parametrize(
    "other",
    [
        langfuse(type="span", input="Fix it.", output="Done."),
        langfuse(type="agent", input="Fix it.", output="Done."),
        openinference("CHAIN", input="Fix it.", output="Done."),
        span(**{"input.value": "Fix it.", "output.value": "Done."}),
    ],
)
def test_what_is_around_a_call_is_no_call(other: dict[str, Any]) -> None:
    assert not is_model_call(other)
    found = read_trace(other)
    assert (found.generations, found.without_content) == ([], 0)


def test_a_call_of_another_instrumentation_in_langfuses_span_is_read_by_its_messages() -> None:
    one = langfuse(type="generation", input="shortened", output="shortened")
    one["attributes"] |= {"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "Fix the parser."}
    one["attributes"] |= {"gen_ai.completion.0.content": "Fixed."}
    [call] = read_trace(one).generations
    assert [m["content"] for m in call.messages] == ["Fix the parser.", "Fixed."]


@pytest.mark.parametrize("hidden", [{"input": "__REDACTED__"}, {"output": "__REDACTED__"}])
def test_a_hidden_value_is_content_that_was_not_recorded(hidden: dict[str, str]) -> None:
    found = read_trace(openinference(**{"input": "Fix it.", "output": "Done.", **hidden}))
    assert (found.generations, found.without_content) == ([], 1)
