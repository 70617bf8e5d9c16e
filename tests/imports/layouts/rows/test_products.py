"""Rows as tools and published sets write them: calls, results, tools, rewards and answers are kept."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from curation.imports.layouts.folder import Document
from curation.imports.layouts.rows.envelopes import rows_in
from curation.imports.layouts.rows.read import read_row
from curation.imports.layouts.session import AgentSession, SessionOutcome, SessionUsage
from curation.imports.sources.rows import RowRefused
from tests.imports.layouts.golden import documents, packed, said

Row = dict[str, Any]
USER, SYSTEM = {"role": "user", "content": "Q"}, {"role": "system", "content": "S"}
DONE = {"role": "assistant", "content": "Done."}
CALL = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"path": "."}'}}
CALLS = {"role": "assistant", "content": None, "tool_calls": [CALL]}
TOOL = {"type": "function", "function": {"name": "ls", "parameters": {"type": "object"}}}
SPEC = {"toolSpec": {"name": "ls", "inputSchema": {"json": {"type": "object"}}}}
USED = {"prompt_tokens": 3, "completion_tokens": 1}
TEXT = {"type": "text", "text": "Done."}


def parts(*given: Any) -> Row:
    return {"role": "assistant", "content": list(given)}


def result(*given: Any) -> Row:
    return {"role": "tool", "content": list(given)}


LANGCHAIN = {"lc": 1, "id": ["langchain", "AIMessage"], "kwargs": {"content": "", "tool_calls": [CALL["function"]]}}
# Each has a call of `ls`, after the question; those in the second list also the tool.
WITH_CALL: dict[str, Row] = {
    "Vercel's messages of models": {
        "messages": [USER, parts({"type": "tool-call", "toolCallId": "c1", "toolName": "ls", "input": {"path": "."}})]
    },
    "Vercel's messages, version 4": {
        "messages": [USER, {"toolInvocations": [{"toolCallId": "c1", "toolName": "ls", "args": {"path": "."}}], **DONE}]
    },
    "Vercel's messages, version 5": {
        "messages": [USER, {"role": "assistant", "parts": [{"type": "tool-ls", "input": {"path": "."}}]}]
    },
    "Pi's parts": {
        "messages": [USER, parts({"type": "toolCall", "id": "c1", "name": "ls", "arguments": {"path": "."}})]
    },
    "smolagents' texts": {
        "messages": [
            USER,
            {"role": "tool-call", "content": [{"type": "text", "text": f"Calling tools:\n{[CALL]}"}]},
        ]
    },
    "calls in a field that nobody knows": {
        "messages": [USER, {"role": "assistant", "content": "", "toolCalls": [{"name": "ls", "args": {"path": "."}}]}]
    },
    "events of Google's ADK": {
        "events": [
            {"author": "user", "content": {"role": "user", "parts": [{"text": "Q"}]}},
            {
                "author": "a",
                "content": {"role": "model", "parts": [{"functionCall": {"name": "ls", "args": {"path": "."}}}]},
            },
        ]
    },
    "calls in Python": {
        "conversations": [
            {"from": "human", "value": "Q"},
            {"from": "gpt", "value": "<tool_call>{'name': 'ls', 'arguments': {'path': '.'}}</tool_call>"},
        ]
    },
}
WITH_TOOL: dict[str, Row] = {
    "a log of LiteLLM": {
        "messages": [USER],
        "response": {"choices": [{"message": CALLS}], "usage": USED},
        "model_parameters": {"tools": [TOOL]},
    },
    "a call of Weave": {
        "op_name": "openai.chat.completions.create",
        "trace_id": "t",
        "attributes": {},
        "inputs": {"messages": [USER], "tools": [TOOL]},
        "output": {"choices": [{"message": CALLS}], "usage": USED},
    },
    "a span of Braintrust": {
        "input": [USER],
        "output": [{"index": 0, "message": CALLS}],
        "expected": "x",
        "metadata": {"model": "gpt", "tools": [TOOL]},
        "metrics": USED,
    },
    "a run of LangSmith": {
        "inputs": {"messages": [[USER]]},
        "outputs": {"generations": [[{"message": LANGCHAIN}]]},
        "extra": {"invocation_params": {"model": "gpt", "tools": [TOOL]}},
    },
    "tools in the metadata": {"messages": [USER, CALLS], "metadata": json.dumps({"tools": [TOOL]})},
    "Bedrock": {
        "toolConfig": {"tools": [SPEC]},
        "messages": [USER, parts({"toolUse": {"toolUseId": "c1", "name": "ls", "input": {"path": "."}}})],
    },
    "a log of Bedrock": {
        "input": {"inputBodyJson": {"messages": [USER], "toolConfig": {"tools": [SPEC]}}},
        "output": {
            "outputBodyJson": {"output": {"message": parts({"toolUse": {"name": "ls", "input": {"path": "."}}})}}
        },
    },
    "tools beside the messages": {"data": {"messages": [USER, CALLS], "tools": [TOOL]}},
    "a stored completion": {"messages": [USER], "choices": [{"message": CALLS}], "tools": [TOOL]},
}


def read(row: Mapping[str, Any]) -> tuple[AgentSession, dict[str, str]]:
    session, account = read_row(row)
    return session, {entry["field"]: entry["becomes"] for entry in account.entries()}


@pytest.mark.parametrize("name", [*WITH_CALL, *WITH_TOOL])
def test_calls_are_kept(name: str) -> None:
    session, _ = read((WITH_CALL | WITH_TOOL)[name])
    assert said(session)[0] == ("user", "Q")
    step = session.steps[1]
    assert [(call["function_name"], call["arguments"]) for call in step["tool_calls"]] == [("ls", {"path": "."})]
    assert step["message"] in ("", "Done.")
    assert [tool["function"]["name"] for tool in session.tools] == (["ls"] if name in WITH_TOOL else [])


@pytest.mark.parametrize("name", ["a log of LiteLLM", "a call of Weave", "a span of Braintrust"])
def test_the_usage_of_a_logged_call_is_kept(name: str) -> None:
    session, _ = read(WITH_TOOL[name])
    assert session.usage == SessionUsage(3, 1)


def test_what_is_expected_of_an_answer_is_no_answer() -> None:
    session, account = read(WITH_TOOL["a span of Braintrust"])
    assert (session.endings, session.metadata["expected"]) == ([], "x")
    assert (session.agent["model_name"], account["metadata.model"]) == ("gpt", "model")


RESULTS: dict[str, Row] = {
    "Vercel": {"type": "tool-result", "toolCallId": "c1", "output": {"type": "text", "value": "a.py"}},
    "Bedrock": {"toolResult": {"toolUseId": "c1", "content": [{"text": "a.py"}]}},
    "Amp": {"type": "tool_result", "toolUseID": "c1", "run": {"status": "done", "result": "a.py"}},
    "Cohere": {"type": "document", "document": {"data": "a.py"}},
    "Anthropic's own tools": {"type": "web_search_tool_result", "tool_use_id": "c1", "content": "a.py"},
    "MCP": {"type": "resource", "resource": {"uri": "file:a", "text": "a.py"}},
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_of_tools_are_kept(name: str) -> None:
    message = result(RESULTS[name]) | {"tool_call_id": "c1"}
    session, _ = read({"messages": [USER, CALLS, message, DONE]})
    assert session.steps[1]["observation"]["results"] == [{"source_call_id": "c1", "content": "a.py"}]
    assert said(session)[-1] == ("agent", "Done.")


def test_each_step_of_a_message_of_vercel_is_a_step() -> None:
    shown = [
        {"type": "step-start"},
        {"type": "reasoning", "text": "Hm.", "state": "done"},
        {"type": "text", "text": "Look."},
        {"type": "tool-ls", "toolCallId": "c1", "state": "output-available", "input": {}, "output": {"n": 1}},
        {"type": "dynamic-tool", "toolName": "cat", "toolCallId": "c2", "input": {}, "errorText": "no file"},
        {"type": "step-start"},
        {"type": "source-url", "url": "http://localhost/"},
        TEXT,
    ]
    image = {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,aGk="}
    asked = {"role": "user", "parts": [{"type": "data-x"}, {"type": "text", "text": "Q"}, image]}
    session, account = read({"messages": [asked, {"id": "m", "role": "assistant", "parts": shown}]})
    assert [step["source"] for step in session.steps] == ["user", "agent", "agent"]
    assert session.steps[0]["message"][1]["source"]["path"] == image["url"]
    first = session.steps[1]
    assert (first["message"], first["reasoning_content"]) == ("Look.", "Hm.")
    assert [call["function_name"] for call in first["tool_calls"]] == ["ls", "cat"]
    ran, failed = first["observation"]["results"]
    assert ran == {"source_call_id": "c1", "content": '{"n":1}'}
    assert (failed["content"], failed["extra"]) == ("no file", {"is_error": True})
    assert account["messages[].id"] == account["messages[].content[].source-url"] == "ignored"


REWARDED: dict[str, tuple[Row, dict[str, float], SessionOutcome]] = {
    "LangSmith": ({"feedback_stats": {"right": {"n": 2, "avg": 0.5}}}, {"right": 0.5}, SessionOutcome.UNKNOWN),
    "Langfuse": ({"scores": {"helpful": [1]}}, {"helpful": 1.0}, SessionOutcome.UNKNOWN),
    "Braintrust": ({"scores": {"passed": 1, "f": 0.5}}, {"passed": 1.0, "f": 0.5}, SessionOutcome.SOLVED),
    "graders": ({"results": [{"name": "exact", "passed": True}]}, {"exact": 1.0}, SessionOutcome.UNKNOWN),
}


@pytest.mark.parametrize("name", REWARDED)
def test_scores_are_rewards(name: str) -> None:
    more, rewards, outcome = REWARDED[name]
    session, account = read({"messages": [USER, DONE], **more})
    assert (dict(session.verdict.rewards), session.verdict.outcome) == (rewards, outcome)
    assert account[next(iter(more))] == ", ".join(f"reward.{one}" for one in rewards)


def test_a_result_of_langchain_has_the_tokens_of_its_call() -> None:
    told = {"token_usage": {"prompt_tokens": 9, "completion_tokens": 2}, "model_name": "gpt", "system_fingerprint": "f"}
    outputs = {"generations": [[{"text": "Done.", "message": LANGCHAIN}]], "llm_output": told}
    session, account = read({"inputs": {"messages": [[USER]]}, "outputs": outputs})
    assert (session.usage, session.agent["model_name"]) == (SessionUsage(9, 2), "gpt")
    assert account["outputs.llm_output.system_fingerprint"] == account["outputs.generations[].text"] == "ignored"


def test_an_item_of_an_evaluation_has_its_sample_and_grades() -> None:
    sample = {"input": [SYSTEM, USER], "output": [DONE], "model": "gpt", "usage": USED}
    session, account = read({"id": "i", "status": "pass", "sample": sample, "results": [{"name": "g", "score": 0.5}]})
    assert said(session) == [("system", "S"), ("user", "Q"), ("agent", "Done.")]
    assert (session.agent["model_name"], session.usage, session.verdict.rewards) == (
        "gpt",
        SessionUsage(3, 1),
        {"g": 0.5},
    )
    assert account["sample.input"] == "steps"


def test_a_field_of_a_request_that_the_row_has_too_is_kept() -> None:
    session, account = read({"id": "row", "request": {"id": "call", "messages": [USER, DONE]}})
    assert (session.origin.id, session.metadata["request.id"]) == ("row", "call")
    assert account["request.id"] == "metadata"


@pytest.mark.parametrize("column", ["response", "completion"])
def test_the_answer_beside_messages_is_a_step(column: str) -> None:
    session, account = read({"messages": [USER], column: "Done."})
    assert said(session) == [("user", "Q"), ("agent", "Done.")]
    assert account[column] == "steps"


def test_text_in_chatml_is_a_conversation() -> None:
    session, account = read({"text": "<|im_start|>user\nQ<|im_end|>\n<|im_start|>assistant\nDone.<|im_end|>\n"})
    assert said(session) == [("user", "Q"), ("agent", "Done.")]
    assert account == {"text": "steps"}


def test_marks_in_a_column_of_another_name_are_read_or_refused() -> None:
    session, account = read({"messages": [USER, DONE, USER, DONE], "train_mask": [0, 0, 0, 1]})
    assert (session.learned, account["train_mask"]) == ({1: False, 3: True}, "marks of training")


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"messages": [USER, DONE], "masks": [0, 1]}, "masks marks messages in a way that is not known"),
        ({"log": [{"role": "boss", "content": "Q"}, {"role": "bee", "content": "A"}]}, "log may be the messages"),
        ({"text": "<s>[INST] Q [/INST] Done.</s>"}, "of which only ChatML is read"),
        ({"choices": [{"message": DONE}]}, "choices is an answer without its request"),
    ],
)
def test_a_conversation_is_no_prompt(row: Row, reason: str) -> None:
    with pytest.raises(RowRefused, match=reason):
        read(row)


def test_a_question_may_be_messages_and_its_functions_tools() -> None:
    session, account = read({"question": [[SYSTEM, USER]], "function": [TOOL["function"]]})
    assert said(session) == [("system", "S"), ("user", "Q")]
    assert (session.tools, account["function"], account["question"]) == ([TOOL], "tools", "steps")


def test_an_exit_status_of_success_is_no_exception() -> None:
    session, _ = read({"messages": [USER, DONE], "exit_status": "submit"})
    assert (session.verdict.exception, session.metadata["exit_status"]) == ("", "submit")


def test_messages_of_harmony_and_of_claude_name_who_said_them() -> None:
    tool = {"role": "functions.ls", "content": "a.py"}
    session, _ = read({"messages": [USER, CALLS, tool]})
    assert session.steps[1]["observation"]["results"][0]["content"] == "a.py"
    exported = {"chat_messages": [{"sender": "human", "content": "Q"}, {"sender": "assistant", "content": "Done."}]}
    session, _ = read(exported)
    assert said(session) == [("user", "Q"), ("agent", "Done.")]


def observation(given: Any, output: Any) -> AgentSession:
    row = {"id": "o", "traceId": "t", "type": "GENERATION", "input": given, "output": output}
    [document] = documents(packed({"t.json": json.dumps(row).encode()})).values()
    return _session(document)


def _session(document: Document) -> AgentSession:
    assert document.reading, document.refused
    return document.reading.sessions[0]


def test_traces_have_the_messages_of_every_service() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    given = {"system": "S", "messages": [{"role": "user", "content": [image]}], "tools": [TOOL["function"]]}
    session = observation(given, parts(TEXT, {"type": "tool_use", "id": "c1", "name": "ls", "input": {}}))
    assert said(session)[0] == ("system", "S")
    assert session.steps[1]["message"][0]["source"]["path"] == "data:image/png;base64,aGk="
    assert (session.steps[2]["message"], session.steps[2]["tool_calls"][0]["function_name"]) == ("Done.", "ls")
    assert session.tools[0]["function"]["name"] == "ls"
    session = observation([{"type": "human", "content": "Q"}], {"type": "ai", "content": "Done."})
    assert said(session) == [("user", "Q"), ("agent", "Done.")]
    session = observation([USER], {**DONE, "additional_kwargs": {"tool_calls": [CALL]}})
    assert session.steps[1]["tool_calls"][0]["arguments"] == {"path": "."}
    items = [{"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]}]
    items += [{"type": "message", "content": [{"type": "output_text", "text": "Done."}]}]
    items += [{"type": "function_call", "call_id": "c1", "name": "ls", "arguments": "{}"}]
    session = observation({"input": "Q", "instructions": "S"}, {"output": items})
    assert said(session) == [("system", "S"), ("user", "Q"), ("agent", "Done.")]
    assert (session.steps[2]["reasoning_content"], len(session.steps[2]["tool_calls"])) == ("Hm.", 1)
    data = {"type": "generation", "input": [USER], "output": [CALLS], "model": "gpt", "usage": {"input_tokens": 3}}
    span = {"object": "trace.span", "id": "s", "trace_id": "t", "span_data": {**data, "model_config": {"top_p": 1}}}
    spans = [{"object": "trace", "id": "t", "workflow_name": "W", "group_id": None}, span]
    lines = b"\n".join(json.dumps(one).encode() for one in spans)
    session = _session(documents(packed({"t.jsonl": lines}))["t.jsonl"])
    assert session.steps[1]["tool_calls"][0]["arguments"] == {"path": "."}
    assert (session.metadata["trace.workflow_name"], session.metadata["model_config.top_p"]) == ("W", 1)
    assert (session.agent["model_name"], session.usage, session.origin.id) == ("gpt", SessionUsage(3), "t")
    contents = {"contents": [{"role": "user", "parts": [{"text": "Q"}]}]}
    session = observation(contents, {"candidates": [{"content": {"role": "model", "parts": [{"text": "Done."}]}}]})
    assert said(session) == [("user", "Q"), ("agent", "Done.")]


def test_rows_by_their_names_are_rows_also_of_lists_of_actions() -> None:
    """InterCode writes its results so."""
    turns = {"actions": ["ls", "submit"], "observations": ["a.py"], "rewards": [0.5, 1.0]}
    first = {"task_id": 7, "query": "List.", "turn_history": turns, "summary": {"max_reward": 1.0, "turns_taken": 2}}
    rows = rows_in({"0": first, "1": {**first, "turn_history": {"actions": ["ls"], "observations": ["b.py"]}}})
    assert [row["id"] for row in rows] == ["0", "1"]
    session, account = read_row(rows[0])
    assert said(session) == [("user", "List."), ("agent", ""), ("agent", "")]
    assert session.steps[1]["observation"]["results"][0]["content"] == "a.py"
    assert "observation" not in session.steps[2]
    assert (session.origin.task, session.verdict.rewards) == ("7", {"max_reward": 1.0})
    assert {"field": "turn_history[].rewards", "rows": 1, "becomes": "ignored"} in account.entries()
    chat = {"messages": [{"role": "user", "content": "Hi."}]}
    assert rows_in({"a": chat, "b": chat}) == [{"id": "a", **chat}, {"id": "b", **chat}]
    assert rows_in({"messages": chat, "more": {}}) == []
