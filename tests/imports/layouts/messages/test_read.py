"""Messages of every format are the same steps, and what is not understood is refused by its path and name."""

from time import process_time
from typing import Any

import pytest

from curation.imports.layouts.account import IGNORED, Fields
from curation.imports.layouts.messages.read import Messages, read_messages
from curation.imports.sources.rows import RowRefused

ASKED = {"role": "user", "content": "What is here?"}
CALL = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"path": "."}'}}
# One session in all formats: a question, reasoning with a call, its result, an answer.
SESSION: dict[str, list[dict[str, Any]]] = {
    "OpenAI Chat": [
        ASKED,
        {"role": "assistant", "content": None, "reasoning_content": "I look.", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "a.py"},
        {"role": "assistant", "content": "a.py"},
    ],
    "OpenAI with parts": [
        {"role": "user", "content": [{"type": "text", "text": "What is here?"}]},
        {"role": "assistant", "content": [], "reasoning": "I look.", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "a.py"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "a.py"}]},
    ],
    "OpenAI's older function_call": [
        ASKED,
        {"role": "assistant", "content": "<think>I look.</think>", "function_call": CALL["function"]},
        {"role": "function", "name": "ls", "content": "a.py"},
        {"role": "assistant", "content": "a.py"},
    ],
    "OpenRouter": [
        ASKED,
        {
            "role": "assistant",
            "content": "",
            "reasoning": "I look.",
            "reasoning_details": [{"type": "reasoning.text", "text": "I look."}],
            "tool_calls": [CALL],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "a.py"},
        {"role": "assistant", "content": "a.py", "reasoning_details": []},
    ],
    "OpenAI Responses": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "What is here?"}]},
        {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "I look."}]},
        {"type": "function_call", "call_id": "c1", "name": "ls", "arguments": '{"path": "."}'},
        {"type": "function_call_output", "call_id": "c1", "output": "a.py"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a.py"}]},
    ],
    "Anthropic Messages": [
        ASKED,
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "I look.", "signature": "s"},
                {"type": "tool_use", "id": "c1", "name": "ls", "input": {"path": "."}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "a.py"}]}],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "a.py"}]},
    ],
    "Gemini": [
        {"role": "user", "parts": [{"text": "What is here?"}]},
        {
            "role": "model",
            "parts": [
                {"text": "I look.", "thought": True},
                {"functionCall": {"id": "c1", "name": "ls", "args": {"path": "."}}},
            ],
        },
        {"role": "user", "parts": [{"functionResponse": {"id": "c1", "name": "ls", "response": {"output": "a.py"}}}]},
        {"role": "model", "parts": [{"text": "a.py"}]},
    ],
    "Harmony": [
        ASKED,
        {"role": "assistant", "channel": "analysis", "content": "I look."},
        {
            "role": "assistant",
            "channel": "commentary",
            "recipient": "functions.ls",
            "content_type": "<|constrain|>json",
            "content": [{"type": "text", "text": '{"path": "."}'}],
        },
        {"author": {"role": "tool", "name": "functions.ls"}, "channel": "commentary", "content": "a.py"},
        {"role": "assistant", "channel": "final", "content": "a.py"},
    ],
    "sharegpt": [
        {"from": "human", "value": "What is here?"},
        {
            "from": "function_call",
            "value": '<think>I look.</think>\n<tool_call>{"name": "ls", "arguments": {"path": "."}}</tool_call>',
        },
        {"from": "observation", "value": "a.py"},
        {"from": "gpt", "value": "a.py"},
    ],
    "ms-swift": [
        ASKED,
        {"role": "assistant", "content": "<think>I look.</think>"},
        {"role": "tool_call", "content": '{"name": "ls", "arguments": {"path": "."}}'},
        {"role": "tool_response", "content": "a.py"},
        {"role": "assistant", "content": "a.py"},
    ],
    "LangChain": [
        {"type": "human", "content": "What is here?"},
        {
            "type": "ai",
            "content": [{"type": "tool_use", "id": "c1", "name": "ls", "input": {"path": "."}}],
            "additional_kwargs": {"tool_calls": [CALL], "reasoning_content": "I look."},
            "tool_calls": [{"name": "ls", "args": {"path": "."}, "id": "c1", "type": "tool_call"}],
        },
        {"type": "tool", "tool_call_id": "c1", "content": "a.py"},
        {"type": "ai", "content": "a.py"},
    ],
    "LangChain, serialised": [
        {"type": "human", "data": {"content": "What is here?", "type": "human"}},
        {
            "lc": 1,
            "type": "constructor",
            "id": ["langchain", "schema", "messages", "AIMessage"],
            "kwargs": {
                "content": "",
                "additional_kwargs": {"reasoning_content": "I look."},
                "tool_calls": [{"name": "ls", "args": {"path": "."}, "id": "c1"}],
            },
        },
        {"type": "tool", "data": {"content": "a.py", "tool_call_id": "c1"}},
        {"type": "ai", "data": {"content": "a.py"}},
    ],
    "OpenTelemetry": [
        {"role": "user", "parts": [{"type": "text", "content": "What is here?"}]},
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "I look."},
                {"type": "tool_call", "id": "c1", "name": "ls", "arguments": {"path": "."}},
            ],
        },
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "a.py"}]},
        {"role": "assistant", "parts": [{"type": "text", "content": "a.py"}]},
    ],
}


