"""The export of VS Code's chat, and the files in which it keeps sessions: a document, or a journal of its changes."""

from typing import Any

import orjson
import pytest

from curation.imports.layouts.folder import Document
from curation.imports.layouts.session import SessionUsage
from tests.imports.layouts.golden import becomes, documents, packed, said

TREE = {
    "node": {"type": 1, "children": [{"type": 2, "text": "3"}, {"type": 2, "text": "passed", "lineBreakBefore": True}]}
}
METADATA = {
    "renderedGlobalContext": [{"type": 1, "text": "Linux"}, {"type": 3, "cacheType": "ephemeral"}],
    "renderedUserMessage": [{"type": 1, "text": "<userRequest>Test it.</userRequest>"}],
    "promptTokens": 100,
    "outputTokens": 9,
    "toolCallRounds": [
        {
            "response": "I look.",
            "thinking": {"text": "Hm."},
            "toolCalls": [{"id": "t", "name": "run", "arguments": '{"command": "pytest"}'}],
        },
        {"response": "All pass.", "toolCalls": []},
    ],
    "toolCallResults": {"t": {"content": [{"value": TREE}]}},
}
SHOWN = [
    {"kind": "progressTaskSerialized", "content": {"value": "Optimizing tool selection..."}},
    {"kind": "thinking", "value": "Hm."},
    {"value": "I look."},
    {
        "kind": "toolInvocationSerialized",
        "toolId": "run",
        "toolCallId": "t",
        "toolSpecificData": {"kind": "terminal", "commandLine": {"original": "pytest"}},
        "resultDetails": {"input": "pytest", "output": [{"type": "embed", "value": "3\npassed"}]},
    },
    {"value": "All of "},
    {"kind": "inlineReference", "inlineReference": {"path": "/src/test_a.py"}},
    {"kind": "markdownContent", "content": {"value": " pass."}},
    {"kind": "textEditGroup", "uri": {"path": "/a.py"}, "edits": [[{"text": "x"}]]},
]
REQUEST = {
    "requestId": "r",
    "message": {"text": "Test it.", "parts": []},
    "timestamp": 1_767_225_600_000,
    "modelId": "copilot/gpt-5",
    "response": SHOWN,
    "vote": 1,
}
RESULT = {"timings": {"totalElapsed": 4000}, "metadata": METADATA}
SESSION = {"version": 3, "creationDate": 1, "sessionId": "s-1"}


def read(document: Any, name: str = "chat.json") -> Document:
    content = b"\n".join(map(orjson.dumps, document)) if isinstance(document, list) else orjson.dumps(document)
    return documents(packed({name: content}))[name]


JOURNAL = [
    {"kind": 0, "v": {**SESSION, "requests": []}},
    {"kind": 1, "k": ["customTitle"], "v": "Tests"},
    {"kind": 2, "k": ["requests"], "v": [{**REQUEST, "response": []}]},
    {"kind": 2, "k": ["requests", 0, "response"], "v": [{"value": "part of it"}]},
    {"kind": 2, "k": ["requests", 0, "response"], "v": SHOWN, "i": 0},
    {"kind": 1, "k": ["requests", 0, "result"], "v": RESULT},
    {"kind": 2, "k": ["requests"], "v": [{"message": {"text": "Gone."}, "shouldBeRemovedOnSend": True}]},
    {"kind": 3, "k": ["requests", 0, "vote"]},
]


@pytest.mark.parametrize("document", [{**SESSION, "requests": [{**REQUEST, "result": RESULT}]}, JOURNAL])
def test_the_rounds_of_a_request_are_what_the_model_saw_and_said(document: Any) -> None:
    found = read(document, "s.jsonl" if document is JOURNAL else "s.json")
    assert found.reading, found.refused
    (session,) = found.reading.sessions
    assert said(session) == [
        *(("user", "Linux"), ("user", "<userRequest>Test it.</userRequest>")),
        *(("agent", "I look."), ("agent", "All pass.")),
    ]
    step = session.steps[2]
    assert (step["reasoning_content"], step["model_name"]) == ("Hm.", "gpt-5")
    assert step["tool_calls"][0]["arguments"] == {"command": "pytest"}
    assert step["observation"]["results"] == [{"source_call_id": "t", "content": "3\npassed"}]
    assert session.usage == SessionUsage(100, 9, None, None, 4.0)
    assert session.origin.id == "s-1"
    account = becomes(found)
    assert account["requests[].response.value"] == "ignored: toolCallRounds has it"
    assert account["requests[].response.textEditGroup"] == "ignored: the program shows it"
    assert ("customTitle" in account) == (document is JOURNAL) == ("requests[].vote" not in account)


def test_without_rounds_the_parts_that_are_shown_are_read() -> None:
    failed = {"errorDetails": {"message": "Rate limited"}}
    found = read({"responderUsername": "GitHub Copilot", "requests": [{**REQUEST, "result": failed}]})
    assert found.reading, found.refused
    (session,) = found.reading.sessions
    assert said(session) == [("user", "Test it."), ("agent", "I look."), ("agent", "All of `test_a.py` pass.")]
    step = session.steps[1]
    assert (step["reasoning_content"], step["tool_calls"][0]["arguments"]) == ("Hm.", {"command": "pytest"})
    assert step["observation"]["results"] == [{"source_call_id": "t", "content": "3\npassed"}]
    assert session.verdict.exception == "Rate limited"
    assert becomes(found)["requests[].response.value"] == "steps"


def test_a_part_with_a_text_of_an_unknown_kind_refuses_the_session() -> None:
    odd = {**REQUEST, "response": [{"kind": "markdownSecret", "content": {"value": "x"}}]}
    assert "the kind 'markdownSecret', which is not known" in read({**SESSION, "requests": [odd]}).refused


def test_a_chat_in_which_nothing_was_asked_is_a_run_without_a_trajectory() -> None:
    found = read([{"kind": 0, "v": {**SESSION, "requests": []}}], "s.jsonl")
    assert found.reading
    assert (found.reading.sessions, found.reading.without_trajectory) == ([], 1)
