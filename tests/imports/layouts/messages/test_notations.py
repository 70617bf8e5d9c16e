"""Tool calls in the notations of models are calls where they are whole, and any other text stays text."""

from time import process_time
from typing import Any

import pytest

from curation.imports.layouts.account import Fields
from curation.imports.layouts.messages.read import Messages, read_messages

WRITTEN = "(calls written as text)"
HERMES = '<tool_call>\n{"name": "ls", "arguments": {"path": "."}}\n</tool_call>'
DEEPSEEK = (
    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>ls\n```json\n"
    '{"path": "."}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>pwd\n```json\n'
    "{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
)
TWO = {
    "Hermes": f'{HERMES}\n<tool_call>{{"name": "pwd", "arguments": {{}}}}</tool_call><|im_end|>',
    "Qwen3 Coder": "<tool_call>\n<function=ls>\n<parameter=path>\n.\n</parameter>\n</function>\n</tool_call>\n"
    "<tool_call>\n<function=pwd>\n</function>\n</tool_call>",
    "GLM": "<tool_call>ls\n<arg_key>path</arg_key>\n<arg_value>.</arg_value>\n</tool_call>\n"
    "<tool_call>pwd\n</tool_call>",
    "GLM without lines": "<tool_call>ls<arg_key>path</arg_key><arg_value>.</arg_value></tool_call>"
    "<tool_call>pwd\n</tool_call>",
    "Mistral": '[TOOL_CALLS] [{"name": "ls", "arguments": {"path": "."}}, {"name": "pwd", "arguments": {}}]</s>',
    "Mistral since v11": '[TOOL_CALLS]ls[ARGS]{"path": "."}[TOOL_CALLS]pwd[ARGS]{}',
    "Llama": '<|python_tag|>{"name": "ls", "parameters": {"path": "."}}; {"name": "pwd", "parameters": {}}<|eom_id|>',
    "DeepSeek": f"{DEEPSEEK}<｜end▁of▁sentence｜>",
    "DeepSeek since 3.1": '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>ls<｜tool▁sep｜>{"path": "."}<｜tool▁call▁end｜>'
    "<｜tool▁call▁begin｜>pwd<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    "Kimi": '<|tool_calls_section_begin|><|tool_call_begin|>functions.ls:0<|tool_call_argument_begin|>{"path": "."}'
    "<|tool_call_end|><|tool_call_begin|>functions.pwd:1<|tool_call_argument_begin|>{}<|tool_call_end|>"
    "<|tool_calls_section_end|>",
}


def read(*contents: str, role: str = "assistant") -> tuple[Messages, dict[str, str]]:
    fields = Fields({})
    messages = [{"role": role, "content": content} for content in contents]
    found = read_messages([{"role": "user", "content": "Go."}, *messages], "messages", fields)
    return found, {entry["field"]: entry["becomes"] for entry in fields.account().entries()}


def called(step: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(call["function_name"], call["arguments"]) for call in step.get("tool_calls", ())]


@pytest.mark.parametrize("before", ["", "I look.\n\n", "Not `[TOOL_CALLS]`, `<tool_call>` but:\n"])
@pytest.mark.parametrize("written", TWO.values(), ids=TWO)
def test_calls_of_a_notation_are_calls(written: str, before: str) -> None:
    found, account = read(before + written)
    assert (found.steps[-1]["message"], account[WRITTEN]) == (before.rstrip(), "steps")
    assert called(found.steps[-1]) == [("ls", {"path": "."}), ("pwd", {})]


@pytest.mark.parametrize("written", TWO.values(), ids=TWO)
def test_the_same_text_of_a_user_or_in_code_stays_text(written: str) -> None:
    for role, text in (("user", written), ("assistant", f"```\n{written}\n```"), ("assistant", f"So:\n```\n{written}")):
        found, account = read(text, role=role)
        assert (found.steps[-1]["message"], called(found.steps[-1])) == (text, [])
        assert WRITTEN not in account


@pytest.mark.parametrize("written", TWO.values(), ids=TWO)
def test_calls_that_are_not_whole_stay_text_and_the_account_says_so(written: str) -> None:
    mark = written.index(next(end for end in ("]", ">") if end in written[:30]))
    for text in (written[: len(written) * 2 // 3], f"{written}\nDone.", written[: mark + 1]):
        found, account = read(text)
        assert (found.steps[-1]["message"], called(found.steps[-1])) == (text, [])
        assert account[WRITTEN].startswith("text: ")


@pytest.mark.parametrize(
    "text",
    [
        "<|python_tag|>print('a')",
        '<|python_tag|>{"name": "ls", "parameters": {"path": "{}; {}"}}; {"name"',
        '[TOOL_CALLS]ls[ARGS]["."]',
        "[TOOL_CALLS] []",
        "Write <tool_call>NAME</tool_call>",
        f"{HERMES}\nand\n{HERMES}",
        "<tool_call>ls\n<arg_key>a</arg_key><arg_value>1</arg_value><arg_key>a</arg_key><arg_value>2</arg_value></tool_call>",
        "<tool_call><function=ls>\n<parameter=a>1</parameter>\n<parameter=a>2</parameter>\n</function></tool_call>",
    ],
)
def test_what_no_call_can_hold_stays_text(text: str) -> None:
    found, account = read(text)
    assert (found.steps[-1]["message"], called(found.steps[-1])) == (text, [])
    assert account[WRITTEN].startswith("text: ")


def test_a_calls_id_is_kept_and_results_follow_calls() -> None:
    messages = [
        {"role": "assistant", "content": '[TOOL_CALLS]ls[CALL_ID]abc123DEF[ARGS]{"path": "."}'},
        {"role": "tool", "content": "a.py"},
    ]
    (step,) = read_messages(messages, "messages", Fields({})).steps
    assert step["tool_calls"][0]["tool_call_id"] == "abc123DEF"
    assert step["observation"]["results"] == [{"source_call_id": "abc123DEF", "content": "a.py"}]


@pytest.mark.parametrize("name", ["Qwen3 Coder", "GLM"])
def test_arguments_without_types_are_text_and_the_account_says_so(name: str) -> None:
    found, account = read(TWO[name].replace(".", "2", 1))
    assert called(found.steps[-1])[0] == ("ls", {"path": "2"})
    assert account["(arguments of calls written as text)"] == "text: the notation has no types"


def test_other_fields_of_a_call_are_in_the_account() -> None:
    _, account = read('<tool_call>{"name": "ls", "arguments": {}, "why": "to look"}</tool_call>')
    assert account["messages[].why"] == "ignored"


def test_a_turn_of_calls_has_them_in_any_notation() -> None:
    for written in TWO.values():
        found, _ = read(written, role="tool_call")
        assert called(found.steps[-1]) == [("ls", {"path": "."}), ("pwd", {})]


@pytest.mark.parametrize(
    "mark", ["`<tool_call>", "[TOOL_CALLS]", "<|python_tag|>{};", "<｜tool▁calls▁begin｜>", "<arg_key>"]
)
def test_a_hostile_text_takes_linear_time(mark: str) -> None:
    before = process_time()
    read("<tool_call>" + mark * 60_000, mark * 60_000, f"{mark}{' ' * 200_000}x")
    assert process_time() - before < 2
