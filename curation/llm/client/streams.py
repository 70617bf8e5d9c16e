"""Read a model's answer whole, with a limit of bytes, and put a stream together to one document.

A stream is OpenAI's: server-sent events with `chat.completion.chunk` objects. LiteLLM gets the finished document and
reads it as any other answer. LiteLLM's own reader of streams skips chunks that are not JSON, ends at any text with
`[DONE]`, completes a stream that broke off, and estimates tokens that were not reported.
"""

import asyncio
import json
import time
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass

import httpx
from pydantic import BaseModel, JsonValue, ValidationError

MAX_BYTES = 32 * 1024 * 1024
# The chunks of a stream are much longer than the text in them.
MAX_STREAM_BYTES = 8 * MAX_BYTES
# After the finish reason come the usage and the end. A server that leaves them out need not close the connection.
USAGE_SECONDS, CLOSE_SECONDS = 5.0, 0.2
TOO_LONG = f"the answer is longer than {MAX_BYTES // 2**20} MiB"
# A tool call takes about this much memory besides its arguments.
CALL_BYTES = 500
NOT_KEPT = frozenset({"content-encoding", "content-length", "content-type", "transfer-encoding"})


class BrokenAnswer(httpx.ReadError):
    """An answer that is too long, or a stream that is no chat completion or has no end. The text says which."""


@dataclass(slots=True)
class Progress:
    """What has arrived of a stream. `first_token_at` is a time of `time.perf_counter`."""

    first_token_at: float | None = None


progress_of_call: ContextVar[Progress] = ContextVar("progress_of_call")


class _Function(BaseModel):
    name: str | None = None
    arguments: str | None = None


class _ToolCall(BaseModel):
    index: int | None = None
    id: str | None = None
    function: _Function = _Function()


class _Delta(BaseModel):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Choice(BaseModel):
    index: int | None = 0
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Chunk(BaseModel):
    id: str | None = None
    created: JsonValue = None
    model: str | None = None
    service_tier: str | None = None
    choices: list[_Choice] | None = None
    usage: dict[str, JsonValue] | None = None


class StreamedAnswer:
    """The answer so far. Raises `BrokenAnswer` for a chunk that cannot be read."""

    def __init__(self, progress: Progress) -> None:
        self.finish_reason = ""
        self.is_done = False
        self._progress = progress
        self._rest = bytearray()
        self._event, self._data = b"", list[bytes]()
        self._head: dict[str, JsonValue] = {}
        self._text, self._thinking = list[str](), list[str]()
        self._calls: list[dict[str, str]] = []
        self._indexes: list[int | None] = []
        self._usage: dict[str, JsonValue] | None = None
        self._failure: tuple[int, JsonValue] | None = None
        self._kept = 0

    def add(self, body: bytes) -> None:
        """Read the next bytes."""
        self._rest += body
        if b"\n" not in body:
            self._check_size(len(self._rest))
            return
        *lines, self._rest = self._rest.split(b"\n")
        for line in lines:
            if not self.is_done:
                self._read_line(bytes(line.rstrip(b"\r")))

    def document(self) -> tuple[int, JsonValue]:
        """Return the status and the body that an endpoint without streams would have answered."""
        if not self.is_done:
            self.add(b"\n\n")
        if self._failure:
            return self._failure
        if not self.finish_reason:
            raise BrokenAnswer("the stream ended without a finish reason" if self.is_done else "the stream broke off")
        message: dict[str, JsonValue] = {"role": "assistant", "content": "".join(self._text) or None}
        if self._thinking:
            message["reasoning_content"] = "".join(self._thinking)
        if self._calls:
            message["tool_calls"] = [
                {
                    "id": call["id"],
                    "type": "function",
                    "function": {"name": call["name"], "arguments": call["arguments"]},
                }
                for call in self._calls
            ]
        choice: JsonValue = {"index": 0, "message": message, "finish_reason": self.finish_reason}
        usage: dict[str, JsonValue] = {"usage": self._usage} if self._usage else {}
        return 200, {**self._head, "object": "chat.completion", "choices": [choice], **usage}

    def _read_line(self, line: bytes) -> None:
        if line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
        elif line.startswith(b"event:"):
            self._event = line[6:].strip()
        elif not line and self._data:
            event, data = self._event, b"\n".join(self._data)
            self._event, self._data = b"", []
            self._read_event(event, data)

    def _read_event(self, event: bytes, data: bytes) -> None:
        if data.strip() == b"[DONE]":
            self.is_done = True
            return
        try:
            found = json.loads(data)
        except (ValueError, RecursionError):
            if event == b"error":
                self._fail(data.decode(errors="replace"))
                return
            shown = data[:200].decode(errors="replace")
            raise BrokenAnswer(f"the stream has a chunk that is not JSON: {shown}") from None
        if isinstance(found, dict) and (event == b"error" or found.get("error")):
            self._fail(found.get("error") or found)
            return
        try:
            self._take(_Chunk.model_validate(found))
        except ValidationError:
            shown = data[:200].decode(errors="replace")
            raise BrokenAnswer(f"the stream has a chunk that is not of a chat completion: {shown}") from None

    def _take(self, chunk: _Chunk) -> None:
        self._head = self._head or chunk.model_dump(include={"id", "created", "model", "service_tier"})
        self._usage = chunk.usage or self._usage
        for choice in chunk.choices or ():
            if choice.index:
                continue
            delta = choice.delta or _Delta()
            thinking = delta.reasoning_content or delta.reasoning
            if self._progress.first_token_at is None and (delta.content or thinking or delta.tool_calls):
                self._progress.first_token_at = time.perf_counter()
            self._kept += len(delta.content or "") + len(thinking or "")
            if delta.content:
                self._text.append(delta.content)
            if thinking:
                self._thinking.append(thinking)
            for call in delta.tool_calls or ():
                self._take_call(call)
            if choice.finish_reason == "error":
                raise BrokenAnswer("the endpoint ended the stream with an error")
            self.finish_reason = choice.finish_reason or self.finish_reason
        self._check_size(self._kept)

    def _take_call(self, given: _ToolCall) -> None:
        """Add a part of a tool call. Some servers send no index, or the same for all calls with their ids."""
        name, arguments = given.function.name or "", given.function.arguments or ""
        self._kept += CALL_BYTES + len(arguments)
        place = len(self._calls) - 1
        if given.index is not None and given.index in self._indexes:
            place = len(self._indexes) - 1 - self._indexes[::-1].index(given.index)
        is_unseen = given.index is not None and given.index not in self._indexes
        is_new = not self._calls or is_unseen
        if name and not is_new:
            is_new = given.id != self._calls[place]["id"] if given.id else given.index is None
        if is_new:
            self._calls.append({"id": given.id or "", "name": name, "arguments": arguments})
            self._indexes.append(given.index)
            return
        call = self._calls[place]
        call["id"], call["name"] = call["id"] or given.id or "", call["name"] or name
        call["arguments"] += arguments

    def _check_size(self, size: int) -> None:
        if size > MAX_BYTES:
            raise BrokenAnswer(TOO_LONG)

    def _fail(self, error: JsonValue) -> None:
        """An error in place of an answer is the endpoint's refusal; after a part of it, the answer has broken off."""
        if self._progress.first_token_at is not None:
            words = error.get("message") if isinstance(error, dict) else error
            raise BrokenAnswer(f"the stream broke off with an error: {words or error}")
        self._failure, self.is_done = (_status_of(error), {"error": error}), True


