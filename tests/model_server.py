"""An OpenAI-compatible model server that misbehaves on demand: a separate process, asyncio, no dependencies.

`python -m tests.model_server` prints its port and serves until its standard input closes. Tests use `ModelServer`:

    server.behave("judge-a", rate_limit=0.1, retry_after=1)     # shares of the calls; "*" is every model
    server.counts("judge-a").answered

Models named king… and challenger… answer a turn, operator… plays the steps of a `SCRIPT[one;;two]` in the conversation
(then `exit`), all others return a verdict. `text` sets the reply, `replies` the reply to a given last message.
"""

import asyncio
import hashlib
import http.client
import json
import random
import re
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DIMENSIONS = ("correctness", "grounding", "progress", "protocol", "efficiency")
SCRIPT = re.compile(r"SCRIPT\[(.*?)\]", re.DOTALL)
SEED = 7
REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 408: "Request Timeout"}


@dataclass
class Behaviour:
    """How a model answers. Shares (0 to 1) are drawn per call, in this order: the first that hits decides.

    A request with the text `breaks` always fails, one with the text `stalls` is never answered.
    """

    latency: float = 0.0
    rate_limit: float = 0.0
    retry_after: float | None = None
    error: float = 0.0
    status: int = 500
    breaks: str = ""
    stalls: str = ""
    broken: float = 0.0
    hang: float = 0.0
    drop: float = 0.0
    cut: float = 0.0
    text: str | None = None
    replies: dict[str, str] = field(default_factory=dict)
    thinking: str = ""
    usage: bool = True
    only_streams: bool = False  # others are answered with the status of `refusal`
    refusal: int = 400
    calls: bool = False  # answers with a call of the request's first tool
    arguments: str = "{}"  # of that call
    refuses: list[str] = field(default_factory=list)  # fields of a request that are answered with `refuses_with`
    refuses_with: int = 400
    detail: str = ""
    body: dict[str, Any] | None = None  # the whole answer, with `status`; its `_headers` are sent as headers
    events: list[dict[str, Any]] = field(default_factory=list)  # the chunks of an answer that is streamed


@dataclass
class Counts:
    """A model's requests by their result. `answered` includes answers that were cut."""

    answered: int = 0
    cut: int = 0
    rate_limited: int = 0
    failed: int = 0
    broken: int = 0
    hung: int = 0
    dropped: int = 0
    most_at_once: int = 0
    times: list[float] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    max_tokens: list[int | None] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    answers: dict[str, int] = field(default_factory=dict)

    @property
    def asked(self) -> int:
        return len(self.times)


