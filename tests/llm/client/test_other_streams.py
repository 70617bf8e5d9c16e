"""Streams of other forms than OpenAI's, from a real server: whole, cut, broken, refused, endless."""

import json
import threading
from decimal import Decimal
from typing import Any

import pytest
from pytest_django import Settings

from curation.llm.client import streams
from curation.llm.client.errors import CallError, Misconfigured, RateLimited, Refused, TimedOut, Transient
from tests.llm.client.test_streams import END as OPENAIS_END
from tests.llm.client.test_streams import TOOL, Body, Write, delta, event, serving

CLAUDE = "anthropic/claude-test"


def said(name: str, **data: Any) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n".encode()


def block(index: int, kind: dict[str, Any], *parts: dict[str, Any]) -> bytes:
    deltas = b"".join(said("content_block_delta", index=index, delta=part) for part in parts)
    start = said("content_block_start", index=index, content_block=kind)
    return start + deltas + said("content_block_stop", index=index)


def text(index: int, *parts: str) -> bytes:
    return block(index, {"type": "text", "text": ""}, *({"type": "text_delta", "text": part} for part in parts))


def start(**usage: int) -> bytes:
    head = {"id": "m", "type": "message", "role": "assistant", "model": "claude-test", "content": []}
    return said("message_start", message={**head, "stop_reason": None, "stop_sequence": None, "usage": usage})


def end(reason: str | None = "end_turn", **usage: int) -> bytes:
    stop = said("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage=usage)
    return stop + said("message_stop")


START = start(input_tokens=25, cache_read_input_tokens=5, output_tokens=1)
END = end(output_tokens=15)
# A model of each form, the beginning of its stream, and a text and the end after it.
FORMS = {
    "OpenAI": ("openai/m", b"", delta(content="hi"), OPENAIS_END),
    "Anthropic": (CLAUDE, START, text(0, "hi"), END),
}
OVERLOADED = said("error", error={"type": "overloaded_error", "message": "Overloaded"})


def error_of(body: Body, *, model: str = CLAUDE, kind: str = "text/event-stream", **given: Any) -> CallError:
    with serving(body, kind=kind) as served, pytest.raises(CallError) as caught:
        served.ask(model=model, **given)
    assert "litellm" not in str(caught.value).lower()
    return caught.value


def test_anthropics_events_become_one_answer_with_thinking_tools_usage_and_the_time_of_its_first_token() -> None:
    thinking = block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "hm"},
        {"type": "signature_delta", "signature": "s"},
    )
    call = block(
        2,
        {"type": "tool_use", "id": "a", "name": "ls", "input": {}},
        *({"type": "input_json_delta", "partial_json": part} for part in ('{"p": ', "1}")),
    )
    body = START + said("ping") + thinking + text(1, "Hel", "lo ✓ [DONE]") + call + end("tool_use", output_tokens=15)
    whole = body.replace(rb"\u2713", "✓".encode())

    def trickle(write: Write, ended: threading.Event) -> None:
        for place in range(0, len(whole), 7):
            write(whole[place : place + 7])

    with serving(trickle) as served:
        answer = served.ask(model=CLAUDE, tools=[TOOL], max_tokens=9)
    (request,) = served.requests
    assert (request["stream"], request["max_tokens"], "stream_options" in request) == (True, 9, False)
    assert (answer.text.splitlines()[0], answer.thinking) == ("Hello ✓ [DONE]", "hm")
    assert answer.finish_reason == "tool_calls"
    assert answer.tool_calls == [{"id": "a", "type": "function", "function": {"name": "ls", "arguments": '{"p": 1}'}}]
    assert (answer.tokens_in, answer.tokens_out, answer.tokens_cached) == (30, 15, 5)
    assert answer.cost == Decimal("0.000045")
    assert answer.first_token_ms is not None and 0 < answer.first_token_ms <= answer.latency_ms


