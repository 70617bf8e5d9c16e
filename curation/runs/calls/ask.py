"""Ask a model: the request cache, the record of every call, retries and the endpoint's limits."""

import asyncio
import random
import secrets
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol, cast

from curation.llm.client.completion import Completion, CompletionClient, CompletionRequest, EndpointTarget
from curation.llm.client.errors import CallError, Misconfigured, RateLimited, Refused, TimedOut, Transient, Unreachable
from curation.llm.client.limits import EndpointLimiter, EndpointPaused
from curation.runs.calls.budget import BudgetHeld, BudgetSpent
from curation.runs.calls.record import CallAnswer, CloseCall, FindAnswer, InFlight, OpenCall, fail_call, withdraw_call
from curation.runs.engine.group_commit import GroupCommit
from curation.runs.engine.waiting import wake
from curation.runs.kinds import MOST_TIMEOUTS, MOST_TRIES, EndpointDown, ItemFailed
from curation.runs.models import Item, Run
from curation.web.telemetry import TimedSpan
from curation.web.text.figures import counted, duration
from curation.web.text.storable import storable, storable_json
from judging.messages import ToolCall, estimated_tokens

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
# How long an item waits while its calls get 429s, which do not count as tries.
RATE_LIMIT_SECONDS = 15 * 60.0
BUDGET_PAUSE = 0.2
SAME_REQUEST_PAUSE = 0.1
SHORT_QUESTION = "Reply with the single word: ready"
SHORT_TOKENS = 64


class Shard(Protocol):
    """The shard that works on the item, as far as `ask` needs it."""

    run: Run
    commit: GroupCommit
    wait_seconds: float

    def limiter(self, target: EndpointTarget) -> EndpointLimiter: ...

    def client(self, target: EndpointTarget) -> CompletionClient: ...


async def ask(
    shard: Shard,
    item: Item,
    target: EndpointTarget,
    request: CompletionRequest,
    *,
    instructions_hash: str = "",
    fresh: bool = False,
    tries: int = MOST_TRIES,
    timeouts: int = MOST_TIMEOUTS,
) -> CallAnswer:
    """Return the answer from the record or from the endpoint, or raise `ItemFailed` with the reason.

    A request that another item has sent is not sent again: its answer is awaited. A `fresh` answer never comes from
    another item. The item's own record counts, so a crash pays nothing twice.
    Raises `EndpointPaused` while the endpoint is down: the item then waits without a worker, as long as the project
    says, and fails with `EndpointDown` after that. A call with one try only is made in any case. Of the `tries`,
    `timeouts` may time out; before the last of them fails the item, the endpoint is checked.
    """
    opening = OpenCall(shard.run, item, target, request, request.content_hash(target), instructions_hash, fresh)
    if shard.limiter(target).is_busy and (recorded := await shard.commit(FindAnswer(opening))):
        return recorded
    began = time.monotonic()
    tried = unreached = timed_out = 0
    while True:
        try:
            if tries > 1 and await shard.limiter(target).claim_probe():
                await _probe(shard, opening)
            return await _try(shard, opening, is_probe=tries == 1)
        except BudgetHeld:
            await asyncio.sleep(BUDGET_PAUSE)
        except InFlight:
            await asyncio.sleep(SAME_REQUEST_PAUSE)
            if recorded := await shard.commit(FindAnswer(opening)):
                return recorded
        except EndpointPaused as paused:
            raise _waiting(shard, item, paused) from paused
        except RateLimited as limited:
            if time.monotonic() > began + RATE_LIMIT_SECONDS or tries == 1:
                raise ItemFailed(f"{target.name} is rate limited: {limited}") from limited
            await asyncio.sleep(_pause(1, limited.retry_after))
        except Transient as failure:
            if isinstance(failure, Unreachable) and tries > 1:
                unreached += 1
                is_last = unreached >= tries and time.monotonic() > began + shard.wait_seconds
            else:
                tried += 1
                timed_out += isinstance(failure, TimedOut)
                is_last = tried >= tries or timed_out >= timeouts
            if tries > 1:
                await _pause_if_down(shard, opening, failure, is_last=is_last)
            if tries > 1 and shard.wait_seconds and (outage := shard.limiter(target).outage):
                raise _waiting(shard, item, EndpointPaused(target, outage)) from failure
            if is_last:
                times = f" (tried {counted(tried + unreached, 'time')})" if tried + unreached > 1 else ""
                raise ItemFailed(f"{target.name}: {failure}{times}") from failure
            await asyncio.sleep(_pause(max(tried, unreached), failure.retry_after))
        except CallError as failure:
            raise ItemFailed(f"{target.name}: {failure}") from failure


def _waiting(shard: Shard, item: Item, paused: EndpointPaused) -> EndpointPaused | EndpointDown:
    """Return the error of an item whose endpoint is down: it waits, or has waited long enough."""
    if item.waited < shard.wait_seconds:
        return paused
    how_long = f" (waited {duration(item.waited)})" if item.waited else ""
    return EndpointDown(f"{paused.target.name} is down: {paused.outage.reason}{how_long}")


