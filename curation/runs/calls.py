"""Asking a model: the request cache, the record of every call, retries, the endpoint's pace."""

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

from django.db.models import F

from curation.llm.completion import Client, Completion, Request, Target
from curation.llm.errors import CallError, RateLimited, Transient
from curation.llm.limits import EndpointLimiter
from curation.runs.budget import Budget
from curation.runs.group_commit import GroupCommit
from curation.runs.kinds import ItemFailed
from curation.runs.models import Call, CallStatus, CallText, Item, Run

MOST_TRIES = 6
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
# How long an item waits through a storm of 429s, which do not count as tries.
PATIENCE_SECONDS = 15 * 60.0


@dataclass(frozen=True, slots=True)
class Answered:
    """A model's answer and the row that records it; `cached` where the record already had it."""

    completion: Completion
    call_id: int
    cached: bool


class Asking(Protocol):
    """What asking needs from the shard that drives the item."""

    run: Run
    commit: GroupCommit
    budget: Budget

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
    """The answer from the record or from the endpoint; raises `ItemFailed` with the reason when there is none."""
    limiter, client = asking.limiter(target), asking.client(target)
    size = sum(len(str(m.get("content") or "")) for m in request.messages) // 4
    deadline = time.monotonic() + PATIENCE_SECONDS
    tried = 0
    while True:
        async with limiter.slot(size), asking.budget.room_for(target, request, size):
            opened = await asking.commit(_open_call(asking.run, item, target, request, instructions_hash, fresh))
            if isinstance(opened, Answered):
                return opened
            try:
                completion = await client.complete(target, request)
            except CallError as error:
                failure = error
                await asking.commit(_fail_call(asking.run.pk, opened, failure))
            else:
                limiter.went_well()
                await asking.commit(_close_call(asking.run.pk, opened, completion))
                return Answered(completion, opened, cached=False)
        if isinstance(failure, RateLimited):
            limiter.rate_limited(failure.retry_after)
            if time.monotonic() > deadline or tries == 1:
                raise ItemFailed(f"{target.name} is rate limited: {failure}")
            await asyncio.sleep(_pause(1, failure.retry_after))
            continue
        tried += 1
        if not isinstance(failure, Transient):
            raise ItemFailed(f"{target.name}: {failure}") from failure
        if tried >= tries:
            often = f" (tried {tried} times)" if tried > 1 else ""
            raise ItemFailed(f"{target.name}: {failure}{often}") from failure
        await asyncio.sleep(_pause(tried, failure.retry_after))


def _pause(tried: int, retry_after: float | None) -> float:
    """Seconds to wait: doubling with full jitter, never less than the server asked for."""
    jitter = random.uniform(0.5, 1.0)  # noqa: S311 - spreads retries, guards nothing
    pause: float = min(LONGEST_PAUSE, FIRST_PAUSE * 2**tried) * jitter
    return max(pause, retry_after or 0.0)


def _open_call(
    run: Run, item: Item, target: Target, request: Request, instructions_hash: str, fresh: bool
) -> Callable[[], Answered | int]:
    digest = request.content_hash(target)

    def write() -> Answered | int:
        if not fresh:
            kept = CallText.objects.select_related("call").filter(
                call__project_id=run.project_id, call__content_hash=digest, call__status=CallStatus.OK
            )
            if found := kept.order_by("-call_id").first():
                return Answered(_kept_completion(found), found.call_id, cached=True)
        row = Call.objects.create(
            project_id=run.project_id,
            run=run,
            item=item,
            endpoint_id=target.endpoint_id,
            endpoint_name=target.name,
            content_hash=digest,
            instructions_hash=instructions_hash,
            params={**target.params, **request.params},
            attempt=request.attempt,
        )
        return row.pk

    return write


def _kept_completion(kept: CallText) -> Completion:
    call = kept.call
    return Completion(
        text=kept.text,
        thinking=kept.thinking,
        finish_reason=call.finish_reason,
        tokens_in=call.tokens_in,
        tokens_out=call.tokens_out,
        tokens_cached=call.tokens_cached,
        cost=call.cost,
        latency_ms=call.latency_ms or 0,
    )


def _close_call(run_id: int, call_id: int, said: Completion) -> Callable[[], None]:
    def write() -> None:
        Call.objects.filter(pk=call_id).update(
            status=CallStatus.OK,
            finish_reason=said.finish_reason[:30],
            tokens_in=said.tokens_in,
            tokens_out=said.tokens_out,
            tokens_cached=said.tokens_cached,
            cost=said.cost,
            latency_ms=said.latency_ms,
        )
        CallText.objects.create(call_id=call_id, text=said.text, thinking=said.thinking)
        _count(run_id, said.tokens_in, said.tokens_out, said.cost)

    return write


def _fail_call(run_id: int, call_id: int, error: CallError) -> Callable[[], None]:
    """A refused request costs nothing; one that broke off or timed out may have been paid for, which nobody knows."""
    cost = None if isinstance(error, Transient) else Decimal(0)

    def write() -> None:
        Call.objects.filter(pk=call_id).update(
            status=CallStatus.ERROR, error_kind=error.kind, error=str(error)[:2000], cost=cost
        )
        _count(run_id, 0, 0, cost)

    return write


def _count(run_id: int, tokens_in: int | None, tokens_out: int | None, cost: Decimal | None) -> None:
    changes = {"calls": F("calls") + 1}
    if tokens_in:
        changes["tokens_in"] = F("tokens_in") + tokens_in
    if tokens_out:
        changes["tokens_out"] = F("tokens_out") + tokens_out
    if cost is None:
        changes["cost_unknown_calls"] = F("cost_unknown_calls") + 1
    elif cost:
        changes["cost"] = F("cost") + cost
    Run.objects.filter(pk=run_id).update(**changes)
