"""Ask a model: the request cache, the record of every call, retries and the endpoint's limits."""

import asyncio
import random
import time
from dataclasses import replace
from functools import partial
from typing import Protocol

from curation.llm.client.completion import Client, Completion, Request, Target
from curation.llm.client.errors import CallError, RateLimited, Transient
from curation.llm.client.limits import EndpointLimiter
from curation.runs.calls.budget import BudgetHeld, BudgetSpent
from curation.runs.calls.record import Answered, CloseCall, FindAnswer, OpenCall, fail_call
from curation.runs.engine.group_commit import GroupCommit
from curation.runs.kinds import MOST_TRIES, ItemFailed
from curation.runs.models import Item, Run
from curation.web.telemetry import Span
from curation.web.text.storable import storable

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
# How long an item waits while its calls get 429s, which do not count as tries.
RATE_LIMIT_SECONDS = 15 * 60.0
BUDGET_PAUSE = 0.2


class Shard(Protocol):
    """What `ask` needs from the shard that works on the item."""

    run: Run
    commit: GroupCommit

    def limiter(self, target: Target) -> EndpointLimiter: ...

    def client(self, target: Target) -> Client: ...


async def ask(
    shard: Shard,
    *,
    item: Item,
    target: Target,
    request: Request,
    instructions_hash: str = "",
    fresh: bool = False,
    tries: int = MOST_TRIES,
) -> Answered:
    """Return the answer from the record or from the endpoint, or raise `ItemFailed` with the reason.

    A `fresh` answer never comes from another item. The item's own record counts, so a crash pays nothing twice.
    """
    opening = OpenCall(shard.run, item, target, request, request.content_hash(target), instructions_hash, fresh)
    if shard.limiter(target).is_busy and (recorded := await shard.commit(FindAnswer(opening))):
        return recorded
    deadline = time.monotonic() + RATE_LIMIT_SECONDS
    tried = 0
    while True:
        try:
            return await _try(shard, opening)
        except BudgetHeld:
            await asyncio.sleep(BUDGET_PAUSE)
        except RateLimited as limited:
            if time.monotonic() > deadline or tries == 1:
                raise ItemFailed(f"{target.name} is rate limited: {limited}") from limited
            await asyncio.sleep(_pause(1, limited.retry_after))
        except Transient as failure:
            tried += 1
            if tried >= tries:
                times = f" (tried {tried} times)" if tried > 1 else ""
                raise ItemFailed(f"{target.name}: {failure}{times}") from failure
            await asyncio.sleep(_pause(tried, failure.retry_after))
        except CallError as failure:
            raise ItemFailed(f"{target.name}: {failure}") from failure


async def _try(shard: Shard, opening: OpenCall) -> Answered:
    """Make one call, recorded before it is sent and when it has ended. Raises the `CallError` that it ended in.

    `OpenCall` looks for a recorded answer too: while nothing has to wait, that saves a transaction.
    """
    run_id, target, request = opening.run.pk, opening.target, opening.request
    limiter, client = shard.limiter(target), shard.client(target)
    async with limiter.turn(_estimated_tokens(request)) as turn:
        opened = await shard.commit(opening)
        if isinstance(opened, BudgetHeld | BudgetSpent):
            raise opened
        if isinstance(opened, Answered):
            return opened
        started = time.perf_counter()
        try:
            async with turn.slot():
                started = time.perf_counter()
                with Span("model call", endpoint=target.name, model=target.model):
                    completion = _storable(await client.complete(target, request))
        except CallError as error:
            if isinstance(error, RateLimited):
                limiter.record_rate_limit(error.retry_after)
            latency_ms = round((time.perf_counter() - started) * 1000)
            await shard.commit(partial(fail_call, run_id, opened, error, latency_ms))
            raise
        limiter.record_success()
        turn.tokens = (completion.tokens_in or 0) + (completion.tokens_out or 0)
        await shard.commit(CloseCall(run_id, opened, completion))
        return Answered(completion, opened, cached=False)


def _pause(tried: int, retry_after: float | None) -> float:
    """Return the seconds to wait: doubling, with jitter, and at least as long as the server asked for."""
    jitter = random.uniform(0.5, 1.0)  # noqa: S311 - spreads retries, not a secret
    pause: float = min(LONGEST_PAUSE, FIRST_PAUSE * 2**tried) * jitter
    return max(pause, retry_after or 0.0)


def _estimated_tokens(request: Request) -> int:
    return sum(len(str(message.get("content") or "")) for message in request.messages) // 4


def _storable(completion: Completion) -> Completion:
    return replace(completion, text=storable(completion.text), thinking=storable(completion.thinking))