class _Server:
    def __init__(self) -> None:
        self.behaviours: dict[str, Behaviour] = {}
        self.counts: dict[str, Counts] = {}
        self.at_once: dict[str, int] = {}
        self.random = random.Random(SEED)
        self.port = 0
        self.connections: set[asyncio.Transport] = set()

    async def listen(self) -> None:
        loop = asyncio.get_running_loop()
        self.listening = await loop.create_server(lambda: _Connection(self), "127.0.0.1", self.port, backlog=1024)
        self.port = self.listening.sockets[0].getsockname()[1]

    async def refuse(self, seconds: float) -> None:
        """Close all connections and refuse new ones for some seconds."""
        self.listening.close()
        for transport in list(self.connections):
            transport.abort()
        await asyncio.sleep(seconds)
        await self.listen()

    async def answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes, str]:
        """Return status, body and extra header lines; status 0 closes the connection without a response."""
        if path == "/control":
            given = json.loads(body)
            model = given.pop("model")
            self.behaviours[model] = Behaviour(**given)
            return 200, b"{}", ""
        if path == "/refuse":
            seconds = json.loads(body)["seconds"]
            loop = asyncio.get_running_loop()
            loop.call_later(0.05, lambda: setattr(self, "refusing", loop.create_task(self.refuse(seconds))))
            return 200, b"{}", ""
        if path == "/counts":
            return 200, json.dumps({name: asdict(counts) for name, counts in self.counts.items()}).encode(), ""
        if path in ("/reset", "/forget"):
            self.counts.clear()
            if path == "/forget":
                self.behaviours.clear()
                self.random.seed(SEED)
            return 200, b"{}", ""
        if path.endswith("/models"):
            return 200, json.dumps({"object": "list", "data": [{"id": "king"}, {"id": "judge-a"}]}).encode(), ""
        if method == "POST" and path.endswith("/embeddings"):
            return self._embed(json.loads(body))
        if method != "POST" or not path.endswith(("/chat/completions", "/messages")):
            return 404, _error("no such path"), ""
        return await self._complete(json.loads(body), headers.get("authorization", ""))

    def _embed(self, asked: dict[str, Any]) -> tuple[int, bytes, str]:
        """A vector for each text: texts with the same entry in the model's `replies`, or without one the same text,
        have the same."""
        how = self.behaviours.get(asked["model"]) or Behaviour()
        counts = self.counts.setdefault(asked["model"], Counts())
        counts.times.append(time.time())
        counts.answered += 1
        data = []
        for index, text in enumerate(asked["input"]):
            drawn = random.Random(how.replies.get(text, text))
            data.append({"object": "embedding", "index": index, "embedding": [drawn.gauss(0, 1) for _ in range(64)]})
        tokens = sum(map(len, asked["input"])) // 4
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        answer = {"object": "list", "data": data, "model": asked["model"], "usage": usage}
        return 200, json.dumps(answer).encode(), ""

    async def _complete(self, asked: dict[str, Any], key: str) -> tuple[int, bytes, str]:
        model = asked["model"]
        counts = self.counts.setdefault(model, Counts())
        counts.times.append(time.time())
        counts.max_tokens.append(asked.get("max_tokens"))
        counts.keys.append(key)
        self.at_once[model] = self.at_once.get(model, 0) + 1
        counts.most_at_once = max(counts.most_at_once, self.at_once[model])
        try:
            return await self._reply(asked, counts)
        finally:
            self.at_once[model] -= 1

    async def _reply(self, asked: dict[str, Any], counts: Counts) -> tuple[int, bytes, str]:
        how = self.behaviours.get(asked["model"]) or self.behaviours.get("*") or Behaviour()
        if self.random.random() < how.rate_limit:
            counts.rate_limited += 1
            wait = "" if how.retry_after is None else f"Retry-After: {how.retry_after:g}\r\n"
            return 429, _error("slow down"), wait
        if how.body is not None or how.events:
            return _given(how, counts)
        if unknown := [name for name in how.refuses if name in asked]:
            counts.failed += 1
            return how.refuses_with, _error(f"Unsupported parameter: {unknown[0]}"), ""
        if how.only_streams and not asked.get("stream"):
            counts.failed += 1
            return how.refusal, _error("Stream must be set to true"), ""
        question = str(asked["messages"][-1].get("content"))
        breaks = how.breaks and how.breaks in question
        if breaks or self.random.random() < how.error:
            counts.failed += 1
            return how.status, _error(how.detail or "it broke"), ""
        if (how.stalls and how.stalls in question) or self.random.random() < how.hang:
            counts.hung += 1
            await asyncio.sleep(3600)
        await asyncio.sleep(how.latency)
        if self.random.random() < how.drop:
            counts.dropped += 1
            return 0, b"", ""
        if self.random.random() < how.broken:
            counts.broken += 1
            if asked.get("stream"):
                return 200, b'data: {"choices": [{"index": 0, "delta": {"content": "Hel"}}]}\n\n', ""
            return 200, b'{"id": "x", "object": "chat.completion", "choices": [{"index": 0, "mess', ""
        digest = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
        counts.answered += 1
        counts.answers[digest] = counts.answers.get(digest, 0) + 1
        return 200, self._said(asked, how, counts, digest), ""

    def _said(self, asked: dict[str, Any], how: Behaviour, counts: Counts, digest: str) -> bytes:
        text = how.text if how.text is not None else _text(asked, digest)
        text = how.replies.get(str(asked["messages"][-1].get("content")), text)
        finish = "stop"
        if self.random.random() < how.cut:
            counts.cut += 1
            text, finish = text[: len(text) // 2], "length"
        size = sum(len(str(message.get("content") or "")) for message in asked["messages"]) // 4
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if how.calls and asked.get("tools"):
            function = {"name": asked["tools"][0]["function"]["name"], "arguments": how.arguments}
            message["tool_calls"] = [{"index": 0, "id": "call-1", "type": "function", "function": function}]
            finish = "tool_calls"
        if how.thinking:
            message["reasoning_content"] = how.thinking
        answer = {
            "id": f"chatcmpl-{digest[:12]}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": asked["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        }
        tokens = len(text) // 4
        counts.tokens.append(size + tokens)
        asks_for_usage = not asked.get("stream") or (asked.get("stream_options") or {}).get("include_usage")
        if how.usage and asks_for_usage:
            answer["usage"] = {"prompt_tokens": size, "completion_tokens": tokens, "total_tokens": size + tokens}
        return _streamed(answer) if asked.get("stream") else json.dumps(answer).encode()


def _given(how: Behaviour, counts: Counts) -> tuple[int, bytes, str]:
    """The answer that a test has written."""
    if how.events:
        return 200, "".join(f"data: {json.dumps(event)}\n\n" for event in how.events).encode() + b"data: [DONE]\n\n", ""
    body = dict(how.body or {})
    headers = body.pop("_headers", {})
    counts.answered += how.status == 200
    return how.status, json.dumps(body).encode(), "".join(f"{name}: {value}\r\n" for name, value in headers.items())


def _streamed(answer: dict[str, Any]) -> bytes:
    """The answer as server-sent events: a chunk of text each 8 characters, the finish reason, the usage."""
    (choice,) = answer.pop("choices")
    text, usage = choice["message"].pop("content"), answer.pop("usage", None)
    deltas = [choice["message"], *({"content": text[at : at + 8]} for at in range(0, len(text), 8)), {}]
    finished = [None] * (len(deltas) - 1) + [choice["finish_reason"]]
    chunks: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
        for delta, finish in zip(deltas, finished, strict=True)
    ]
    chunks += [{"choices": [], "usage": usage}] if usage else []
    lines = [json.dumps({**answer, "object": "chat.completion.chunk", **chunk}) for chunk in chunks]
    return "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]).encode()


def _text(asked: dict[str, Any], digest: str) -> str:
    model = asked["model"]
    if model.startswith("operator"):
        return _operator(asked["messages"])
    if model.startswith("king"):
        return f"THOUGHT: I look around first ({digest[:6]}).\n\n```bash\nls -la\n```"
    if model.startswith("challenger"):
        return f"THOUGHT: I read on ({digest[:6]}).\n\n```bash\nsed -n '1,80p' setup.py\n```"
    marks = {name: int(digest[place], 16) % 3 for place, name in enumerate(DIMENSIONS)}
    return json.dumps({**marks, "reason": f"as drawn ({digest[:6]})"})


def _operator(messages: list[dict[str, Any]]) -> str:
    found = SCRIPT.search("\n".join(str(message.get("content") or "") for message in messages))
    steps = found[1].split(";;") if found else []
    said = sum(message["role"] == "assistant" for message in messages)
    return f"Step {said + 1}.\n\n```sh\n{steps[said].strip()}\n```" if said < len(steps) else "exit"


def _error(detail: str) -> bytes:
    return json.dumps({"error": {"message": detail, "type": "server_error", "code": None}}).encode()


class _Connection(asyncio.Protocol):
    """The part of HTTP/1.1 with keep-alive that model clients use."""

    def __init__(self, server: _Server) -> None:
        self._server = server
        self._buffer = b""
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._server.connections.add(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.connections.discard(self._transport)
        if self._task is not None:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, rest = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return
        lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        length = int(headers.get("content-length", "0"))
        if len(rest) < length:
            return
        self._buffer = rest[length:]
        method, path, _ = lines[0].split(" ", 2)
        self._task = asyncio.ensure_future(self._serve(method, path, headers, rest[:length]))

    async def _serve(self, method: str, path: str, headers: dict[str, str], body: bytes) -> None:
        status, answer, more = await self._server.answer(method, path, headers, body)
        if status == 0:
            self._transport.close()
            return
        kind = "text/event-stream" if answer.startswith(b"data:") else "application/json"
        head = f"HTTP/1.1 {status} {REASONS.get(status, 'Error')}\r\nContent-Type: {kind}\r\n"
        self._transport.write(f"{head}{more}Content-Length: {len(answer)}\r\n\r\n".encode() + answer)


async def _serve(port: int) -> None:
    loop = asyncio.get_running_loop()
    server = _Server()
    server.port = port
    await server.listen()
    print(server.port, flush=True)
    await loop.run_in_executor(None, sys.stdin.read)  # until the process that started it ends


class ModelServer:
    """The server's process, for tests."""

    def __init__(self) -> None:
        self.port = 0
        self.start()

    @property
    def api_base(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> None:
        """Start it, after `stop` on the same port, so that refused connections succeed again."""
        command = [sys.executable, "-m", "tests.model_server", str(self.port)]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()

    def behave(self, model: str = "*", **how: Any) -> None:
        assert set(how) <= {entry.name for entry in fields(Behaviour)}
        self._request("POST", "/control", {"model": model, **how})

    def refuse(self, seconds: float) -> None:
        """Break all connections and refuse new ones for some seconds; counts and behaviour stay."""
        self._request("POST", "/refuse", {"seconds": seconds})

    def reset(self) -> None:
        """Forget all requests; the behaviour stays."""
        self._request("POST", "/reset", {})

    def forget(self) -> None:
        """Forget all requests and behaviour."""
        self._request("POST", "/forget", {})

    def counts(self, model: str | None = None) -> Counts:
        """The counts of one model, or of all together (then `most_at_once` is the highest of any model)."""
        found = [Counts(**entry) for name, entry in self._request("GET", "/counts").items() if model in (None, name)]
        total = Counts()
        for counts in found:
            for name in ("answered", "cut", "rate_limited", "failed", "broken", "hung", "dropped"):
                setattr(total, name, getattr(total, name) + getattr(counts, name))
            total.most_at_once = max(total.most_at_once, counts.most_at_once)
            total.times += counts.times
            total.tokens += counts.tokens
            total.max_tokens += counts.max_tokens
            total.keys += counts.keys
            total.answers |= counts.answers
        return total

    def _request(self, method: str, path: str, body: object = None) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1]) if len(sys.argv) > 1 else 0))
