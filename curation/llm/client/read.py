"""Read a model's answer: whole, with a limit of bytes, and a stream as one document."""

import asyncio
import json

import httpx
from pydantic import JsonValue

from curation.llm.client import streams
from curation.llm.client.ends import end_of
from curation.llm.client.passed_streams import PassedStream
from curation.llm.client.pricing import reported_cost
from curation.llm.client.refusals import refusal_of
from curation.llm.client.streams import (
    BOM,
    TOO_LONG,
    BrokenAnswer,
    RefusedAnswer,
    StreamedAnswer,
    StreamProgress,
    progress_of_call,
    text_and_thinking,
)
from curation.llm.client.tokens import tokens_of

# After the finish reason come the usage and the end. A server that leaves them out need not close the connection.
USAGE_SECONDS, CLOSE_SECONDS = 5.0, 0.2
NOT_KEPT = frozenset({"content-encoding", "content-length", "content-type", "transfer-encoding"})


async def read_answer(response: httpx.Response) -> httpx.Response:
    """Return the response with its whole body; a stream becomes one document. Raises `BrokenAnswer`.

    A redirect to another server becomes a refusal: the headers of Azure's and Anthropic's keys would go there too.
    """
    if other := _other_server(response):
        await response.aclose()
        words = f"the endpoint redirects to {other}, and requests go to no other server: enter it as the base URL"
        return httpx.Response(404, json={"error": {"message": words}}, request=response.request)
    progress = progress_of_call.get(StreamProgress())
    kept = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in NOT_KEPT]
    if progress.is_passed_on and response.status_code == 200:
        kept.append(("content-type", response.headers.get("content-type", "")))
        return httpx.Response(200, headers=kept, stream=PassedStream(response, progress), request=response.request)
    streamed: StreamedAnswer | None = None
    plain, size, has_begun = bytearray(), 0, False
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(None) as end:
            async for body in response.aiter_bytes():
                size += len(body)
                if not has_begun:
                    body = bytes(plain + body)
                    plain.clear()
                    has_begun = bool(body.strip())
                    if has_begun and _is_stream(response, body):
                        streamed = StreamedAnswer(progress)
                if size > (streams.MAX_STREAM_BYTES if streamed else streams.MAX_BYTES):
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
    if not has_begun and _is_stream(response, b""):
        streamed = StreamedAnswer(progress)
    status, content, kind = response.status_code, bytes(plain), response.headers.get("content-type", "")
    if streamed is not None:
        status, document = streamed.document()
        content, kind = json.dumps(document).encode(), "application/json"
    if status >= 400:
        progress.refusal = refusal_of(status, response.headers, content)
    elif status == 200:
        content = _read_document(response.headers, content, progress)
    return httpx.Response(status, headers=[*kept, ("content-type", kind)], content=content, request=response.request)


def _read_document(headers: httpx.Headers, content: bytes, progress: StreamProgress) -> bytes:
    """Note the end, the cost and the tokens of an answer, and return it in the form that LiteLLM reads. Raise
    `BrokenAnswer` for half an answer.

    The words of a document that is no answer are noted too: LiteLLM raises an error without them.
    """
    try:
        found: JsonValue = json.loads(content)
    except (ValueError, RecursionError):
        found = None
    progress.cost, progress.tokens = reported_cost(found, headers), tokens_of(found)
    try:
        progress.end = end_of(found)
    except RefusedAnswer as error:
        if error.error is not None:
            progress.refusal = refusal_of(error.status, headers, json.dumps({"error": error.error}).encode())
        raise
    if not progress.end:
        progress.refusal = refusal_of(200, headers, content)
        if isinstance(found, dict) and found.get("choices") == []:
            raise RefusedAnswer(500, f"the answer has no choices: {progress.refusal.words}".rstrip(": "))
    return json.dumps(found).encode() if isinstance(found, dict) and _is_rewritten(found) else content


def _is_rewritten(document: dict[str, JsonValue]) -> bool:
    """Change a form that LiteLLM does not read, and return whether there was one: a text in parts, a usage that is no
    object, log-probabilities, which are read here."""
    usage, choices = document.get("usage"), document.get("choices")
    if has_odd_usage := usage is not None and not isinstance(usage, dict):
        del document["usage"]
    first = choices[0] if isinstance(choices, list) and choices else None
    has_logprobs = isinstance(first, dict) and first.pop("logprobs", None) is not None
    message = first.get("message") if isinstance(first, dict) else None
    if not isinstance(message, dict) or not isinstance(message.get("content"), list):
        return has_odd_usage or has_logprobs
    message["content"], thinking = text_and_thinking(message["content"])
    if thinking:
        message["reasoning_content"] = thinking
    return True


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


def _is_stream(response: httpx.Response, beginning: bytes) -> bool:
    """Whether the body is a stream. Its type may be wrong: its first characters decide, where they say so."""
    if response.status_code != 200:
        return False
    first = beginning.removeprefix(BOM).lstrip()
    is_named = response.headers.get("content-type", "").startswith("text/event-stream")
    return first.startswith((b"data:", b"event:", b":")) or (is_named and not first.startswith((b"{", b"[", b"<")))
