"""The one reader of training rows: every layout gives its messages, and unknown ones are refused by name."""

from typing import Any

import pytest

from curation.exports.formats.parts import parts_of
from curation.imports.sources.rows import RowRefused

USER, AGENT = {"role": "user", "content": "Ask."}, {"role": "assistant", "content": "Tell."}
CALL = {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "sh", "arguments": '{"cmd":"ls"}'}}]}
ASKED, TOLD = ("user", "Ask."), ("assistant", "Tell.")
CALLED = ("assistant", '[tool call] sh {"cmd": "ls"}')
WRONG = ("assistant", "Lie.")

ROWS: dict[str, tuple[dict[str, Any], list[list[tuple[str, str]]]]] = {
    "messages": ({"messages": [USER, AGENT]}, [[ASKED, TOLD]]),
    "messages as JSON text": ({"messages": '[{"role": "user", "content": "Ask."}]'}, [[ASKED]]),
    "columns of null": ({"messages": [USER, AGENT], "prompt": None, "text": None}, [[ASKED, TOLD]]),
    "tool call at the end": ({"messages": [USER, CALL]}, [[ASKED, CALLED]]),
    "tool result at the end": (
        {"messages": [USER, CALL, {"role": "tool", "content": "a b", "tool_call_id": "c1"}]},
        [[ASKED, CALLED, ("tool", "a b")]],
    ),
    "prompt, completion as text": ({"prompt": "Ask.", "completion": "Tell."}, [[ASKED, TOLD]]),
    "prompt, completion as messages": ({"prompt": [USER], "completion": [AGENT]}, [[ASKED, TOLD]]),
    "KTO": ({"prompt": [USER], "completion": [AGENT], "label": False}, [[ASKED, TOLD]]),
    "prompt alone": ({"prompt": "Ask."}, [[ASKED]]),
    "text": ({"text": "Ask."}, [[ASKED]]),
    "ShareGPT": (
        {"conversations": [{"from": "human", "value": "Ask."}, {"from": "gpt", "value": "Tell."}], "system": "S"},
        [[("system", "S"), ASKED, TOLD]],
    ),
    "ShareGPT call": (
        {
            "conversations": [
                {"from": "human", "value": "Ask."},
                {"from": "function_call", "value": '{"name": "sh", "arguments": {"cmd": "ls"}}'},
            ]
        },
        [[ASKED, CALLED]],
    ),
    "ms-swift roles": (
        {
            "messages": [
                USER,
                {"role": "tool_call", "content": '{"name": "sh", "arguments": {"cmd": "ls"}}'},
                {"role": "tool_response", "content": "a"},
            ]
        },
        [[ASKED, CALLED, ("tool", "a")]],
    ),
    "Alpaca": ({"instruction": "Ask.", "input": "It.", "output": "Tell."}, [[("user", "Ask.\nIt."), TOLD]]),
    "Alpaca with history": (
        {"instruction": "Ask.", "output": "Tell.", "history": [["Ask.", "Lie."]], "system": "S"},
        [[("system", "S"), ASKED, WRONG, ASKED, TOLD]],
    ),
    "Alpaca pair": ({"instruction": "Ask.", "chosen": "Tell.", "rejected": "Lie."}, [[ASKED, TOLD], [ASKED, WRONG]]),
    "OpenAI preference": (
        {
            "input": {"messages": [USER]},
            "preferred_output": [AGENT],
            "non_preferred_output": [{"role": "assistant", "content": "Lie."}],
        },
        [[ASKED, TOLD], [ASKED, WRONG]],
    ),
    "pair of one message a side": (
        {"prompt": [USER], "chosen": AGENT, "rejected": {"role": "assistant", "content": "Lie."}},
        [[ASKED, TOLD], [ASKED, WRONG]],
    ),
    "pair of lists": (
        {"prompt": [USER], "chosen": [AGENT, USER, CALL], "rejected": [CALL]},
        [[ASKED, TOLD, ASKED, CALLED], [ASKED, CALLED]],
    ),
    "pair of conversations": (
        {"prompt": "Ask.", "chosen": [USER, AGENT], "rejected": [USER, CALL]},
        [[ASKED, TOLD], [ASKED, CALLED]],
    ),
    "pair with the same sides": (
        {"prompt": "Ask.", "chosen": "Tell.", "rejected": "Tell."},
        [[ASKED, TOLD], [ASKED, TOLD]],
    ),
    "conversation with a rejected answer": (
        {"messages": [USER, AGENT], "rejected_response": "Lie."},
        [[ASKED, TOLD], [ASKED, WRONG]],
    ),
    "LLaMA-Factory pair": (
        {
            "conversations": [{"from": "human", "value": "Ask."}],
            "chosen": {"from": "gpt", "value": "Tell."},
            "rejected": {"from": "gpt", "value": "Lie."},
        },
        [[ASKED, TOLD], [ASKED, WRONG]],
    ),
    "Anthropic blocks": (
        {
            "messages": [
                USER,
                {"role": "assistant", "content": [{"type": "tool_use", "name": "sh", "input": {"cmd": "ls"}}]},
            ]
        },
        [[ASKED, CALLED]],
    ),
    "reasoning": (
        {"messages": [USER, {**AGENT, "reasoning_content": "Think."}]},
        [[ASKED, TOLD], [("reasoning", "Think.")]],
    ),
    "answers in a column of another name": (
        {"prompt": "Ask.", "responses": ["Tell all.", "Tell"], "scores": [1, 0], "reply_to": "Ask again.", "id": "x"},
        [[ASKED], [("metadata", "Ask again."), ("metadata", "Tell all.")]],
    ),
    "GSM8K": ({"question": "Ask.", "answer": "Tell."}, [[ASKED, TOLD]]),
    "MMLU": ({"question": "Ask.", "choices": ["a", "b"], "answer": 1}, [[("user", "Ask.\na\nb"), ("assistant", "1")]]),
    "MATH": ({"problem": "Ask.", "solution": "Tell.", "answer": "4"}, [[ASKED, TOLD], [ASKED, ("assistant", "4")]]),
    "HumanEval": ({"task_id": "H/1", "prompt": "Ask.", "canonical_solution": "Tell.", "test": "x"}, [[ASKED, TOLD]]),
    "SWE-bench": ({"instance_id": "a-1", "problem_statement": "Ask.", "patch": "Tell."}, [[ASKED, TOLD]]),
}