def read(*messages: Any, fields: Fields | None = None, **options: Any) -> Messages:
    return read_messages(list(messages), "messages", fields or Fields({"messages": messages}), **options)


@pytest.mark.parametrize("name", SESSION)
def test_a_session_is_the_same_steps_in_every_format(name: str) -> None:
    steps = read(*SESSION[name]).steps

    assert [(step["source"], step["message"]) for step in steps] == [
        ("user", "What is here?"),
        ("agent", ""),
        ("agent", "a.py"),
    ]
    ((call,), (result,)) = steps[1]["tool_calls"], steps[1]["observation"]["results"]
    assert steps[1]["reasoning_content"] == "I look."
    assert (call["function_name"], call["arguments"]) == ("ls", {"path": "."})
    assert (result["source_call_id"], result["content"]) == (call["tool_call_id"], "a.py")
    assert [step["step_id"] for step in steps] == [1, 2, 3]


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ({"role": "narrator", "content": "x"}, r"messages\.1 has the role 'narrator'"),
        ({"role": "exit", "content": "x"}, r"messages\.1 has the role 'exit'"),
        ({"role": "assistant", "content": {"a": 1}}, r"messages\.1\.content is neither"),
        ({"role": "user", "content": 5}, r"messages\.1\.content is neither text nor a list of parts"),
        (
            {"role": "user", "content": [{"type": "document", "source": {}}]},
            r"messages\.1\.content\.0 is a part of type 'docum",
        ),
        (
            {"role": "user", "content": [{"type": "image_url"}]},
            r"messages\.1\.content\.0 is an image without an address",
        ),
        ({"role": "assistant", "tool_calls": [{"id": "c"}]}, r"messages\.1\.tool_calls\.0 .* names no function"),
        ({"role": "assistant", "tool_calls": [1]}, r"messages\.1\.tool_calls is not a list of objects"),
        ({"from": "function_call", "value": '{"name": "ls", "argu'}, r"messages\.1 is a turn of tool calls"),
        ({"type": "mystery_call", "id": "w"}, r"messages\.1 has the role 'mystery_call'"),
        ({"content": "x"}, r"messages\.1 has no role"),
        ({"role": "assistant", "channel": "aside", "content": ""}, r"messages\.1 has the channel 'aside'"),
        ({"role": "assistant", "content": "x", "train": "yes"}, r"messages\.1 has a mark of training that is neither"),
        ({"role": "assistant", "content": "x", "train_detail": [{}]}, r"messages\.1\.train_detail marks parts"),
        ({"role": "assistant", "content": "x", "trainable": False}, r"messages\.1\.trainable marks a message in a way"),
        ({"role": "tool", "content": "x", "train": True}, r"messages\.1 is trained on, but it is not an assistant"),
        ("x", r"messages\.1: a message is text without a role"),
        (3, r"messages\.1 is not an object"),
    ],
)
def test_what_is_not_understood_refuses_the_row_by_its_path_and_name(message: Any, reason: str) -> None:
    with pytest.raises(RowRefused, match=reason):
        read(ASKED, message)


