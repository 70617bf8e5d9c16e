"""The only place that imports LiteLLM. It takes seconds, so only workers come here, on their first real call."""

import asyncio
import atexit
import gc
import inspect
import json
import os
import re
import time
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
# LiteLLM's own HTTP client, as for most providers: a call by the OpenAI package takes 1 ms more of the processor.
os.environ.setdefault("EXPERIMENTAL_OPENAI_BASE_LLM_HTTP_HANDLER", "True")

import litellm
import openai
from litellm.litellm_core_utils.litellm_logging import Logging

from curation.llm.client.completion import Completion, Request, Target
from curation.llm.client.errors import CallError, Misconfigured, RateLimited, Refused, TimedOut, Transient
from curation.llm.client.pricing import cost_of, rounded
from curation.llm.endpoints.addresses import lookup_window, refuse_private
from curation.web.problems import Problem
from judging.answers.read import split_thinking

litellm.telemetry = False
litellm.suppress_debug_info = True
litellm.modify_params = True

TIMEOUT_SECONDS = 120.0
# LiteLLM names an error up to three times before it says what the endpoint said.
WRAPPINGS = re.compile(r"^litellm\.\w+: (?:\w+: )?\w+Exception - ")
WORTH_ANOTHER_TRY = frozenset({408, 409, 500, 502, 503, 504, 529})


# The call as LiteLLM makes it, without what it wraps around: prices, callbacks, a cache, retries, budgets, and token
# limits lowered to what its list says the model can. None of that is ours to use, and it takes a quarter of a call.
_acompletion = inspect.unwrap(litellm.acompletion)

_ready = False


async def warm_up() -> None:
    """LiteLLM loads a good part of itself with its first call, which takes seconds: it goes to a port where nobody
    listens, once per process.

    What is loaded then stays, so the collector is told to pass it over: walking through LiteLLM again and again took a
    sixth of a busy worker's time.
    """
    global _ready
    if not _ready:
        _ready = True
        nowhere: dict[str, Any] = {
            "model": "openai/none",
            "api_base": "http://127.0.0.1:9",
            "api_key": "none",
            "max_retries": 0,
        }
        with suppress(openai.OpenAIError):
            await _call(messages=[{"role": "user", "content": ""}], timeout=1.0, **nowhere)
        gc.collect()
        gc.freeze()
        atexit.register(gc.unfreeze)


async def _call(*, model: str, messages: list[Any], **given: Any) -> Any:
    """LiteLLM's answer, or what it raises. Its record of the call, which its parts insist on, is nobody's."""
    began = datetime.now(UTC)
    record = Logging(
        model, messages, stream=False, call_type="acompletion", start_time=began, litellm_call_id="", function_id=""
    )
    return await _acompletion(model=model, messages=messages, litellm_logging_obj=record, **given)


class LiteLlmClient:
    """Asks whatever LiteLLM can reach. It never retries: retries are ours, recorded one by one."""

    def __init__(self) -> None:
        self._checked: tuple[str, int] | None = None

    async def complete(self, target: Target, request: Request) -> Completion:
        params = {**target.params, **request.params}
        limit = float(str(params.pop("timeout", TIMEOUT_SECONDS)))
        if request.schema and litellm.supports_response_schema(model=target.model):
            params["response_format"] = request.schema
        key = _key(target)
        if target.api_base:
            await self._check_address(target.api_base)
        started = time.perf_counter()
        try:
            async with asyncio.timeout(limit + 1.0):
                response = await _call(
                    model=target.model,
                    messages=list(request.messages),
                    api_base=target.api_base or None,
                    api_key=key,
                    timeout=limit,
                    max_retries=0,
                    **params,
                )
        except TimeoutError as error:
            raise TimedOut(f"no answer within {limit:g} s") from error
        except openai.OpenAIError as error:  # the base of every exception that LiteLLM raises
            if isinstance(error, litellm.exceptions.Timeout) and time.perf_counter() - started >= limit:
                raise TimedOut(f"no answer within {limit:g} s") from None
            raise _translate(error, key if target.api_key_env else "") from None  # the cause may repeat the key
        latency_ms = round((time.perf_counter() - started) * 1000)
        try:
            return _completion(target, response, latency_ms)
        except (AttributeError, IndexError, TypeError) as error:
            raise Transient(f"the answer has not the form of a completion: {error}") from error

    async def _check_address(self, api_base: str) -> None:
        """The host may lead elsewhere than when it was set. The look-up blocks: it is done beside the event loop."""
        passing = (api_base, lookup_window())
        if passing == self._checked:
            return
        try:
            await asyncio.to_thread(refuse_private, api_base)
        except Problem as problem:
            if problem.code == "unresolvable_host":
                raise Transient(problem.detail) from problem
            raise Misconfigured(problem.detail) from problem
        self._checked = passing


