"""The only import of LiteLLM, which takes seconds: workers import this module with their first real call."""

import asyncio
import base64
import gc
import inspect
import json
import os
import re
import time
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from typing import Any

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
# LiteLLM's own HTTP client, as for most providers: a call through the OpenAI package takes 1 ms more CPU time.
os.environ.setdefault("EXPERIMENTAL_OPENAI_BASE_LLM_HTTP_HANDLER", "True")

import aiohttp
import httpx
import litellm
import numpy as np
import openai
from litellm.litellm_core_utils.litellm_logging import Logging
from litellm.llms.custom_httpx import aiohttp_transport, http_handler

from curation.llm.client.checked_call import CheckedConnector, check_host, key_of
from curation.llm.client.completion import Completion, CompletionRequest, EndpointTarget
from curation.llm.client.connection_errors import causes_of, why_lost, why_not_sent
from curation.llm.client.defaults import note_refused, without_refused
from curation.llm.client.ends import CALLS, STOP
from curation.llm.client.errors import (
    CallError,
    HalfAnswer,
    Misconfigured,
    OutOfQuota,
    RateLimited,
    Refused,
    TimedOut,
    Transient,
    Unreachable,
)
from curation.llm.client.passed_streams import OWN_STREAMS
from curation.llm.client.pricing import cost_of, rounded
from curation.llm.client.read import read_answer
from curation.llm.client.refusals import ModelRefusal
from curation.llm.client.streams import BROKE_OFF, BrokenAnswer, RefusedAnswer, StreamProgress, progress_of_call
from curation.web.outbound.addresses import MODELS, ForbiddenAddress, proxy_for
from curation.web.outbound.transport import CheckedTransport
from judging.answers.read import split_thinking
from judging.messages import ToolCall, ToolFunction, message_text

# LiteLLM keeps the chunks of a stream that it reads in memory until the end.
MOST_CHUNKS = 300_000

litellm.telemetry = False
litellm.suppress_debug_info = True
litellm.modify_params = True
# For embeddings, whose `max_retries` of 0 LiteLLM reads as not given.
_litellm: Any = litellm
_litellm.DEFAULT_MAX_RETRIES = 0
# LiteLLM ends a stream whose chunks are the same 100 times, such as the dashes of a long rule.
_litellm.REPEATED_STREAMING_CHUNK_LIMIT = MOST_CHUNKS
# All of LiteLLM's connections go to addresses that were checked: its asynchronous handler makes connectors of this
# class, its synchronous one uses this transport.
_http: Any = http_handler
_http.TCPConnector = CheckedConnector
litellm.sync_transport = CheckedTransport(MODELS)
# LiteLLM sends a request again after a connection error. That is only right for one that was not sent.
aiohttp_transport.AIOHTTP_EXC_MAP[aiohttp.ClientOSError] = httpx.ReadError


class ReadingTransport(aiohttp_transport.LiteLLMAiohttpTransport):
    """Reads each answer before LiteLLM sees it: within a limit, and a stream as one document."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return await read_answer(await super().handle_async_request(request))


_transports: Any = aiohttp_transport
_transports.LiteLLMAiohttpTransport = ReadingTransport

TIMEOUT_SECONDS = 120.0
USAGE = "stream_options"
STREAM = {"stream": True, USAGE: {"include_usage": True}}
MOST_TOKENS = 2**31 - 1
NO_TOOLS = "its prompt has tools and this endpoint takes none: choose another model, or remove `takes_tools`"
# LiteLLM puts up to three names of the error before the endpoint's own message.
ERROR_PREFIX = re.compile(r"^litellm\.\w+: (?:\w+: )?\w+Exception - ")
TIMEOUTS = (litellm.exceptions.Timeout, httpx.TimeoutException, TimeoutError)
# Of a limit per minute that is smaller than the request.
NEVER_FITS = re.compile(r"\brequest too large\b", re.IGNORECASE)
# Besides all from 500 on.
RETRIED = frozenset({408, 409, 425})
SERVER_ERROR = 500


# LiteLLM's call without its wrapper, which adds prices, callbacks, a cache, retries, budgets and its own token limits.
# Winnow uses none of that, and it takes a quarter of a call's time. This and `Logging` are
# internals of LiteLLM: requirements/base.in pins it, and `make newest-litellm` tests the newest version.
_acompletion = inspect.unwrap(litellm.acompletion)

_is_warm = False


async def warm_up() -> None:
    """Make LiteLLM load all its parts, which takes seconds: once per process, call a port where nothing listens.

    The garbage collector then ignores the loaded objects; traversing them took a sixth of a busy worker's time.
    """
    global _is_warm
    if not _is_warm:
        _is_warm = True
        unreachable: dict[str, Any] = {
            "model": "openai/none",
            "api_base": "http://127.0.0.1:9",
            "api_key": "none",
            "max_retries": 0,
        }
        with suppress(openai.OpenAIError):
            await _call(messages=[{"role": "user", "content": ""}], timeout=1.0, **unreachable)
        gc.collect()
        gc.freeze()


async def _call(*, model: str, messages: list[Any], **given: Any) -> Any:
    """Return LiteLLM's response. Its log object is required but not used."""
    began = datetime.now(UTC)
    log = Logging(
        model, messages, stream=False, call_type="acompletion", start_time=began, litellm_call_id="", function_id=""
    )
    return await _acompletion(model=model, messages=messages, litellm_logging_obj=log, **given)