@pytest.mark.parametrize(
    ("text", "message", "reasoning"),
    [
        ("<think>\nIt is short.\n</think>\n\npwd", "pwd", "It is short."),
        ("<thinking>It is short.</thinking>pwd", "pwd", "It is short."),
        ("<reasoning>It is short.</reasoning>\n<reflection>It is.</reflection>pwd", "pwd", "It is short.\n\nIt is."),
        ("<seed:think>It is short.</seed:think>pwd", "pwd", "It is short."),
        ("The user wants the folder.\n</think>\n\npwd", "pwd", "The user wants the folder."),
        ("<think>a</think>\n<think>b</think>pwd", "pwd", "a\n\nb"),
        ("<think>\n\n</think>\n\npwd", "pwd", None),
        ("<think>It was cut", "", "It was cut"),
        ("Write <think>x</think> around it.", "Write <think>x</think> around it.", None),
    ],
)
def test_thinking_is_apart_from_the_answer(text: str, message: str, reasoning: str | None) -> None:
    (step,) = read({"role": "assistant", "content": text}).steps
    assert (step["message"], step.get("reasoning_content")) == (message, reasoning)


@pytest.mark.parametrize(
    ("other", "is_told"),
    [
        ("It is short.", False),
        ([{"text": "It is "}, {"text": "short."}], False),
        ("Another.", True),
        ({"effort": 1}, True),
    ],
)
def test_reasoning_that_says_something_else_than_the_first_is_told(other: Any, is_told: bool) -> None:
    fields = Fields({})
    message = {"role": "assistant", "content": "pwd", "reasoning_content": "It is short.", "reasoning": other}
    (step,) = read_messages([message], "messages", fields).steps
    assert step["reasoning_content"] == "It is short."
    assert ("messages[].reasoning" in {entry["field"] for entry in fields.account().entries()}) == is_told


def test_a_result_belongs_to_the_step_that_called() -> None:
    calls = [{**CALL, "id": name} for name in ("a", "b")]
    steps = read(
        ASKED,
        {"role": "assistant", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "b", "content": "second"},
        {"role": "user", "content": "Hurry."},
        {"role": "tool", "content": "first", "name": "ls"},
        {"role": "tool", "tool_call_id": "elsewhere", "content": "lost"},
    ).steps

    assert [step["source"] for step in steps] == ["user", "agent", "user", "system"]
    assert steps[1]["observation"]["results"] == [
        {"source_call_id": "b", "content": "second"},
        {"source_call_id": "a", "content": "first", "extra": {"name": "ls"}},
    ]
    assert steps[3]["observation"]["results"] == [{"source_call_id": "elsewhere", "content": "lost"}]


def test_results_before_their_calls_are_of_the_step_that_calls() -> None:
    """Logs of calls that run at the same time may have them so."""
    calls = [{**CALL, "id": name} for name in ("a", "b")]
    results = [{"role": "tool", "tool_call_id": name, "content": name} for name in ("b", "a")]
    found = read(ASKED, *results, {"role": "assistant", "tool_calls": calls, "train": 1}, ASKED)
    assert [(step["step_id"], step["source"]) for step in found.steps] == [(1, "user"), (2, "agent"), (3, "user")]
    observed = [(one["source_call_id"], one["content"]) for one in found.steps[1]["observation"]["results"]]
    assert (observed, found.learned, found.positions) == ([("b", "b"), ("a", "a")], {1: True}, [0, 1, 1, 1, 2])
    steps = read(ASKED, results[0], ASKED, {"role": "assistant", "tool_calls": calls}).steps
    assert [step["source"] for step in steps] == ["user", "system", "user", "agent"]


