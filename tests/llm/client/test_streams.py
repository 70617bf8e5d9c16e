"""Answers that arrive as a stream, from a real server: put together, cut, broken, stalled, endless."""

import asyncio
import gzip
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from curation.llm.client import streams
from curation.llm.client.completion import Completion, CompletionRequest, EndpointTarget
from curation.llm.client.errors import CallError, Misconfigured, RateLimited, Refused, Transient
from curation.llm.client.litellm_client import LiteLlmClient
from tests.serving import serving as running

MESSAGES = [{"role": "user", "content": "hello"}]
TOOL = {"type": "function", "function": {"name": "ls", "parameters": {"type": "object", "properties": {}}}}
USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 2}}
Write = Callable[[bytes], object]
Body = bytes | Callable[[Write, threading.Event], None]


def event(**chunk: Any) -> bytes:
    return (
        b"data: " + json.dumps({"id": "x", "object": "chat.completion.chunk", "model": "m", **chunk}).encode() + b"\n\n"
    )


def delta(finish: str | None = None, **said: Any) -> bytes:
    return event(choices=[{"index": 0, "delta": said, "finish_reason": finish}])


def called(**call: Any) -> bytes:
    return delta(tool_calls=[call])


DONE = b"data: [DONE]\n\n"
END = delta("stop") + event(choices=[], usage=USAGE) + DONE


@contextmanager
def serving(
    body: Body, *, kind: str = "text/event-stream", headers: dict[str, str] | None = None, moved: str = ""
) -> Iterator["Served"]:
    """A server that answers with this; `moved` is where it sends requests of other paths than /again."""
    ended, served = threading.Event(), Served()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            served.requests.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            is_moved = bool(moved) and self.path != "/again"
            self.send_response(307 if is_moved else 200)
            if is_moved:
                self.send_header("location", moved)
            for name, value in {"content-type": kind, **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                if callable(body):
                    body(self.wfile.write, ended)
                else:
                    self.wfile.write(body)
            except OSError:
                served.left.set()

        def log_message(self, *given: object) -> None:
            """Nothing is printed."""

    with running(Handler) as server:
        served.port = server.server_port
        yield served
        ended.set()


class Served:
    def __init__(self) -> None:
        self.port = 0
        self.requests: list[dict[str, Any]] = []
        self.left = threading.Event()

    def ask(
        self, *, timeout: float = 10.0, tools: Sequence[Any] = (), model: str = "openai/m", **params: Any
    ) -> Completion:
        given = {"timeout": timeout, "stream": True, **params}
        base = f"http://127.0.0.1:{self.port}/v1"
        target = EndpointTarget(1, "m", model, base, "", given, 1, None, None, Decimal(1), Decimal(1), "")
        return asyncio.run(LiteLlmClient().complete(target, CompletionRequest(MESSAGES, tools=tools)))


def ask(body: Body, **given: Any) -> Completion:
    with serving(body) as served:
        return served.ask(**given)


def error_of(body: Body, **given: Any) -> CallError:
    with pytest.raises(CallError) as caught:
        ask(body, **given)
    assert "litellm" not in str(caught.value).lower()
    return caught.value


def test_the_chunks_become_one_answer_with_its_usage_and_the_time_of_its_first_token() -> None:
    body = b": ping\n\n" + delta(role="assistant", content="") + delta(reasoning_content="hm") + delta(content="Hel")
    with serving(body + delta(content="lo") + END) as served:
        said = served.ask(max_tokens=9)
    (request,) = served.requests
    assert (request["stream"], request["stream_options"], request["max_tokens"]) == (True, {"include_usage": True}, 9)
    assert (said.text, said.thinking, said.finish_reason) == ("Hello", "hm", "stop")
    assert (said.tokens_in, said.tokens_out, said.tokens_cached, said.cost) == (7, 3, 2, Decimal("0.00001"))
    assert said.first_token_ms is not None
    assert 0 < said.first_token_ms <= said.latency_ms


@pytest.mark.parametrize(
    "parts",
    [
        [
            called(index=0, id="a", function={"name": "ls", "arguments": '{"p": '}),
            called(index=0, function={"arguments": "1}"}),
        ],
        # other shapes that servers send: no index; an index and an id in each part; the same index for all calls
        [called(id="a", function={"name": "ls", "arguments": '{"p": '}), called(function={"arguments": "1}"})],
        [called(index=0, id="a", function={"name": "ls", "arguments": p}) for p in ('{"p"', ": 1}")],
    ],
)
@pytest.mark.parametrize("index", [1, 0, None])
def test_tool_calls_are_put_together(parts: list[bytes], index: int | None) -> None:
    second = called(index=index, id="b", function={"name": "cat", "arguments": "{}"})
    said = ask(b"".join(parts) + second + delta("tool_calls") + DONE, tools=[TOOL])
    assert said.tool_calls == [
        {"id": "a", "type": "function", "function": {"name": "ls", "arguments": '{"p": 1}'}},
        {"id": "b", "type": "function", "function": {"name": "cat", "arguments": "{}"}},
    ]
    assert said.finish_reason == "tool_calls"
    assert (said.tokens_in, said.tokens_out, said.cost) == (None, None, None)  # unknown, not estimated


def test_no_text_is_lost_wherever_the_bytes_are_cut() -> None:
    """`[DONE]` in a text, characters cut in the middle, escaped halves of a character, and all kinds of line ends."""
    text = "task [DONE] ✓ 😀\r\n</s>"
    halves = delta(content="1") + delta(content="2")
    halves = halves.replace(b'"1"', rb'"\ud83d"').replace(b'"2"', rb'"\ude00"')
    whole = (delta(content=text).replace(b"\n", b"\r\n") + halves + END).replace(rb"\u2713", "✓".encode())

    def trickle(write: Write, ended: threading.Event) -> None:
        for number in range(0, len(whole), 7):
            write(whole[number : number + 7])

    said = ask(trickle)
    assert said.text == f"{text}😀"


def test_a_server_that_streams_without_being_asked_is_read() -> None:
    with serving(delta(content="hi") + END) as served:
        assert served.ask(stream=False).text == "hi"
        assert "stream" not in served.requests[0]
    with serving(delta(content="hi") + END, kind="application/json") as served:
        assert served.ask().text == "hi"


def test_a_server_that_does_not_stream_is_read() -> None:
    answer = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "length"}]}
    with serving(json.dumps(answer).encode(), kind="application/json") as served:
        said = served.ask()
    assert (said.text, said.finish_reason, said.first_token_ms) == ("hi", "length", None)