def _key(target: Target) -> str:
    """The key of the named variable; a placeholder where the endpoint is called without one."""
    if not target.api_key_env:
        return "none"  # an empty one would make LiteLLM look for a key in the environment by itself
    key = os.environ.get(target.api_key_env, "")
    if not key:
        raise Misconfigured(f"the environment variable {target.api_key_env} of this endpoint is not set")
    return key


def _translate(error: Exception, key: str) -> CallError:
    """The error as ours. Servers repeat the key that they refuse; it is neither kept nor shown."""
    status = getattr(error, "status_code", None)
    detail = f"{type(error).__name__}: {_words(error)}"
    detail = (detail.replace(key, "[key]") if key else detail)[:1000]
    if status == 429:
        return RateLimited(detail, _retry_after(error))
    is_unread = status is None or status < 400  # no answer, or half of one
    if isinstance(error, litellm.exceptions.APIConnectionError) or is_unread or status in WORTH_ANOTHER_TRY:
        return Transient(detail, _retry_after(error))
    return Refused(detail)


def _words(error: Exception) -> str:
    """What the endpoint said: the message in the body that such servers answer with, else all of it."""
    text = WRAPPINGS.sub("", str(getattr(error, "message", error)))
    try:
        body = json.loads(text)
    except ValueError:
        return text
    told = body.get("error", body) if isinstance(body, dict) else None
    message = told.get("message") if isinstance(told, dict) else told
    return message if isinstance(message, str) else text


def _retry_after(error: Exception) -> float | None:
    response = getattr(error, "response", None)
    headers: Any = getattr(response, "headers", None) or getattr(error, "litellm_response_headers", None) or {}
    try:
        return min(600.0, max(0.0, float(headers.get("retry-after", ""))))
    except ValueError:
        return None


def _completion(target: Target, response: Any, latency_ms: int) -> Completion:
    choice = response.choices[0]
    said = split_thinking(choice.message.content or "")
    thinking = getattr(choice.message, "reasoning_content", None) or said.thinking
    usage = getattr(response, "usage", None)
    tokens_in, tokens_out = getattr(usage, "prompt_tokens", None), getattr(usage, "completion_tokens", None)
    if not tokens_in:  # no prompt is empty: LiteLLM writes 0 where the endpoint did not say
        tokens_in = tokens_out = None
    details = getattr(usage, "prompt_tokens_details", None)
    cost = cost_of(target, tokens_in, tokens_out)
    return Completion(
        text=said.text,
        thinking=thinking,
        finish_reason=str(choice.finish_reason or ""),
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        tokens_cached=getattr(details, "cached_tokens", None),
        cost=cost if cost is not None else _listed_cost(target, response),
        latency_ms=latency_ms,
    )


def _listed_cost(target: Target, response: Any) -> Decimal | None:
    """The cost by LiteLLM's packaged price list; None where the model is not in it or is served from elsewhere."""
    if target.api_base or target.model not in litellm.model_cost:
        return None
    return rounded(Decimal(str(litellm.completion_cost(completion_response=response, model=target.model))))
