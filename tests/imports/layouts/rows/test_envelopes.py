import json
from typing import Any

import pytest

from curation.imports.layouts.rows.envelopes import rows_in
from curation.imports.layouts.rows.read import has_conversation, read_row
from curation.imports.layouts.session import SessionOutcome
from curation.imports.sources.rows import RowRefused
from tests.imports.layouts.golden import documents, packed, said

USER, AGENT = {"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}
BOTH = [("user", "Hi."), ("agent", "Hello.")]
USAGE = {"prompt_tokens": 3, "completion_tokens": 1}
LANGCHAIN = {"lc": 1, "id": ["langchain", "schema", "messages", "AIMessage"], "kwargs": {"content": "Hello."}}
ROWS: dict[str, tuple[dict[str, Any], str]] = {
    "a column of its own": ({"traj": [USER, AGENT], "task_id": 3}, "traj"),
    "a path": ({"episode": {"log": {"dialog": [USER, AGENT]}}}, "episode.log.dialog"),
    "JSON text": ({"dump": json.dumps([USER, AGENT])}, "dump"),
    "a batch of OpenAI": ({"custom_id": "a", "body": {"messages": [USER, AGENT]}}, "body.messages"),
    "a batch of Anthropic": ({"custom_id": "a", "params": {"messages": [USER, AGENT]}}, "params.messages"),
    "a logged call": (
        {"request": {"messages": [USER]}, "response": {"choices": [{"message": AGENT}], "usage": USAGE}},
        "request.messages",
    ),
    "a call of Gemini": (
        {
            "request": {"contents": [{"role": "user", "parts": [{"text": "Hi."}]}]},
            "response": {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hello."}]}}]},
        },
        "request.contents",
    ),
    "a run of LangSmith": (
        {"inputs": {"messages": [[USER]]}, "outputs": {"generations": [[{"message": LANGCHAIN}]]}},
        "inputs.messages",
    ),
    "a graph of LangSmith": (
        {"inputs": {"messages": [USER]}, "outputs": {"messages": [USER, AGENT]}},
        "inputs.messages",
    ),
    "a batch of Bedrock": ({"modelInput": {"messages": [USER]}, "modelOutput": AGENT}, "modelInput.messages"),
    "a call of AppWorld": (
        {"input": {"messages": [USER], "model": "m"}, "output": {"choices": [{"message": AGENT}], "usage": USAGE}},
        "input.messages",
    ),
    "a rollout of verl": (
        {"input": "<|im_start|>user\nHi.<|im_end|>\n<|im_start|>assistant\n", "output": "Hello.<|im_end|>", "score": 1},
        "input",
    ),
    "a row of Glaive": ({"chat": "USER: Hi.\n\n\nASSISTANT: Hello. <|endoftext|>"}, "chat"),
    "the state of an agent of AutoGen": (
        {
            "agent_states": {
                "llm_context": [
                    {"type": "UserMessage", "source": "user", "content": "Hi."},
                    {"type": "AssistantMessage", "source": "coder", "content": "Hello."},
                ]
            }
        },
        "agent_states.llm_context",
    ),
    "a response of OpenAI": ({"input": "Hi.", "output": [{"type": "message", **AGENT}]}, "input"),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_conversation_inside_of_a_row_is_found(name: str) -> None:
    row, path = ROWS[name]
    session, account = read_row(row)
    assert said(session) == BOTH
    assert path in {entry["field"] for entry in account.entries() if entry["becomes"] == "steps"}
    assert has_conversation(row)


def test_an_answer_of_a_logged_call_has_its_usage() -> None:
    session, _ = read_row(ROWS["a logged call"][0])
    assert session.steps[1]["metrics"] == USAGE
    assert (session.usage.input_tokens, session.usage.output_tokens) == (3, 1)


def test_other_choices_of_a_logged_call_and_its_other_fields_are_in_the_account() -> None:
    choices = [{"message": AGENT, "finish_reason": "stop"}, {"message": {"role": "assistant", "content": "Hey."}}]
    response = {"id": "chatcmpl-1", "created": 1767225600, "choices": choices}
    session, account = read_row({"messages": [USER], "response": response})
    becomes = {entry["field"]: entry["becomes"] for entry in account.entries()}
    assert said(session) == BOTH and session.steps[1]["timestamp"] == "2026-01-01T00:00:00+00:00"
    assert becomes["response.choices"] == "ignored: the first answer of a call is read"
    assert becomes["response.id"] == becomes["response.choices[].finish_reason"] == "ignored"


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"input_tokens": 5, "cache_read_input_tokens": 90, "output_tokens": 7}, (95, 7, 90)),
        ({"prompt_tokens": 95, "cache_read_input_tokens": 90, "completion_tokens": 7}, (95, 7, 90)),
        ({"inputTokens": 5, "cacheReadInputTokens": 60, "cacheWriteInputTokens": 30, "outputTokens": 7}, (95, 7, 60)),
        ({"promptTokenCount": 95, "candidatesTokenCount": 3, "thoughtsTokenCount": 4}, (95, 7, None)),
        ({"tokens": {"prompt": 95, "completion": 7, "cached": 90}}, (95, 7, 90)),
    ],
)
def test_tokens_are_counted_once(usage: dict[str, Any], expected: tuple[int, int, int | None]) -> None:
    session, _ = read_row({"messages": [USER, {**AGENT, "usage": usage}]})
    assert (session.usage.input_tokens, session.usage.output_tokens, session.usage.cached_tokens) == expected


