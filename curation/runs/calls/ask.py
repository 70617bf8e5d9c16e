"""Asking a model: the request cache, the record of every call, retries, the endpoint's pace."""

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
from curation.web.text.storable import storable

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
# How long an item waits through a storm of 429s, which do not count as tries.
PATIENCE_SECONDS = 15 * 60.0
BUDGET_PAUSE = 0.2


class Asking(Protocol):
    """What asking needs from the shard that drives the item."""

    run: Run
    commit: GroupCommit

    def limiter(self, target: Target) -> EndpointLimiter: ...

    def client(self, target: Target) -> Client: ...


async def ask(
    asking: Asking,
    *,
    item: Item,
    target: Target,
    request: Request,
    instructions_hash: str = "",
    fresh: bool = False,
    tries: int = MOST_TRIES,
) -> Answered:
    """The answer from the record or from the endpoint; raises `ItemFailed` with the reason when there is none.

    A `fresh` answer comes from no other item; the item's own record counts, so that a crash pays for nothing twice.
    """
    opening = OpenCall(asking.run, item, target, request, request.content_hash(target), instructions_hash, fresh)
    if asking.limiter(target).is_busy and (kept := await asking.commit(FindAnswer(opening))):
        return kept
    deadline = time.monotonic() + PATIENCE_SECONDS
    tried = 0
    while True:
        try:
            return await _try(asking, opening)
        except BudgetHeld:
            await asyncio.sleep(BUDGET_PAUSE)
        except RateLimited as limited:
            if time.monotonic() > deadline or tries == 1:
                raise ItemFailed(f"{target.name} is rate limited: {limited}") from limited
            await asyncio.sleep(_pause(1, limited.retry_after))
        except Transient as failure:
            tried += 1
            if tried >= tries:
                often = f" (tried {tried} times)" if tried > 1 else ""
                raise ItemFailed(f"{target.name}: {failure}{often}") from failure
            await asyncio.sleep(_pause(tried, failure.retry_after))
        except CallError as failure:
            raise ItemFailed(f"{target.name}: {failure}") from failure


async def _try(asking: Asking, opening: OpenCall) -> Answered:
    """One call, recorded before it leaves and when it has ended; raises the `CallError` that it ended in.

    The record is asked in the transaction that the call is opened in: that saves one where nothing has to wait.
    """
    run_id, target, request = opening.run.pk, opening.target, opening.request
    limiter, client = asking.limiter(target), asking.client(target)
    async with limiter.turn(_estimated_tokens(request)) as turn:
        opened = await asking.commit(opening)
        if isinstance(opened, BudgetHeld | BudgetSpent):
            raise opened
        if isinstance(opened, Answered):
            return opened
        started = time.perf_counter()
        try:
            async with turn.slot():
                started = time.perf_counter()
                completion = _recordable(await client.complete(target, request))
        except CallError as error:
            if isinstance(error, RateLimited):
                limiter.rate_limited(error.retry_after)
            latency_ms = round((time.perf_counter() - started) * 1000)
            await asking.commit(partial(fail_call, run_id, opened, error, latency_ms))
            raise
        limiter.went_well()
        turn.tokens = (completion.tokens_in or 0) + (completion.tokens_out or 0)
        await asking.commit(CloseCall(run_id, opened, completion))
        return Answered(completion, opened, cached=False)


def _pause(tried: int, retry_after: float | None) -> float:
    """Seconds to wait: doubling with full jitter, never less than the server asked for."""
    jitter = random.uniform(0.5, 1.0)  # noqa: S311 - spreads retries, guards nothing
    pause: float = min(LONGEST_PAUSE, FIRST_PAUSE * 2**tried) * jitter
    return max(pause, retry_after or 0.0)


def _estimated_tokens(request: Request) -> int:
    return sum(len(str(message.get("content") or "")) for message in request.messages) // 4


def _recordable(said: Completion) -> Completion:
    return replace(said, text=storable(said.text), thinking=storable(said.thinking))