@pytest.mark.parametrize("name", ROWS)
def test_every_layout_gives_its_messages(name: str) -> None:
    row, conversations = ROWS[name]
    assert parts_of(row).conversations() == conversations


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"note": "Ask."}, "no layout of training data has the columns note"),
        ({}, "has the columns none"),
        ({"messages": []}, "has the columns messages"),
        ({"messages": [{"role": "user", "content": ""}]}, "has the columns messages"),
        ({"messages": [USER, {"role": "narrator", "content": "x"}]}, "messages.1 has the role 'narrator'"),
        ({"messages": [USER, {"role": "assistant", "content": {"a": 1}}]}, "neither text nor a list of parts"),
        ({"messages": "Ask."}, "messages is text that is not JSON"),
        ({"messages": ["Ask.", "Tell."]}, "without a role"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_reason(row: dict[str, Any], reason: str) -> None:
    with pytest.raises(RowRefused, match=reason):
        parts_of(row)


@pytest.mark.parametrize("mark", ["train", "weight", "loss"])
def test_marks_say_what_is_learned_and_without_marks_it_is_the_last_answer(mark: str) -> None:
    bare = [USER, AGENT, USER, AGENT]
    marked = [message | ({mark: index == 1} if message is AGENT else {}) for index, message in enumerate(bare)]

    assert [part.use for part in parts_of({"messages": bare})] == ["context", "context", "context", "learned"]
    assert [part.use for part in parts_of({"messages": marked})] == ["context", "learned", "context", "context"]
    assert [part.use for part in parts_of({"prompt": "a", "completion": "b", "label": False})] == [
        "context",
        "rejected",
    ]