def test_tokens_that_were_not_reported_are_unknown() -> None:
    with serving(start() + text(0, "hi") + end("max_tokens")) as served:
        answer = served.ask(model=CLAUDE)
    assert (answer.text, answer.finish_reason) == ("hi", "length")
    assert (answer.tokens_in, answer.tokens_out, answer.cost) == (None, None, None)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (START + text(0, "Hel"), "the stream broke off"),
        (START, "the stream broke off"),
        (b"", "the stream broke off"),
        (START + text(0, "Hel") + b'event: message_delta\ndata: {"type": "mess', "a chunk that is not JSON"),
        (
            START + text(0, "Hel") + b"event: content_block_delta\ndata: oops\n\n" + END,
            "a chunk that is not JSON: oops",
        ),
        (START + text(0, "Hel") + OVERLOADED + END, "the stream broke off with an error: Overloaded"),
        (START + text(0, "Hel") + b"event: error\ndata: no memory\n\n", "broke off with an error: no memory"),
        (START + OVERLOADED, "Overloaded"),
        (START + text(0, "Hel") + end(None), "the stream ended without a reason"),
    ],
)
def test_a_broken_stream_is_no_answer_and_may_be_tried_again(body: bytes, words: str) -> None:
    error = error_of(body)
    assert isinstance(error, Transient)
    assert words in str(error)


def test_an_error_in_place_of_an_answer_is_the_endpoints_refusal() -> None:
    refused = error_of(START + said("error", error={"type": "invalid_request_error", "message": "prompt is too long"}))
    assert isinstance(refused, Refused) and refused.status == 400
    assert "prompt is too long" in str(refused)
    limited = said("error", error={"type": "rate_limit_error", "message": "slow down"})
    assert isinstance(error_of(limited), RateLimited)


def test_a_connection_that_breaks_is_no_answer() -> None:
    with serving(START + text(0, "Hel"), headers={"content-length": "100000"}) as served, pytest.raises(Transient):
        served.ask(model=CLAUDE)


@pytest.mark.parametrize("form", FORMS)
def test_a_server_that_leaves_the_connection_open_is_not_awaited(form: str) -> None:
    model, start, words, end = FORMS[form]

    def stays(write: Write, ended: threading.Event) -> None:
        write(start + words + end)
        ended.wait()

    with serving(stays) as served:
        answer = served.ask(model=model)
    assert answer.text == "hi" and answer.latency_ms < 3000


