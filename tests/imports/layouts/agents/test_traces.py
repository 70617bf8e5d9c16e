import json
from io import BytesIO
from typing import Any

import pytest

from curation.imports.layouts.agents import traces
from curation.imports.layouts.folder import DocumentFolder
from curation.imports.layouts.session import AgentSession, SessionOutcome, SessionUsage
from curation.imports.sources.rows import RowRefused
from tests.imports.layouts.golden import GOLDEN, becomes, documents, golden, packed, said, sessions


def trace(name: str) -> AgentSession:
    document = documents(golden("traces"))[name]
    assert document.reading, document.refused
    [session] = document.reading.sessions
    return session


@pytest.mark.parametrize("name", ["otlp.json", "exported.jsonl"])
def test_a_trace_is_a_session_and_its_other_agents_are_subagents(name: str) -> None:
    session = trace(name)
    assert said(session) == [("system", "Be brief."), ("user", "Fix the bug."), ("agent", ""), ("agent", "Fixed.")]
    step = session.steps[2]
    assert (step["reasoning_content"], step["tool_calls"][0]["arguments"]) == ("Look first.", {"command": "ls"})
    assert step["observation"]["results"][0]["content"] == "a.py"
    assert (session.agent["name"], session.agent["model_name"]) == ("coder", "gpt-5")
    assert session.tools[0]["function"]["name"] == "bash"
    assert session.usage == SessionUsage(20, 6)
    assert session.origin.id == "a" * 32
    assert session.metadata["server.address"] == "api.example"
    assert session.metadata["resource.service"] == {"name": "coder"}
    [inner] = session.subagents
    assert (inner.agent["name"], said(inner)[-1]) == ("searcher", ("agent", "Found."))


def test_spans_of_phoenix() -> None:
    session = trace("phoenix.jsonl")
    assert session.steps[1]["tool_calls"][0]["arguments"] == {"command": "ls"}
    assert session.usage == SessionUsage(7, 2)
    assert (session.verdict.outcome, session.verdict.exception) == (SessionOutcome.ERROR, "it broke")


def test_a_trace_of_langfuse_has_its_scores_as_rewards() -> None:
    session = trace("langfuse.json")
    assert said(session) == [("user", "Fix the bug."), ("agent", "Fixed.")]
    assert session.verdict.rewards == {"solved": 1.0}
    assert (session.agent["name"], session.agent["model_name"]) == ("coder", "gpt-5")
    assert session.usage == SessionUsage(5, 1)