async def _pause_if_down(shard: Shard, opening: OpenCall, failure: Transient, *, is_last: bool) -> None:
    """Pause an endpoint that is down for all workers: its calls fail in a row, and so does a short one of our own.

    If that one is answered, the endpoint is up, and the items fail for a reason of their own. After the last try of an
    item that timed out, one failure is enough for the check: there are too few tries to wait for more.
    """
    limiter = shard.limiter(opening.target)
    async with limiter.checking:
        if not limiter.may_be_down(failure, is_last=is_last and isinstance(failure, TimedOut)):
            return
        try:
            found = failure if isinstance(failure, Unreachable) else await _check(shard, opening)
        except Misconfigured:
            return  # the item's next try fails for it, and says so
        if found:
            await limiter.begin_outage(failure)


async def _probe(shard: Shard, opening: OpenCall) -> None:
    """Try an endpoint that is down; an answer ends its outage. Raises `EndpointPaused` if there is none."""
    limiter = shard.limiter(opening.target)
    if failure := await _check(shard, opening):
        await limiter.begin_outage(failure)
        if limiter.outage:
            raise EndpointPaused(opening.target, limiter.outage)


async def _check(shard: Shard, opening: OpenCall) -> Transient | None:
    """Make a short call that is no item's request, and return how it failed; None if the endpoint answered it, or if it
    cannot be made: then nothing is known.

    It is recorded and paid for like the item's, and given up as soon. The text differs each time, because a gateway may
    answer the same request from its cache.
    """
    request = short_request(f" ({secrets.token_hex(4)})")
    if "timeout" in opening.request.params:
        request = replace(request, params={**request.params, "timeout": opening.request.params["timeout"]})
    own = replace(opening, request=request, content_hash=request.content_hash(opening.target), instructions_hash="")
    try:
        await _try(shard, own, is_probe=True)
    except Transient as failure:
        return failure
    except (RateLimited, Refused, BudgetHeld):
        return None
    return None


def short_request(suffix: str = "") -> CompletionRequest:
    """A request that any model can answer, for little money."""
    return CompletionRequest([{"role": "user", "content": SHORT_QUESTION + suffix}], {"max_tokens": SHORT_TOKENS})


async def _try(shard: Shard, opening: OpenCall, *, is_probe: bool) -> CallAnswer:
    """Make one call, recorded before it is sent and when it has ended. Raises the `CallError` that it ended in.

    `OpenCall` looks for a recorded answer too: while nothing has to wait, that saves a transaction.
    """
    run_id, target, request = opening.run.pk, opening.target, opening.request
    limiter, client = shard.limiter(target), shard.client(target)
    async with limiter.turn(_prompt_tokens(request), is_probe=is_probe) as turn:
        opened = await shard.commit(opening)
        if isinstance(opened, BudgetHeld | BudgetSpent | InFlight):
            raise opened
        if isinstance(opened, CallAnswer):
            return opened
        started = time.perf_counter()
        try:
            async with turn.slot():
                started = time.perf_counter()
                with TimedSpan("model call", endpoint=target.name, model=target.model):
                    completion = _storable(await client.complete(target, request))
        except EndpointPaused:
            await shard.commit(partial(withdraw_call, opened))
            raise
        except CallError as error:
            latency_ms = round((time.perf_counter() - started) * 1000)
            await shard.commit(partial(fail_call, run_id, opened, error, latency_ms))
            if isinstance(error, Transient):
                limiter.record_failure()
            elif isinstance(error, RateLimited):
                limiter.record_rate_limit(error.retry_after)
            elif not isinstance(error, Misconfigured):
                limiter.record_sign_of_life()
            if limiter.outage and not isinstance(error, Transient | Misconfigured):
                await _end_outage(shard, target)
            raise
        limiter.record_success()
        if limiter.outage:
            await _end_outage(shard, target)
        turn.tokens = (completion.tokens_in or 0) + (completion.tokens_out or 0)
        await shard.commit(CloseCall(run_id, opened, completion))
        return CallAnswer(completion, opened, cached=False)


async def _end_outage(shard: Shard, target: EndpointTarget) -> None:
    """The endpoint has answered: this run's items go on now, those of other runs at the reaper's next round."""
    await shard.limiter(target).end_outage()
    await shard.commit(partial(wake, shard.run.pk, target.endpoint_id))


def _pause(tried: int, retry_after: float | None) -> float:
    """Return the seconds to wait: doubling, with jitter, and at least as long as the server asked for."""
    jitter = random.uniform(0.5, 1.0)  # noqa: S311 - spreads retries, not a secret
    pause: float = min(LONGEST_PAUSE, FIRST_PAUSE * 2**tried) * jitter
    return max(pause, retry_after or 0.0)


def _prompt_tokens(request: CompletionRequest) -> int:
    return estimated_tokens(sum(len(str(message.get("content") or "")) for message in request.messages))


def _storable(completion: Completion) -> Completion:
    calls = cast(Sequence[ToolCall], storable_json(list(completion.tool_calls)))
    text, thinking = storable(completion.text), storable(completion.thinking)
    return replace(completion, text=text, thinking=thinking, tool_calls=calls)