class LiteLlmClient:
    """Calls any model that LiteLLM can reach, once: retries are made and recorded by the caller.

    A stream that a server refuses is tried once without `stream_options`: its usage may then be unknown. A request that
    is refused for a default, such as a temperature, is sent without it, as are the next ones to this model.
    """

    async def complete(self, target: EndpointTarget, request: CompletionRequest) -> Completion:
        while True:
            given = without_refused(target, request.params)
            try:
                return await self._asking_for_usage(target, replace(request, params=given))
            except Refused as error:
                if not note_refused(target, given, error):
                    raise

    async def _asking_for_usage(self, target: EndpointTarget, request: CompletionRequest) -> Completion:
        params = {**target.params, **request.params}
        body = params.get("extra_body")
        extra = body if isinstance(body, dict) else {}
        streams = bool(params.get("stream")) and not request.embed
        asks_for_usage = streams and USAGE not in extra and not _has_own_streams(target.model)
        try:
            return await self._complete(target, request, dict(params))
        except (Refused, Transient) as error:
            is_for_body = isinstance(error, Refused) and error.status in (400, 422)
            if not asks_for_usage or not (is_for_body or USAGE in str(error)):
                raise
        return await self._complete(target, request, {**params, "extra_body": {**extra, USAGE: None}})

    async def _complete(self, target: EndpointTarget, request: CompletionRequest, params: dict[str, Any]) -> Completion:
        limit = float(str(params.pop("timeout", TIMEOUT_SECONDS)))
        sent = _sent_params(target, request, params)
        key = key_of(target)
        secret = key if target.api_key_env else ""
        sent |= {"model": target.model, "api_base": target.api_base or None, "api_key": key}
        sent |= {"timeout": limit, "max_retries": 0}
        if target.api_base and proxy_for(target.api_base):
            await check_host(target.api_base)
        progress = StreamProgress(is_passed_on="stream" in sent)
        started = time.perf_counter()
        progress_of_call.set(progress)
        try:
            async with asyncio.timeout(limit + 1.0):
                response = await _respond(request, sent, progress)
        except RefusedAnswer as error:
            raise _translate(error, secret, progress.refusal) from None
        except BrokenAnswer as error:
            raise Transient(str(error)) from error
        except TimeoutError as error:
            raise TimedOut(_late(progress, limit)) from error
        except openai.OpenAIError as error:  # the base of every exception that LiteLLM raises
            if time.perf_counter() - started >= limit and _is_timeout(error):
                raise TimedOut(_late(progress, limit)) from None
            raise _translate(error, secret, progress.refusal) from None  # the cause may repeat the key
        latency_ms = round((time.perf_counter() - started) * 1000)
        try:
            if request.embed:
                return _embeddings(target, response, latency_ms, len(request.messages))
            first = progress.first_token_at
            first_token_ms = None if first is None else round((first - started) * 1000)
            return replace(_completion(target, response, latency_ms, progress), first_token_ms=first_token_ms)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            kind = "an embedding of each text" if request.embed else "a chat completion"
            raise Transient(f"the answer is not {kind}") from error