async def read_answer(response: httpx.Response) -> httpx.Response:
    """Return the response with its whole body; a stream becomes one document. Raises `BrokenAnswer`.

    A redirect to another server becomes a refusal: the headers of Azure's and Anthropic's keys would go there too.
    """
    if other := _other_server(response):
        await response.aclose()
        words = f"the endpoint redirects to {other}, and requests go to no other server: enter it as the base URL"
        return httpx.Response(404, json={"error": {"message": words}}, request=response.request)
    streamed = StreamedAnswer(progress_of_call.get(Progress())) if _is_stream(response) else None
    plain, size = bytearray(), 0
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(None) as end:
            async for body in response.aiter_bytes():
                if not size and streamed is None and _is_stream(response, body):
                    streamed = StreamedAnswer(progress_of_call.get(Progress()))
                size += len(body)
                if size > (MAX_STREAM_BYTES if streamed else MAX_BYTES):
                    raise BrokenAnswer(TOO_LONG)
                if streamed is None:
                    plain += body
                    continue
                streamed.add(body)
                if streamed.is_done or streamed.finish_reason:
                    latest = loop.time() + (CLOSE_SECONDS if streamed.is_done else USAGE_SECONDS)
                    end.reschedule(min(latest, end.when() or latest))
    except (TimeoutError, httpx.ReadError) as error:
        if isinstance(error, BrokenAnswer) or streamed is None or not (streamed.is_done or streamed.finish_reason):
            raise
    finally:
        await response.aclose()
    status, content, kind = response.status_code, bytes(plain), response.headers.get("content-type", "")
    if streamed is not None:
        status, document = streamed.document()
        content, kind = json.dumps(document).encode(), "application/json"
    kept = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in NOT_KEPT]
    return httpx.Response(status, headers=[*kept, ("content-type", kind)], content=content, request=response.request)


def _other_server(response: httpx.Response) -> str:
    """The server that a redirect leads to, if it is not the one that was asked."""
    if not response.has_redirect_location:
        return ""
    asked, location = response.request.url, response.headers["location"]
    try:
        given = asked.join(location)
    except httpx.InvalidURL:
        return repr(location[:200])
    is_same = (given.scheme, given.host, given.port) == (asked.scheme, asked.host, asked.port)
    return "" if is_same else f"{given.scheme}://{given.netloc.decode(errors='replace')}"


def _is_stream(response: httpx.Response, beginning: bytes = b"") -> bool:
    """Whether the body is a stream, by its type or, where that is wrong, by its first bytes."""
    is_named = response.headers.get("content-type", "").startswith("text/event-stream")
    return response.status_code == 200 and (is_named or beginning.startswith((b"data:", b"event:", b":")))


def _status_of(error: JsonValue) -> int:
    """The HTTP status that the endpoint would have answered, as far as its error says so."""
    said: Sequence[JsonValue] = (
        [error.get(key) for key in ("code", "status", "type")] if isinstance(error, dict) else []
    )
    for value in said:
        if isinstance(value, int) and 400 <= value < 600:
            return value
        if isinstance(value, str) and "rate_limit" in value:
            return 429
    return 500