def test_the_result_of_a_command_without_a_call_is_of_the_step_before() -> None:
    steps = read(ASKED, {"role": "assistant", "content": "ls"}, {"role": "tool", "content": "a.py"}).steps
    assert [step.get("observation") for step in steps] == [None, {"results": [{"content": "a.py"}]}]


def test_arguments_that_were_cut_off_are_kept_as_their_text() -> None:
    call = {"id": "1", "function": {"name": "ls", "arguments": '{"path": "/t'}}
    (step,) = read({"role": "assistant", "tool_calls": [call]}).steps
    assert step["tool_calls"] == [
        {"tool_call_id": "1", "function_name": "ls", "arguments": {}, "extra": {"unparsed_arguments": '{"path": "/t'}}
    ]


def test_marks_are_by_position_and_a_false_loss_means_context() -> None:
    found = read(
        ASKED,
        {"role": "assistant", "content": "5", "loss": False},
        ASKED,
        {"role": "assistant", "content": "4", "weight": 1},
        {"role": "assistant", "content": "no mark"},
    )
    assert found.learned == {1: False, 3: True}


def test_items_of_one_answer_with_different_marks_stay_apart() -> None:
    call = '{"name": "ls", "arguments": {}}'
    found = read(
        ASKED,
        {"role": "assistant", "content": "I look.", "loss": False},
        {"role": "tool_call", "content": call, "loss": True},
    )
    assert (len(found.steps), found.learned) == (3, {1: False, 2: True})


def test_images_are_parts() -> None:
    data = {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "QUJD"}}
    link = {"type": "image_url", "image_url": {"url": "shot.webp"}}
    (step,) = read({"role": "user", "content": [data, {"type": "text", "text": "What?"}, link]}).steps
    assert step["message"] == [
        {"type": "image", "source": {"media_type": "image/jpeg", "path": "data:image/jpeg;base64,QUJD"}},
        {"type": "text", "text": "What?"},
        {"type": "image", "source": {"media_type": "image/webp", "path": "shot.webp"}},
    ]


def test_fields_inside_messages_that_have_no_place_are_in_the_account() -> None:
    fields = Fields({"messages": []})
    read({**ASKED, "note": False, "cutoff_date": None}, {**ASKED, "note": True}, fields=fields)
    ignored = [entry for entry in fields.account().entries() if entry["field"] != "messages"]
    assert ignored == [{"field": "messages[].note", "rows": 1, "becomes": IGNORED}]


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ({"content": [{"type": "text", "text": "Look.", "new": 1}]}, {"messages[].content[].new"}),
        ({"content": [{"type": "text", "text": "Look.", "annotations": []}]}, set()),
        ({"content": [{"text": "Look.", "thoughtSignature": "s"}]}, {"messages[].content[].thoughtSignature"}),
        ({"content": [{"type": "thinking", "thinking": "Hm.", "signature": "s"}]}, {"messages[].content[].signature"}),
        (
            {"content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}, "new": 1}]},
            {"messages[].content[].new"},
        ),
        (
            {"content": [{"type": "image_url", "image_url": {"url": "https://x/a.png", "detail": "low"}}]},
            {"messages[].content[].image_url.detail"},
        ),
        (
            {"content": [{"type": "tool_result", "content": [{"type": "text", "text": "x", "new": 1}]}]},
            {"messages[].content[].content[].new"},
        ),
        ({"content": [{"type": "document", "document": {"data": "x"}, "title": "t"}]}, {"messages[].content[].title"}),
        (
            {"content": "", "tool_calls": [{**CALL, "index": 0, "new": 1, "function": {"name": "ls", "new": 1}}]},
            {"messages[].tool_calls[].new", "messages[].tool_calls[].function.new"},
        ),
    ],
)
def test_fields_of_parts_and_calls_that_have_no_place_are_in_the_account(
    message: dict[str, Any], told: set[str]
) -> None:
    fields = Fields({"id": 1})
    read(ASKED, {"role": "assistant", **message}, fields=fields)
    assert {entry["field"] for entry in fields.account().entries()} == told | {"id"}


