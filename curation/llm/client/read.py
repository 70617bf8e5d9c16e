"""Read a model's answer: whole, with a limit of bytes, and a stream as one document."""

import asyncio
import json
from contextlib import suppress

import httpx

from curation.llm.client import streams
from curation.llm.client.ends import check_answer
from curation.llm.client.passed_streams import PassedStream
from curation.llm.client.pricing import reported_cost
from curation.llm.client.refusals import refusal_of
from curation.llm.client.streams import TOO_LONG, BrokenAnswer, Progress, StreamedAnswer, progress_of_call

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
    progress = progress_of_call.get(Progress())
    kept = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in NOT_KEPT]
    if progress.is_passed_on and response.status_code == 200:
        kept.append(("content-type", response.headers.get("content-type", "")))
        return httpx.Response(200, headers=kept, stream=PassedStream(response, progress), request=response.request)
    streamed = StreamedAnswer(progress) if _is_stream(response) else None
    plain, size = bytearray(), 0
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(None) as end:
            async for body in response.aiter_bytes():
                if not size and streamed is None and _is_stream(response, body):
                    streamed = StreamedAnswer(progress)
                size += len(body)
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
    status, content, kind = response.status_code, bytes(plain), response.headers.get("content-type", "")
    if streamed is not None:
        status, document = streamed.document()
        content, kind = json.dumps(document).encode(), "application/json"
    if status >= 400:
        progress.refusal = refusal_of(status, response.headers, content)
    if status == 200:
        with suppress(ValueError, RecursionError):  # LiteLLM reports invalid JSON
            found = json.loads(content)
            progress.cost = reported_cost(found, response.headers)
            check_answer(found)
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