@pytest.mark.parametrize("has_begun", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_a_stall_ends_with_the_calls_deadline(form: str, has_begun: bool) -> None:
    model, start, words, _ = FORMS[form]

    def stalls(write: Write, ended: threading.Event) -> None:
        write(start + words if has_begun else b"")
        ended.wait()

    error = error_of(stalls, model=model, timeout=0.3)
    assert isinstance(error, TimedOut)
    assert str(error) == ("no end of the stream within 0.3 s" if has_begun else "no answer within 0.3 s")


@pytest.mark.parametrize("form", FORMS)
def test_a_stream_that_drips_without_end_ends_with_the_calls_deadline(form: str) -> None:
    model, start, words, _ = FORMS[form]

    def drips(write: Write, ended: threading.Event) -> None:
        write(start)
        while not ended.wait(0.05):
            write(words)

    with serving(drips) as served:
        with pytest.raises(TimedOut, match="no end of the stream"):
            served.ask(model=model, timeout=0.3)
        assert served.left.wait(30)  # the connection was closed


@pytest.mark.parametrize(("model", "form"), [("openai/m", "OpenAI"), ("azure/m", "OpenAI"), (CLAUDE, "Anthropic")])
def test_a_redirect_to_another_server_gets_neither_the_key_nor_the_prompt(model: str, form: str) -> None:
    _, start, words, end = FORMS[form]
    with serving(start + words + end) as other:
        elsewhere = f"http://127.0.0.1:{other.port}"
        with serving(b"", moved=f"{elsewhere}/again?key=1") as served:
            with pytest.raises(Refused, match=f"the endpoint redirects to {elsewhere}, and requests go to no other"):
                served.ask(model=model)
            assert len(served.requests) == 1
        assert other.requests == []


def test_an_endless_answer_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(write: Write, ended: threading.Event) -> None:
        write(START)
        while not ended.is_set():
            write(text(0, "x" * 1000))

    monkeypatch.setattr(streams, "MAX_STREAM_BYTES", 400_000)
    assert "longer than 32 MiB" in str(error_of(endless))
    monkeypatch.setattr("curation.llm.client.litellm_client.MOST_CHUNKS", 20)
    assert "more than 20 chunks" in str(error_of(endless))


def test_a_text_that_repeats_itself_is_whole() -> None:
    with serving(START + text(0, *["----\n"] * 150) + END) as served:
        assert served.ask(model=CLAUDE).text.count("----") == 150


def test_an_answer_that_is_not_streamed_is_a_failed_call() -> None:
    assert isinstance(error_of(b'{"oops": 1}', kind="application/json"), Transient)


def test_gemini_streams_too() -> None:
    def part(words: str, **more: Any) -> bytes:
        content = {"role": "model", "parts": [{"text": words}]}
        return b"data: " + json.dumps({"candidates": [{"index": 0, "content": content, **more}]}).encode() + b"\n\n"

    usage = {"promptTokenCount": 7, "candidatesTokenCount": 3, "totalTokenCount": 10}
    last = json.loads(part("lo", finishReason="STOP")[6:])
    whole = part("Hel") + b"data: " + json.dumps({**last, "usageMetadata": usage}).encode() + b"\n\n"
    with serving(whole) as served:
        answer = served.ask(model="gemini/gemini-test")
    assert (answer.text, answer.finish_reason) == ("Hello", "stop")
    assert (answer.tokens_in, answer.tokens_out) == (7, 3) and answer.first_token_ms is not None
    assert "the stream broke off" in str(error_of(part("Hel"), model="gemini/gemini-test"))


def test_ollama_streams_too() -> None:
    def line(**more: Any) -> bytes:
        return json.dumps({"model": "m", "created_at": "2026-01-01T00:00:00Z", "done": False, **more}).encode() + b"\n"

    def told(words: str) -> bytes:
        return line(message={"role": "assistant", "content": words})

    last = line(message={"role": "assistant", "content": ""}, done=True, done_reason="stop")
    last = json.dumps({**json.loads(last), "prompt_eval_count": 7, "eval_count": 3}).encode() + b"\n"
    given = {"model": "ollama_chat/m", "kind": "application/x-ndjson"}
    with serving(told("Hel") + told("lo") + last, kind="application/x-ndjson") as served:
        answer = served.ask(model="ollama_chat/m")
    assert (answer.text, answer.finish_reason, answer.tokens_in, answer.tokens_out) == ("Hello", "stop", 7, 3)
    assert "the stream broke off" in str(error_of(told("Hel"), **given))
    broken = error_of(told("Hel") + b'{"error": "out of memory"}\n', **given)
    assert isinstance(broken, Transient) and "out of memory" in str(broken)


def test_azure_streams_in_openais_form() -> None:
    done = delta("stop", content="hi") + event(choices=[], usage={"prompt_tokens": 7, "completion_tokens": 1})
    with serving(done + b"data: [DONE]\n\n") as served:
        answer = served.ask(model="azure/m", api_version="2024-10-21")
    assert (answer.text, answer.tokens_in, served.requests[0]["stream"]) == ("hi", 7, True)


def test_a_private_address_is_not_called(settings: Settings) -> None:
    settings.ALLOW_PRIVATE_MODEL_HOSTS = False
    with serving(START + text(0, "hi") + END) as served:
        with pytest.raises(Misconfigured):
            served.ask(model=CLAUDE)
        assert served.requests == []