@pytest.mark.parametrize("field", ["refusal", "text", "summary", "code", "output", "arguments", "action"])
def test_a_second_content_and_fields_of_items_are_in_the_account(field: str) -> None:
    fields = Fields({"id": 1})
    read(ASKED, {"role": "assistant", "content": "Partly.", field: "More."}, fields=fields)
    becomes = {entry["field"]: entry["becomes"] for entry in fields.account().entries()}
    assert becomes == {"id": IGNORED, f"messages[].{field}": IGNORED}


@pytest.mark.parametrize("field", ["output", "result", "response"])
def test_a_tool_without_content_returns_its_output(field: str) -> None:
    found = read(ASKED, {"role": "assistant", "content": "", "tool_calls": [CALL]}, {"role": "tool", field: "a.py"})
    assert found.steps[1]["observation"]["results"][0]["content"] == "a.py"


def test_an_older_call_beside_others_is_a_call_unless_it_repeats_one() -> None:
    said = {"role": "assistant", "content": "", "tool_calls": [CALL]}
    for function, names in ((CALL["function"], ["ls"]), ({"name": "cat", "arguments": "{}"}, ["ls", "cat"])):
        (step,) = read({**said, "function_call": function}).steps
        assert [call["function_name"] for call in step["tool_calls"]] == names


@pytest.mark.parametrize("of_user", [False, True])
def test_a_mask_means_the_opposite_of_that_of_users(of_user: bool) -> None:
    user = {**ASKED, "mask": of_user}
    first, second = ({"role": "assistant", "content": text, "mask": mask} for text, mask in (("4", True), ("5", False)))
    assert read(user, first, user, second).learned == {1: not of_user, 3: of_user}


def test_a_mask_of_which_no_other_message_tells_the_meaning_refuses_the_row() -> None:
    with pytest.raises(RowRefused, match='messages has "mask", which sets use for trained messages and for those'):
        read(ASKED, {"role": "assistant", "content": "4", "mask": True})


@pytest.mark.parametrize(
    "text",
    [
        "I look.\n\n<function=ls>\n<parameter=path>\nsrc\n</parameter>\n</function>\n<function=submit>\n</function>",
        "I look.\n<tool_call>\n<function=ls>\n<parameter=path>\nsrc\n</parameter>\n</function>\n<function=submit>\n"
        "</function>\n</tool_call>",
    ],
)
def test_elements_of_a_call_are_read_as_calls(text: str) -> None:
    (step,) = read({"from": "function_call", "value": text}).steps
    calls = [(call["function_name"], call["arguments"]) for call in step["tool_calls"]]
    assert (step["message"], calls) == ("I look.", [("ls", {"path": "src"}), ("submit", {})])


@pytest.mark.parametrize("text", ["<function=ls>\nsrc</function>", "<function=ls></function> Done.", "<function=ls>"])
def test_text_that_is_no_parameter_of_a_call_refuses_the_row(text: str) -> None:
    with pytest.raises(RowRefused, match=r"messages\.0 is a turn of tool calls with text that is in no parameter"):
        read({"from": "function_call", "value": text})


def test_roles_of_a_person_come_first() -> None:
    roles = {"narrator": "user", "exit": "ignored"}
    steps = read({"role": "narrator", "content": "Hi"}, {"role": "exit", "content": "x"}, roles=roles).steps
    assert [(step["source"], step["message"]) for step in steps] == [("user", "Hi")]


def test_results_in_reverse_order_of_many_calls_take_linear_time() -> None:
    ids = [f"c{number}" for number in range(20_000)]
    calls = [{"id": name, "function": {"name": "ls", "arguments": "{}"}} for name in ids]
    results = [{"role": "tool", "tool_call_id": name, "content": name} for name in reversed(ids)]
    before = process_time()
    (step,) = read_messages([{"role": "assistant", "tool_calls": calls}, *results], "messages", Fields({})).steps
    assert process_time() - before < 2
    assert step["observation"]["results"][0] == {"source_call_id": "c19999", "content": "c19999"}
