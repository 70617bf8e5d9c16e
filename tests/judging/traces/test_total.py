"""Reading spans: a document with any values is read, and unreadable spans are named alone."""

import json
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from curation.duels.imports.conversation import read_document
from curation.imports.sources.rows import RowRefused
from judging.traces.generation import Unreadable
from judging.traces.read import ends_call, is_call_record, is_model_call, is_trace, read_trace
from judging.traces.spans import service_of

GEN_AI = [
    *("operation.name", "operation.name.sub", "prompt.0.role", "prompt.0.content", "prompt", "input.messages"),
    *("completion.0.content", "completion.0.tool_calls.0.name", "output.messages", "system_instructions"),
]
LLM = [
    *("tools.0.tool.json_schema", "input_messages", "output_messages.0.message.content", "request.functions.0.name"),
    *("input_messages.0.message.role", "input_messages.0.message.contents.0.message_content.text"),
]
NAMES = ["gen_ai", "gen_ai.tool.definitions", "openinference.span.kind", "service.name", "event.name"]
NAMES += [*(f"gen_ai.{name}" for name in GEN_AI), *(f"llm.{name}" for name in LLM)]
EVENTS = (
    *("gen_ai.client.inference.operation.details", "gen_ai.user.message", "gen_ai.assistant.message", "gen_ai.choice"),
    *("gen_ai.content.prompt", "gen_ai.content.completion"),
)
FIELDS = ["role", "content", "parts", "type", "tool_calls", "tool_call", "function", "name", "arguments", "messages"]
FIELDS += ["response", "id", "choices", "message", "tools", "text", "", "0", "\u0661"]
LEAVES = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(max_size=5)
JSON = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=10,
)
# Values as documents have them: of OTLP, without its types, and as JSON text.
VALUES = (
    JSON
    | JSON.map(json.dumps)
    | JSON.map(lambda value: {"stringValue": json.dumps(value)})
    | st.fixed_dictionaries(
        {}, optional=dict.fromkeys(("arrayValue", "kvlistValue", "intValue", "stringValue", "bytesValue"), JSON)
    )
    | st.lists(JSON.map(lambda value: {"stringValue": json.dumps(value)}), max_size=3).map(
        lambda values: {"arrayValue": {"values": values}}
    )
)
NAMED = st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=8), VALUES, max_size=6)
ATTRIBUTES = NAMED | NAMED.map(lambda pairs: [{"key": key, "value": value} for key, value in pairs.items()]) | JSON
EVENT = st.fixed_dictionaries(
    {"name": st.sampled_from(EVENTS), "attributes": ATTRIBUTES}, optional={"eventName": JSON, "body": VALUES}
)
SPAN = st.fixed_dictionaries(
    {"attributes": ATTRIBUTES},
    optional={"traceId": JSON, "spanId": JSON, "name": JSON, "events": st.lists(EVENT) | JSON},
)


def spans(*found: object) -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(found)}]}]}


def call(said: str = "Done.", **attributes: Any) -> dict[str, Any]:
    plain = {"gen_ai.input.messages": '[{"role":"user","content":"Go."}]'}
    plain["gen_ai.output.messages"] = json.dumps([{"role": "assistant", "content": said}])
    return {"traceId": "0a", "attributes": {**plain, **attributes}}


@given(found=st.lists(SPAN | EVENT | JSON, max_size=3))
def test_any_document_is_read_or_refused_and_a_good_span_beside_it_stays(found: list[Any]) -> None:
    for one in found:
        for ask in (is_model_call, is_call_record, ends_call, service_of):
            try:
                ask(one)
            except Unreadable as unreadable:
                assert "it" in str(unreadable)
    logs = {"resourceLogs": [{"resource": found, "scopeLogs": [{"logRecords": found}]}]}
    langfuse = [{"type": "GENERATION", "traceId": "t", "input": one, "output": one} for one in found]
    for document in (logs, {"observations": langfuse}, *(one for one in found if isinstance(one, dict))):
        if is_trace(document):
            try:
                read_document(document)
            except RowRefused as refused:
                assert str(refused)

    read = read_document(spans(*found, call()))

    assert read.conversations[-1].messages[-1]["content"] == "Done."


@given(data=st.binary(max_size=60))
def test_any_value_of_protobuf_is_read(data: bytes) -> None:
    from google.protobuf.message import DecodeError

    try:
        value = MessageToDict(AnyValue.FromString(data))
    except DecodeError:
        return
    pairs = [{"key": name, "value": value} for name in NAMES]
    assert len(read_trace(spans({"traceId": "0a", "attributes": pairs}, call())).generations) >= 1


def nested(levels: int) -> object:
    value: object = "x"
    for _ in range(levels):
        value = {"arrayValue": {"values": [value]}}
    return {"attributes": [{"key": "gen_ai.a", "value": value}]}


@pytest.mark.parametrize(
    "bad",
    [
        nested(150),
        {"attributes": {"gen_ai." + "a." * 5000: 1}},
        {"attributes": [{"key": "gen_ai." + "a." * 5000, "value": {"stringValue": "x"}}]},
        {"attributes": 5},
        "no span",
        None,
    ],
    ids=["deep", "dots", "dots of a pair", "attributes", "text", "null"],
)
def test_what_cannot_be_read_is_named_beside_what_can(bad: object) -> None:
    found = read_trace(spans(bad, call()))
    assert (len(found.generations), len(found.unreadable)) == (1, 1)
    with pytest.raises(RowRefused, match="it is no object|its attributes are no list|levels of nesting"):
        read_document(spans(bad))
    assert read_document(spans(call(), bad)).unreadable == 1


@pytest.mark.parametrize(
    ("attributes", "calls"),
    [
        ({"gen_ai.operation.name": ["chat"]}, 1),
        ({"gen_ai.operation.name": "chat", "gen_ai.operation.name.sub": "x"}, 1),
        ({"gen_ai.operation.name": "execute_tool", "gen_ai.operation.name.sub": "x"}, 0),
        ({f"gen_ai.prompt.{'9' * 5000}.role": "user"}, 1),
        ({"gen_ai.input.messages.count": 1}, 1),
        ({"gen_ai.tool.definitions": '[{"name": "ls", "parameters": ' + "[" * 500 + "]" * 500 + "}]"}, 1),
    ],
)
def test_odd_names_and_values_hide_no_call(attributes: dict[str, Any], calls: int) -> None:
    assert len(read_trace(spans(call(**attributes))).generations) == calls


def test_characters_and_numbers_that_no_database_stores_cost_no_call() -> None:
    tools = {"gen_ai.tool.definitions": '[{"name": "ls", "parameters": {"maximum": 1e999}}]'}
    read = read_document(spans(call("\ud800"), call("a\0b"), call(**tools), call()))
    assert (len(read.conversations), read.unreadable) == (4, 0)


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