def test_an_answer_without_its_request_is_refused_with_the_reason() -> None:
    with pytest.raises(RowRefused, match="response is an answer without its request"):
        read_row({"custom_id": "a", "response": {"body": {"choices": [{"message": AGENT}]}}})


def test_an_answer_beside_its_question_needs_no_request() -> None:
    session, _ = read_row({"question": "Hi.", "response": [AGENT]})
    assert said(session) == BOTH


def test_several_lists_of_messages_are_refused_with_their_paths() -> None:
    with pytest.raises(RowRefused, match="several lists of messages: first, second"):
        read_row({"first": [USER, AGENT], "second": [USER, AGENT]})


def test_a_rollout_is_one_conversation_whose_reference_answer_is_metadata() -> None:
    row = {"prompt": [USER], "completion": [AGENT], "answer": "Hello!", "reward": 1.0, "example_id": 3}
    session, _ = read_row(row)
    assert (said(session), session.metadata["answer"]) == (BOTH, "Hello!")
    assert session.verdict.outcome is SessionOutcome.SOLVED


@pytest.mark.parametrize("task, expected", [({"task": "math"}, "math/0"), ({}, "0")])
def test_an_example_of_an_environment_is_a_task(task: dict[str, str], expected: str) -> None:
    session, _ = read_row({"prompt": [USER], "completion": [AGENT], "reward": 1.0, "example_id": 0, **task})
    assert session.origin.task == expected


def test_the_reward_may_be_in_an_object() -> None:
    session, account = read_row({"messages": [USER, AGENT], "reward_info": {"reward": 0.0, "db": {}}})
    assert (session.verdict.outcome, dict(session.verdict.rewards)) == (SessionOutcome.FAILED, {"reward": 0.0})
    assert {"field": "reward_info.reward", "rows": 1, "becomes": "reward.reward"} in account.entries()


def test_runs_in_a_list_of_a_document_are_rows() -> None:
    run = {"messages": [USER, AGENT], "task_id": "t"}
    results = {"info": {"seed": 1}, "simulations": [{**run, "trial": 0}, {**run, "trial": 1}]}
    found = documents(packed({"results.json": json.dumps(results, indent=1).encode()}))
    assert [document.row.value["trial"] for document in found.values() if document.row] == [0, 1]


def test_calls_alone_are_an_answer() -> None:
    session, _ = read_row({"query": "List.", "answers": '[{"name": "ls", "arguments": {"path": "."}}]'})
    assert session.steps[-1]["tool_calls"][0]["arguments"] == {"path": "."}