def test_a_parameter_of_the_endpoint_wins() -> None:
    """Old servers refuse `stream_options`."""
    with serving(delta(content="hi") + END) as served:
        served.ask(extra_body={"stream_options": None, "top_k": 1})
    assert ("stream_options" in served.requests[0], served.requests[0]["top_k"]) == (False, 1)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (delta(content="Hel"), "the stream broke off"),
        (delta(content="Hel") + b'data: {"choices": [{"de', "a chunk that is not JSON"),
        (delta(content="Hel") + b"data: oops\n\n" + END, "a chunk that is not JSON: oops"),
        (b"data: " + b"[" * 100_000 + b"\n\n" + END, "a chunk that is not JSON"),
        (delta(content="Hel") + b"data: 7\n\n" + END, "not of a chat completion: 7"),
        (delta(content=["Hel"]) + END, "a part that is no object"),
        (delta(content="Hel") + DONE, "without a finish reason"),
        (delta("error", content="Hel"), "it ended with 'error'"),
        (
            delta(content="Hel") + event(error={"message": "out of memory", "code": 400}),
            "broke off with an error: out of",
        ),
        (b"event: error\ndata: overloaded\n\n", "overloaded"),
        (event(error={"message": "try later", "code": 503}), "try later"),
        (b'event: message_start\ndata: {"type": "message_start"}\n\n', "the stream broke off"),
        (b"", "the stream broke off"),
    ],
)
def test_a_broken_stream_is_no_answer_and_may_be_tried_again(body: bytes, words: str) -> None:
    error = error_of(body)
    assert isinstance(error, Transient)
    assert words in str(error)


def test_an_error_in_place_of_an_answer_is_the_endpoints_refusal() -> None:
    refused = error_of(event(error={"message": "the context is too long", "code": 400}))
    assert (type(refused), str(refused)) == (Refused, "BadRequestError: the context is too long")
    assert isinstance(error_of(event(error={"message": "slow down", "code": "rate_limit_exceeded"})), RateLimited)


def test_a_connection_that_breaks_after_the_finish_reason_has_the_whole_answer() -> None:
    with serving(delta("stop", content="hi"), headers={"content-length": "100000"}) as served:
        said = served.ask()
    assert (said.text, said.finish_reason, said.tokens_in) == ("hi", "stop", None)


def endless(piece: bytes) -> Callable[[Write, threading.Event], None]:
    def write_on(write: Write, ended: threading.Event) -> None:
        while not ended.is_set():
            write(piece)

    return write_on


@pytest.mark.parametrize(
    ("piece", "kind"),
    [
        (delta(content="x" * 1000), "text/event-stream"),
        (b"data: " + b"x" * 1000, "text/event-stream"),
        (called(function={"name": "ls"}) * 20, "text/event-stream"),
        (b": ping\n\n" * 100, "text/event-stream"),
        (b" " * 1000, "application/json"),
    ],
)
def test_an_endless_answer_is_left(monkeypatch: pytest.MonkeyPatch, piece: bytes, kind: str) -> None:
    monkeypatch.setattr(streams, "MAX_BYTES", 50_000)
    monkeypatch.setattr(streams, "MAX_STREAM_BYTES", 400_000)
    with serving(endless(piece), kind=kind) as served, pytest.raises(Transient, match="longer than 32 MiB"):
        served.ask()


def test_a_compressed_bomb_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MAX_BYTES", 50_000)
    bomb = gzip.compress(b" " * 10_000_000)
    with (
        serving(bomb, kind="application/json", headers={"content-encoding": "gzip"}) as served,
        pytest.raises(Transient, match="longer than 32 MiB"),
    ):
        served.ask()


def test_a_redirect_on_the_same_server_is_followed() -> None:
    with serving(delta(content="hi") + END, moved="/again") as served:
        assert served.ask().text == "hi"
    assert len(served.requests) == 2


@pytest.mark.parametrize("location", ["http://[", "http://\x7f/", "//", ""])
def test_a_redirect_to_nowhere_is_an_error(location: str) -> None:
    with serving(b"", moved=location or " ") as served, pytest.raises(CallError):
        served.ask()


def test_tokens_that_cannot_be_are_unknown() -> None:
    for number in (10**30, -5):
        said = ask(
            delta("stop", content="hi") + event(choices=[], usage={"prompt_tokens": number, "completion_tokens": 1})
        )
        assert (said.tokens_in, said.cost) == (None, None)


def test_an_endpoint_without_tools_refuses_a_prompt_with_tools() -> None:
    with serving(delta(content="hi") + END) as served:
        with pytest.raises(Misconfigured, match="its prompt has tools and this endpoint takes none"):
            served.ask(tools=[TOOL], takes_tools=False)
        assert not served.requests
        served.ask(takes_tools=False)
        served.ask(tools=[TOOL], takes_tools=True)
    assert [request.get("tools") for request in served.requests] == [None, [TOOL]]
