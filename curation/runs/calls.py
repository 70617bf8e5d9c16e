"""Asking a model: the request cache, the record of every call, retries, the endpoint's pace."""

import asyncio
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Protocol

from django.db import connection

from curation.llm.completion import Client, Completion, Request, Target
from curation.llm.errors import CallError, RateLimited, Transient
from curation.llm.limits import EndpointLimiter
from curation.runs.budget import BudgetHeld, BudgetSpent, reserve_cost
from curation.runs.counters import Counted, count
from curation.runs.group_commit import GroupCommit
from curation.runs.kinds import ItemFailed
from curation.runs.models import Call, CallStatus, CallText, Item, Run
from curation.web.text import storable

MOST_TRIES = 6
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
# How long an item waits through a storm of 429s, which do not count as tries.
PATIENCE_SECONDS = 15 * 60.0
BUDGET_PAUSE = 0.2
# Asked before every call, so it is written out: Django takes ten times as long to put this query together as the
# database takes to answer it.
NEWEST_ANSWER = (
    "SELECT id FROM runs_call WHERE project_id = %s AND content_hash = %s AND status = 'ok' ORDER BY id DESC LIMIT 1"
)


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
    digest = request.content_hash(target)
    if kept := await asking.commit(lambda: _kept_answer(asking.run, item, digest, fresh)):
        return kept
    deadline = time.monotonic() + PATIENCE_SECONDS
    tried = 0
    while True:
        try:
            return await _try(asking, item, target, request, digest, instructions_hash)
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


async def _try(
    asking: Asking, item: Item, target: Target, request: Request, digest: str, instructions_hash: str
) -> Answered:
    """One call, recorded before it leaves and when it has ended; raises the `CallError` that it ended in."""
    limiter, client = asking.limiter(target), asking.client(target)
    async with limiter.turn(_estimated_tokens(request)) as turn:
        call_id = await asking.commit(_open_call(asking.run, item, target, request, digest, instructions_hash))
        if isinstance(call_id, BudgetHeld | BudgetSpent):
            raise call_id
        started = time.perf_counter()
        try:
            async with turn.slot():
                started = time.perf_counter()
                completion = _recordable(await client.complete(target, request))
        except CallError as error:
            if isinstance(error, RateLimited):
                limiter.rate_limited(error.retry_after)
            latency_ms = round((time.perf_counter() - started) * 1000)
            await asking.commit(_fail_call(asking.run.pk, call_id, error, latency_ms))
            raise
        limiter.went_well()
        turn.tokens = (completion.tokens_in or 0) + (completion.tokens_out or 0)
        await asking.commit(_close_call(asking.run.pk, call_id, completion))
        return Answered(completion, call_id, cached=False)


def _pause(tried: int, retry_after: float | None) -> float:
    """Seconds to wait: doubling with full jitter, never less than the server asked for."""
    jitter = random.uniform(0.5, 1.0)  # noqa: S311 - spreads retries, guards nothing
    pause: float = min(LONGEST_PAUSE, FIRST_PAUSE * 2**tried) * jitter
    return max(pause, retry_after or 0.0)


def _estimated_tokens(request: Request) -> int:
    return sum(len(str(message.get("content") or "")) for message in request.messages) // 4


def _recordable(said: Completion) -> Completion:
    return replace(said, text=storable(said.text), thinking=storable(said.thinking))


def _kept_answer(run: Run, item: Item, digest: str, fresh: bool) -> Answered | None:
    """The newest recorded answer to the same request; failures are never taken from the record."""
    with connection.cursor() as cursor:
        cursor.execute(NEWEST_ANSWER, [run.project_id, digest])
        newest = cursor.fetchone()
    if newest is None:
        return None
    kept = CallText.objects.select_related("call").get(pk=newest[0])
    if fresh and kept.call.item_id != item.pk:
        return None
    if item.anew_after is not None and kept.call_id <= item.anew_after:
        return None
    return Answered(_kept_completion(kept), kept.call_id, cached=True)


def _open_call(
    run: Run, item: Item, target: Target, request: Request, digest: str, instructions_hash: str
) -> Callable[[], int | BudgetHeld | BudgetSpent]:
    def write() -> int | BudgetHeld | BudgetSpent:
        reserved = reserve_cost(run.pk, target, request) if run.budget is not None else None
        if isinstance(reserved, BudgetHeld | BudgetSpent):
            return reserved
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
            reserved=reserved,
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
        answer = {
            "status": CallStatus.OK,
            "error": "",
            "finish_reason": storable(said.finish_reason)[:30],
            "tokens_in": said.tokens_in,
            "tokens_out": said.tokens_out,
            "tokens_cached": said.tokens_cached,
            "cost": said.cost,
            "latency_ms": said.latency_ms,
        }
        counted = {"tokens_in": said.tokens_in or 0, "tokens_out": said.tokens_out or 0, "cost": said.cost or 0}
        if _settle(run_id, call_id, answer, counted):
            CallText.objects.create(call_id=call_id, text=said.text, thinking=said.thinking)

    return write


def _fail_call(run_id: int, call_id: int, error: CallError, latency_ms: int) -> Callable[[], None]:
    """A refused request costs nothing; one that broke off or timed out may have been paid for, which nobody knows."""
    cost = None if isinstance(error, Transient) else Decimal(0)

    def write() -> None:
        end = {"error_kind": error.kind, "error": storable(str(error))[:2000], "cost": cost, "latency_ms": latency_ms}
        _settle(run_id, call_id, {"status": CallStatus.ERROR, **end}, {})

    return write


def _settle(run_id: int, call_id: int, end: Mapping[str, object], counted: Counted) -> bool:
    """Writes how the call ended and counts it, once: it may have been given up as lost while its worker was slow."""
    unknown = int(end["cost"] is None)
    if Call.objects.filter(pk=call_id, status=CallStatus.SENT).update(**end) == 1:
        count(run_id, {**counted, "calls": 1, "cost_unknown_calls": unknown})
    elif Call.objects.filter(pk=call_id, status=CallStatus.LOST).update(**end) == 1:
        count(run_id, {**counted, "cost_unknown_calls": unknown - 1})
    else:
        return False
    return True


def lose_calls(item_ids: Sequence[int], why: str) -> None:
    """Ends the items' calls that are under way without an answer; they may have been paid for. Needs a transaction
    that holds the run."""
    lost = Call.objects.filter(item_id__in=item_ids, status=CallStatus.SENT)
    for run_id in set(lost.values_list("run_id", flat=True)):
        number = lost.filter(run_id=run_id).update(status=CallStatus.LOST, error=why)
        count(run_id, {"calls": number, "cost_unknown_calls": number})