def test_steps_of_actions_are_calls_with_their_observations() -> None:
    acts = [
        {
            "thought": "Look.",
            "action": "<function=ls>\n<parameter=path>.</parameter>\n</function>",
            "observation": "a.py",
        },
        {"thought": "Search.", "action": "search", "action_input": "bug", "observation": "line 3"},
    ]
    session, account = read_row({"trajectory_steps": acts, "problem_statement": "Fix.", "reward": 1.0})
    assert said(session) == [("user", "Fix."), ("agent", "Look."), ("agent", "Search.")]
    calls = [(call["function_name"], call["arguments"]) for step in session.steps[1:] for call in step["tool_calls"]]
    assert calls == [("ls", {"path": "."}), ("search", {"input": "bug"})]
    assert [step["observation"]["results"][0]["content"] for step in session.steps[1:]] == ["a.py", "line 3"]
    assert {"field": "problem_statement", "rows": 1, "becomes": "user message"} in account.entries()


def test_events_of_autogen_are_messages() -> None:
    call = {"id": "c", "name": "ls", "arguments": "{}"}
    result = {"call_id": "c", "name": "ls", "content": "a.py", "is_error": False}
    events = [
        {"source": "user", "type": "TextMessage", "content": "List."},
        {"source": "coder", "type": "ToolCallRequestEvent", "content": [call], "models_usage": USAGE},
        {"source": "coder", "type": "ToolCallExecutionEvent", "content": [result]},
        {"source": "critic", "type": "TextMessage", "content": "Fine."},
    ]
    session, _ = read_row({"messages": events})
    assert said(session) == [("user", "List."), ("agent", ""), ("agent", "Fine.")]
    assert session.steps[1]["metrics"] == USAGE
    assert session.steps[1]["observation"]["results"] == [{"source_call_id": "c", "content": "a.py"}]
    assert session.steps[2]["extra"] == {"name": "critic"}
    context = [
        {"type": "UserMessage", "source": "user", "content": "List."},
        {"type": "AssistantMessage", "source": "coder", "content": [call], "thought": "Hm."},
        {"type": "FunctionExecutionResultMessage", "content": [result]},
        {"type": "AssistantMessage", "source": "coder", "content": "Fine."},
    ]
    session, _ = read_row({"messages": context})
    assert said(session) == [("user", "List."), ("agent", ""), ("agent", "Fine.")]
    assert session.steps[1]["reasoning_content"] == "Hm."
    assert session.steps[1]["observation"]["results"] == [{"source_call_id": "c", "content": "a.py"}]


def test_the_model_and_usage_may_be_in_an_object_of_the_message() -> None:
    about = {"model_name": "gpt-5", "token_usage": USAGE, "finish_reason": "stop"}
    row = {"messages": [USER, {"type": "ai", "content": "Hello.", "response_metadata": about}]}
    session, account = read_row(row)
    assert (session.agent["model_name"], session.usage.input_tokens) == ("gpt-5", 3)
    told = {entry["field"]: entry["becomes"] for entry in account.entries()}
    assert told["messages[].response_metadata.model_name"] == "agent"


def test_the_last_of_lists_that_continue_each_other_is_the_conversation() -> None:
    """So ToolBench has the messages of each call."""
    messages = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": "a"},
        {"role": "user", "content": "b"},
    ]
    messages.append({"role": "assistant", "content": "c"})
    function = [{"name": "f", "parameters": {}}]
    answer = {"train_messages": [messages[:2], messages], "function": function, "final_answer": "c"}
    session, account = read_row({"win": True, "tree": {"size": 2}, "answer_generation": answer})
    assert [step["message"] for step in session.steps] == ["Go.", "a", "b", "c"]
    assert [tool["function"]["name"] for tool in session.tools] == ["f"]
    told = {one["field"]: one["becomes"] for one in account.entries()}
    assert told["answer_generation.train_messages"] == "steps" and told["tree"].startswith("ignored")


def test_empty_fields_of_a_row_leave_those_of_its_document() -> None:
    """So Letta has the tools beside its agents, whose system prompt is the beginning of their first message."""
    tools = [{"name": "f", "json_schema": {"name": "f", "parameters": {"type": "object"}}, "source_code": "x"}]
    messages = [{"role": "system", "content": "Be brief. Now."}, {"role": "assistant", "content": "Hi."}]
    document = {"agents": [{"name": "a", "tools": [], "system": "Be brief.", "messages": messages}], "tools": tools}
    session, _ = read_row(rows_in(document)[0])
    assert [step["message"] for step in session.steps] == ["Be brief. Now.", "Hi."]
    assert session.tools[0]["function"] == {"name": "f", "parameters": {"type": "object"}}
