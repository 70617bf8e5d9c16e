"""Steps become OpenAI's messages, and these become the same steps again."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from curation.imports.layouts.account import Fields
from curation.imports.layouts.messages.read import read_messages
from curation.imports.layouts.messages.write import write_arguments, write_messages
from curation.imports.layouts.session import Step

# Reasoning is never inside the text of a step, so a text has no such block.
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20).filter(
    lambda text: "think" not in text
)
NAMES = st.text("abc_", min_size=1, max_size=5)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
IMAGE = st.just({"type": "image", "source": {"media_type": "image/png", "path": "shots/1.png"}})
PARTS = st.lists(st.builds(lambda text: {"type": "text", "text": text}, TEXT) | IMAGE, min_size=1, max_size=3).filter(
    lambda parts: any(part["type"] == "image" for part in parts)
)


@st.composite
def sessions(draw: st.DrawFn) -> list[Step]:
    steps: list[Step] = []
    calls_made = 0
    for number in range(draw(st.integers(1, 6))):
        source = draw(st.sampled_from(["system", "user", "agent"]))
        step: Step = {"step_id": number + 1, "source": source, "message": draw(TEXT | PARTS)}
        if draw(st.booleans()):
            step["extra"] = {"name": draw(NAMES)}
        if source == "agent":
            if reasoning := draw(TEXT):
                step["reasoning_content"] = reasoning
            calls = []
            for _ in range(draw(st.integers(0, 2))):
                calls_made += 1
                call: dict[str, Any] = {"tool_call_id": f"c{calls_made}", "function_name": draw(NAMES)}
                call["arguments"] = draw(st.dictionaries(TEXT, VALUES, max_size=3))
                if draw(st.booleans()):
                    call |= {"arguments": {}, "extra": {"unparsed_arguments": '{"cut": "of'}}
                calls.append(call)
            if calls:
                step["tool_calls"] = calls
            results = [_result(draw, call["tool_call_id"]) for call in calls if draw(st.booleans())]
            if not calls and draw(st.booleans()) and not _waits(steps):
                results = [_result(draw, "")]
            if results:
                step["observation"] = {"results": results}
        steps.append(step)
    return steps


def _result(draw: st.DrawFn, identifier: str) -> dict[str, Any]:
    result: dict[str, Any] = {"source_call_id": identifier} if identifier else {}
    result["content"] = draw(TEXT | PARTS)
    if draw(st.booleans()):
        result["extra"] = {"name": draw(NAMES), "is_error": True}
    return result


def _waits(steps: list[Step]) -> bool:
    """Whether a call has no result: the next result without an id would be its own."""
    return any(
        len(step.get("tool_calls", ())) > len(step.get("observation", {"results": ()})["results"]) for step in steps
    )


@given(sessions())
def test_steps_that_are_written_and_read_are_the_same(steps: list[Step]) -> None:
    messages = write_messages(steps)
    assert read_messages(messages, "messages", Fields({"messages": messages})).steps == steps


@given(st.dictionaries(TEXT, TEXT, max_size=3) | st.dictionaries(TEXT, VALUES, max_size=3))
def test_arguments_are_written_in_one_form(arguments: dict[str, Any]) -> None:
    assert write_arguments(arguments) == json.dumps(arguments, ensure_ascii=False)


def test_results_follow_their_calls_and_names_are_kept() -> None:
    messages = [
        {"role": "user", "content": "List.", "name": "ada"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"a": 1}'}}],
        },
        {"role": "tool", "content": "a.py", "tool_call_id": "c1", "name": "ls"},
        {"role": "assistant", "content": "a.py", "reasoning_content": "One file."},
    ]
    steps = read_messages(messages, "messages", Fields({"messages": messages})).steps
    assert write_messages(steps) == messages
    assert [message.get("train") for message in write_messages(steps, {1: False, 2: True})] == [None, None, None, True]