def _sent_params(target: EndpointTarget, request: CompletionRequest, params: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of LiteLLM's call: those of the request, in the form that the endpoint takes. `stream` is
    one of them only where LiteLLM passes the stream on."""
    if request.embed:
        return {}
    sent = dict(params)
    own = ("takes_json_schema", "takes_max_tokens", "takes_tools", "key_style", "stream", "return_token_ids")
    takes_schema, takes_max_tokens, takes_tools, _, streams, with_token_ids = (sent.pop(name, None) for name in own)
    if request.schema and (
        litellm.supports_response_schema(model=target.model) if takes_schema is None else takes_schema
    ):
        sent["response_format"] = request.schema
    if takes_max_tokens is False and sent.get("max_completion_tokens") is None:
        sent["max_completion_tokens"] = sent.get("max_tokens")
    if sent.get("max_completion_tokens") is not None:
        sent.pop("max_tokens", None)
    if request.tools:
        if takes_tools is False:
            raise Misconfigured(NO_TOOLS)
        sent["tools"] = list(request.tools)
    if streams and _has_own_streams(target.model):
        sent["stream"] = True
    elif streams:
        more = sent.get("extra_body")
        extra = {**STREAM, **(more if isinstance(more, dict) else {})}
        # Some servers refuse the field even if it is null.
        sent["extra_body"] = {name: value for name, value in extra.items() if name != USAGE or value is not None}
    if with_token_ids:
        sent["extra_body"] = {"return_token_ids": True, **(sent.get("extra_body") or {})}
    return sent


async def _respond(request: CompletionRequest, sent: dict[str, Any], progress: StreamProgress) -> Any:
    if request.embed:
        texts = [str(message["content"]) for message in request.messages]
        return await litellm.aembedding(input=texts, encoding_format="float", **sent)
    response = await _call(messages=list(request.messages), **sent)
    return await _assemble(response, progress) if progress.is_passed_on else response


def _is_timeout(error: Exception) -> bool:
    return any(isinstance(cause, TIMEOUTS) for cause in causes_of(error)) and not why_not_sent(error)


def _has_own_streams(model: str) -> bool:
    """Whether the streams of a model have another form than OpenAI's."""
    try:
        name, provider, *_ = litellm.get_llm_provider(model)
    except litellm.exceptions.BadRequestError:
        return False  # the call itself says that there is no such provider
    return provider in OWN_STREAMS or (provider == "azure_ai" and "claude" in name)


async def _assemble(stream: Any, progress: StreamProgress) -> Any:
    """Read a stream to its end and return the answer, with the usage only if the endpoint reported it."""
    count = 0
    async for chunk in stream:
        count += 1
        if count > MOST_CHUNKS:
            raise BrokenAnswer(f"the stream has more than {MOST_CHUNKS:,} chunks")
        delta = chunk.choices[0].delta if chunk.choices else None
        said = [getattr(delta, name, None) for name in ("content", "reasoning_content", "tool_calls")]
        if progress.first_token_at is None and any(said):
            progress.first_token_at = time.perf_counter()
    if not progress.has_end and stream.received_finish_reason is None:
        raise BrokenAnswer(BROKE_OFF)
    answer: Any = litellm.stream_chunk_builder(stream.chunks)
    if answer is None:
        raise BrokenAnswer("the stream has no answer in it")
    if not any(getattr(chunk, "usage", None) for chunk in stream.chunks):
        answer.usage = None
    return answer


def _late(progress: StreamProgress, limit: float) -> str:
    return (
        f"no answer within {limit:g} s"
        if progress.first_token_at is None
        else f"no end of the stream within {limit:g} s"
    )


def _translate(error: Exception, key: str, refusal: ModelRefusal | None) -> CallError:
    """Translate an error. Servers repeat the key that they refuse; it is removed."""
    if forbidden := next((cause for cause in causes_of(error) if isinstance(cause, ForbiddenAddress)), None):
        return Misconfigured(forbidden.detail)
    if reason := why_not_sent(error):
        return Unreachable(reason)
    refused = next((cause for cause in causes_of(error) if isinstance(cause, RefusedAnswer)), None)
    lost = why_lost(error)
    error = getattr(error, "original_exception", None) or error  # of one in the middle of a stream
    status = (refused.status if refused else getattr(error, "status_code", None)) or 0
    said = _message(error, refusal) or f"the endpoint answered {status} without a message"
    detail = str(refused or lost) or f"{type(error).__name__}: {said}"
    detail = (detail.replace(key, "[key]") if key else detail)[:1000]
    wait = None if refusal is None else refusal.retry_after
    if refusal is not None and refusal.is_out_of_quota:
        return OutOfQuota(f"the endpoint is out of quota: {detail}", status)
    if refused is not None and status == 200:
        return HalfAnswer(detail)
    if status == 429 and not NEVER_FITS.search(detail):
        return RateLimited(detail, wait)
    is_cut_off = status < 400  # no response, or half of one
    is_broken = isinstance(error, litellm.exceptions.APIConnectionError) and refused is None
    if is_broken or is_cut_off or status >= SERVER_ERROR or status in RETRIED:
        return Transient(detail, wait)
    return Refused(detail, status)


def _message(error: Exception, refusal: ModelRefusal | None) -> str:
    """The endpoint's words, else LiteLLM's, without its prefixes and the traceback that it adds to some."""
    if refusal is not None and refusal.words:
        return refusal.words
    return ERROR_PREFIX.sub("", str(getattr(error, "message", error))).partition("Traceback (most recent")[0].strip()


def _completion(target: EndpointTarget, response: Any, latency_ms: int, progress: StreamProgress) -> Completion:
    choice = response.choices[0]
    said = split_thinking(choice.message.content or "")
    calls = [_tool_call(call) for call in getattr(choice.message, "tool_calls", None) or ()]
    thoughts = (getattr(choice.message, "reasoning_content", None), said.thinking)
    usage = getattr(response, "usage", None)
    tokens_in, tokens_out = (_tokens(usage, name) for name in ("prompt_tokens", "completion_tokens"))
    if not tokens_in:  # no prompt is empty: LiteLLM writes 0 if the endpoint did not report it
        tokens_in = tokens_out = None
    details = getattr(usage, "prompt_tokens_details", None)
    cost = cost_of(target, tokens_in, tokens_out)
    cost = progress.cost if cost is None else cost
    end = progress.end or str(choice.finish_reason or "")
    if end == CALLS and not calls:
        raise Transient("the answer is not whole: it ended with a call, and has none")
    return Completion(
        text=message_text({"content": said.text, "tool_calls": calls}),
        thinking="\n".join(filter(None, thoughts)),
        finish_reason=CALLS if calls and end == STOP else end,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        tokens_cached=_tokens(details, "cached_tokens"),
        cost=_listed_cost(target, response) if cost is None else cost,
        latency_ms=latency_ms,
        tool_calls=calls,
        tokens=progress.tokens,
    )


def _tokens(usage: Any, name: str) -> int | None:
    """A number of tokens that the endpoint reported; None for one that cannot be."""
    number = getattr(usage, name, None)
    return number if isinstance(number, int) and 0 <= number <= MOST_TOKENS else None


def _embeddings(target: EndpointTarget, response: Any, latency_ms: int, texts: int) -> Completion:
    """Return the embeddings as text; their cost is that of the tokens read."""
    vectors = [entry["embedding"] for entry in sorted(response.data, key=lambda entry: int(entry["index"]))]
    if len(vectors) != texts:
        raise ValueError(f"{len(vectors)} embeddings of {texts} texts")
    tokens_in = _tokens(getattr(response, "usage", None), "prompt_tokens") or None
    cost = cost_of(replace(target, price_out=Decimal(0)), tokens_in, 0)
    if cost is None and tokens_in and not target.api_base and (listed := listed_prices(target.model)):
        cost = rounded(tokens_in * listed[0])
    return Completion(
        text="\n".join(base64.b64encode(np.asarray(vector, dtype="<f2").tobytes()).decode() for vector in vectors),
        thinking="",
        finish_reason="stop",
        tokens_in=tokens_in,
        tokens_out=None if tokens_in is None else 0,
        tokens_cached=None,
        cost=cost,
        latency_ms=latency_ms,
    )


def _tool_call(call: Any) -> ToolCall:
    """Return a call with its arguments on one line, so that people and judges read one line for each call."""
    arguments = call.function.arguments or "{}"
    with suppress(ValueError):
        arguments = json.dumps(json.loads(arguments), ensure_ascii=False)
    function: ToolFunction = {"name": call.function.name or "", "arguments": arguments}
    return {"id": call.id or "", "type": "function", "function": function}


def _listed_cost(target: EndpointTarget, response: Any) -> Decimal | None:
    """The cost by LiteLLM's packaged price list; None if the model is not in it or is served from another address."""
    if target.api_base or getattr(response, "usage", None) is None or listed_prices(target.model) is None:
        return None
    return rounded(Decimal(str(litellm.completion_cost(completion_response=response, model=target.model))))


@cache
def listed_prices(model: str) -> tuple[Decimal, Decimal] | None:
    """The prices of a token read and of one written in LiteLLM's list, under any of a model's names.

    Two zeros are those of a router, whose prices depend on where it sends a call.
    """
    try:
        found = litellm.get_model_info(model)
    except (litellm.exceptions.ModelNotMappedError, litellm.exceptions.BadRequestError):
        return None
    price_in, price_out = (Decimal(str(found.get(f"{name}_cost_per_token") or 0)) for name in ("input", "output"))
    return (price_in, price_out) if price_in or price_out else None