def test_calls_have_their_time_tokens_and_price_and_the_trace_its_fields() -> None:
    asked, answer = {"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}
    call: dict[str, Any] = {
        "id": "o",
        "traceId": "t",
        "type": "GENERATION",
        "startTime": "2026-01-01T00:00:00Z",
        "model": "gpt",
    }
    call |= {"usage": {"promptTokens": 9, "completionTokens": 2}, "calculatedTotalCost": 0.5, "metadata": {"seed": 7}}
    more = {**call, "id": "p", "startTime": "2026-01-01T00:00:04Z", "input": [asked, answer, asked], "output": answer}
    scores = [{"name": "good", "value": 0.8}, {"name": "kind", "value": None, "stringValue": "chat"}]
    row = {
        "id": "t",
        "userId": "u",
        "scores": scores,
        "observations": [{**call, "input": [asked], "output": answer}, more],
    }
    reading = traces.read(row)
    (session,) = reading.sessions
    assert session.usage == SessionUsage(18, 4, None, 1.0, 4.0) and session.verdict.rewards == {"good": 0.8}
    assert [step.get("timestamp") for step in session.steps] == [None, call["startTime"], None, more["startTime"]]
    assert session.steps[1]["metrics"] == {"prompt_tokens": 9, "completion_tokens": 2, "cost_usd": 0.5}
    assert session.metadata == {"metadata.seed": 7, "trace.userId": "u", "scores.kind": "chat"}
    account = {entry["field"]: entry["becomes"] for entry in reading.account.entries()}
    assert account["userId"] == account["metadata.seed"] == "metadata"


def test_fields_of_a_span_that_have_no_place_are_in_the_account() -> None:
    messages = {"input_messages": [{"message": {"role": "user", "content": "Hi."}}]}
    messages["output_messages"] = [{"message": {"role": "assistant", "content": "Hello."}}]
    span = {"context": {"trace_id": "t"}, "attributes": {"llm": messages}, "annotations": [{"name": "good"}]}
    account = {entry["field"]: entry["becomes"] for entry in traces.read(span).account.entries()}
    assert account["annotations"] == "ignored"


def test_every_attribute_has_an_account() -> None:
    account = becomes(documents(golden("traces"))["otlp.json"])
    assert account["gen_ai.input"] == account["gen_ai.output"] == "steps"
    assert account["gen_ai.usage"] == "usage"
    assert account["server.address"] == "metadata"
    assert account["spans"] == "ignored: they call no model"


def test_calls_that_were_traced_without_content_are_refused() -> None:
    span = {"traceId": "a", "spanId": "b", "name": "chat", "attributes": {"gen_ai.request.model": "m"}}
    with pytest.raises(RowRefused, match="record their content"):
        traces.read(span)


def test_traces_become_valid_documents() -> None:
    assert len(sessions(golden("traces"))) == 3


def test_a_trace_is_whole_however_its_calls_lie_in_a_long_file() -> None:
    """Calls of two traces take turns, in a file that is longer than a row may be."""
    lines = [
        {
            "id": f"{trace}{number}",
            "traceId": trace,
            "type": "GENERATION",
            "startTime": f"2026-01-31T12:00:{number:02}Z",
            "input": [{"role": "user", "content": f"Task {number} of {trace}" + " more" * 40}],
            "output": {"role": "assistant", "content": "Done."},
        }
        for number in range(5)
        for trace in ("a", "b")
    ]
    content = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    folder = DocumentFolder(["calls.jsonl"], lambda name: BytesIO(content), longest=1000)
    found = [document.reading for _, document in folder.documents() if document.reading]
    assert [[session.origin.id for session in reading.sessions] for reading in found] == [["a"], ["b"]]
    assert [1 + len(reading.sessions[0].subagents) for reading in found] == [5, 5]


def test_a_trace_that_is_too_long_is_refused_alone() -> None:
    long, short = (
        {
            "id": f"{trace}{number}",
            "traceId": trace,
            "type": "GENERATION",
            "input": [{"role": "user", "content": f"Task {number} of {trace}"}],
            "output": {"role": "assistant", "content": "Done."},
        }
        for trace, number in (("long", 1), ("short", 2))
    )
    content = b"".join(json.dumps(line).encode() + b"\n" for line in [*[long] * 20, short])
    folder = DocumentFolder(["calls.jsonl"], lambda name: BytesIO(content), longest=300)
    refused, read = (document for _, document in folder.documents())
    assert refused.refused.startswith("the trace long is one document of more than")
    assert read.reading and read.reading.sessions[0].origin.id == "short"


def test_spans_in_a_json_array_are_one_trace_and_a_tool_without_a_definition_is_none() -> None:
    rows = [json.loads(line) for line in (GOLDEN / "traces" / "phoenix.jsonl").read_text().splitlines()]
    rows[1]["attributes"] |= {"llm.tools.0.tool.json_schema": "{}"}
    (document,) = documents(packed({"trace.json": json.dumps(rows).encode()})).values()
    assert document.reading and document.reading.sessions[0].verdict == trace("phoenix.jsonl").verdict


def test_spans_of_vercels_sdk_have_their_messages_in_attributes_of_its_own() -> None:
    call = {"toolCallId": "c", "toolName": "ls", "input": '{"path": "."}'}
    asked: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": "List."}]}]
    answered = [
        {"role": "assistant", "content": [{"type": "tool-call", **call, "input": {"path": "."}}]},
        {
            "role": "tool",
            "content": [{"type": "tool-result", "toolCallId": "c", "output": {"type": "text", "value": "a"}}],
        },
    ]
    answers = ({"ai.response.toolCalls": json.dumps([call])}, {"ai.response.text": "One."})
    spans = [
        {
            **{"traceId": "t", "spanId": str(number), "name": "ai.generateText.doGenerate", "startTime": str(number)},
            "attributes": {
                **{"gen_ai.request.model": "m", "ai.prompt.messages": json.dumps(messages), **answer},
                "ai.prompt.tools": [json.dumps({"type": "function", "name": "ls", "inputSchema": {}})],
            },
        }
        for number, (messages, answer) in enumerate(zip((asked, asked + answered), answers, strict=True))
    ]
    (session,) = traces.read_rows(spans).sessions
    assert said(session) == [("user", "List."), ("agent", ""), ("agent", "One.")]
    assert session.steps[1]["observation"]["results"][0]["content"] == "a"
    assert session.tools[0]["function"]["name"] == "ls"
