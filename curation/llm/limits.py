"""What all workers share of an endpoint: its slots, its requests and tokens per minute, and its bad moments.

The database holds the shares, so that the limits hold for any number of workers on any broker.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar

from django.db import transaction

from curation.llm.completion import Target
from curation.llm.errors import Misconfigured
from curation.llm.models import Endpoint, EndpointPace, EndpointShare

T = TypeVar("T")
SILENT_AFTER = 10.0
BURST_SECONDS = 2.0
SLOWED_MINUTE = 60.0 + BURST_SECONDS
# Tokens that an answer is taken to have until the first ones came.
FIRST_ANSWER = 200.0
STORM_CALLS, STORM_SHARE, STORM_SECONDS = 6, 0.5, 3.0


class Commit(Protocol):
    """Runs database work off the event loop. Works of one transaction are done in the order of their `rank`, so that
    nobody who locks several endpoints waits in a circle."""

    def __call__(self, work: Callable[[], T], *, rank: int) -> Awaitable[T]: ...


@dataclass(frozen=True, slots=True)
class Share:
    """Slots this worker may use now, and until when (Unix seconds) a storm of 429s holds the endpoint back."""

    slots: int
    cooldown_until: float


def share_slots(
    *, endpoint_id: int, holder: str, wanted: int, in_use: int, cap: int, cooldown_until: float = 0.0
) -> Share:
    """Gives a worker as many of `cap` slots as are free, and no more than its fair part while others go short.

    What it still has in use stays counted until it is given back, so that all shares together never exceed `cap`.
    A `cooldown_until` (Unix seconds) that this worker was told by the endpoint holds for all.
    """
    now = time.time()
    with transaction.atomic():
        pace = _locked_pace(endpoint_id)
        if cooldown_until > pace.cooldown_until:
            pace.cooldown_until = cooldown_until
            pace.save(update_fields=["cooldown_until"])
        others = list(
            EndpointShare.objects.filter(endpoint_id=endpoint_id, seen_at__gt=now - SILENT_AFTER).exclude(holder=holder)
        )
        slots = min(wanted, max(0, cap - sum(other.granted for other in others)))
        if any(other.wanted > other.granted for other in others):
            slots = min(slots, max(1, cap // (len(others) + 1)))
        EndpointShare.objects.update_or_create(
            endpoint_id=endpoint_id,
            holder=holder,
            defaults={"wanted": wanted, "granted": max(in_use, slots), "seen_at": now},
        )
        return Share(slots, pace.cooldown_until)


def give_back_slots(*, endpoint_id: int, holder: str) -> None:
    now = time.time()
    EndpointShare.objects.filter(endpoint_id=endpoint_id, holder=holder).delete()
    EndpointShare.objects.filter(endpoint_id=endpoint_id, seen_at__lt=now - 60 * SILENT_AFTER).delete()


def reserve(*, target: Target, tokens: int) -> float:
    """Seconds to wait until one more request of `tokens` fits into `rpm` and `tpm`, and into a storm's pause.

    A leaky bucket per limit that lets `BURST_SECONDS` through at once and drips that much slower than the limit, so
    that no minute holds more than is allowed.
    """
    now = time.time()
    with transaction.atomic():
        pace = _locked_pace(target.endpoint_id)
        wait = max(0.0, pace.cooldown_until - now)
        if target.rpm:
            pace.requests_free_at, start = _drip(pace.requests_free_at, now, SLOWED_MINUTE / target.rpm)
            wait = max(wait, start - now)
        if target.tpm:
            pace.tokens_free_at, start = _drip(pace.tokens_free_at, now, SLOWED_MINUTE * tokens / target.tpm)
            wait = max(wait, start - now)
        pace.save(update_fields=["requests_free_at", "tokens_free_at"])
        return wait


def _drip(free_at: float, now: float, seconds: float) -> tuple[float, float]:
    """When the bucket is free again, and when this request of so many `seconds` may start."""
    start = max(free_at, min(now, now - BURST_SECONDS + seconds))
    return start + seconds, start


def correct(*, target: Target, tokens: int) -> None:
    """The request took so many `tokens` more (or, negative, fewer) than were reserved: later ones start later."""
    with transaction.atomic():
        pace = _locked_pace(target.endpoint_id)
        pace.tokens_free_at += SLOWED_MINUTE * tokens / (target.tpm or 1)
        pace.save(update_fields=["tokens_free_at"])


def _locked_pace(endpoint_id: int) -> EndpointPace:
    """The endpoint's pace row, locked; made on first use. `Endpoint.DoesNotExist` where the endpoint was deleted."""
    found = EndpointPace.objects.select_for_update().filter(pk=endpoint_id).first()
    if found is None:
        Endpoint.objects.select_for_update(no_key=True).get(pk=endpoint_id)
        found, _ = EndpointPace.objects.select_for_update().get_or_create(endpoint_id=endpoint_id)
    return found


class Turn:
    """One who is next at an endpoint: the call may be recorded, and leaves inside `async with turn.slot()`.

    Who asked says in `tokens` how many the request took; None where nobody knows.
    """

    def __init__(self, limiter: "EndpointLimiter") -> None:
        self.tokens: int | None = None
        self._limiter = limiter
        self._next, self._inside = False, False

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Holds one of the endpoint's slots. Raises `Misconfigured` where the endpoint was deleted."""
        try:
            await self.enter()
            yield
        finally:
            self.leave()

    async def wait(self) -> None:
        await self._limiter._next_up.acquire()
        self._next = True

    async def enter(self) -> None:
        if not self._inside:
            await self._limiter._take_place()
            self._inside = True
        self.give_way()

    def leave(self) -> None:
        if self._inside:
            self._inside = False
            self._limiter._leave()

    def give_way(self) -> None:
        if self._next:
            self._next = False
            self._limiter._next_up.release()


class EndpointLimiter:
    """One worker's view of one endpoint. Some are next, so that a call is on record when a slot becomes free:

    async with limiter.turn(tokens) as turn:
        …
        async with turn.slot():
            …
    """

    def __init__(self, target: Target, holder: str, commit: Commit) -> None:
        self.target = target
        self._holder = holder
        self._commit = commit
        self._in_use = 0
        self._slots = 0
        self._renewing = asyncio.Lock()
        self._renewed_at = 0.0
        self._next_up = asyncio.Semaphore(max(2, target.max_concurrency // 4))
        self._ceiling = float(target.max_concurrency)
        self._cooldown_until = 0.0
        self._turns = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._recent: deque[tuple[float, bool]] = deque(maxlen=64)
        self._halved_at = 0.0
        self._answer_tokens = FIRST_ANSWER
        self._first = True
        self._deleted = False

    @property
    def is_busy(self) -> bool:
        """Whether a turn has to be waited for, or is taken from a limit per minute. Before the first share came, which
        takes no longer than any other look into the database, it is not."""
        if self.target.rpm or self.target.tpm or self._next_up.locked():
            return True
        return self._renewed_at > 0.0 and not self._free()

    @asynccontextmanager
    async def turn(self, tokens: int) -> AsyncIterator[Turn]:
        """Waits until it is next, and for the endpoint's pace; `tokens` is the prompt's size.

        With limits per minute the slot comes first: time spent waiting for it must not bunch up what was spread.
        """
        turn = Turn(self)
        self._turns += 1
        try:
            if self._first:
                self._first = False
                await self.renew(eager=True)
            if self.target.rpm or self.target.tpm:
                await turn.enter()
            else:
                await turn.wait()
            reserved = tokens + round(self._answer_tokens)
            await self._keep_pace(reserved)
            yield turn
            if turn.tokens is not None:
                await self._correct(turn.tokens, prompt=tokens, reserved=reserved)
        finally:
            self._turns -= 1
            turn.leave()
            turn.give_way()

    async def renew(self, *, eager: bool = False) -> None:
        """Asks for the slots it could use now; tells of a storm that it met and hears of those that others met.

        One renewal at a time: an earlier answer that comes after a later question would let in more than were told.
        """
        async with self._renewing:
            cap = self.target.max_concurrency
            demand = cap if eager else min(cap, self._turns)
            # Calls go on leaving while the database answers, as many as it gave: it is told that these are in use. A
            # share that was not renewed for long may have been given to others.
            is_ours = time.monotonic() - self._renewed_at < SILENT_AFTER / 2
            held = max(self._in_use, min(self._slots, demand) if is_ours else 0)
            self._slots, cooldown_until = held, self._cooldown_until
            try:
                share = await self._commit(
                    lambda: share_slots(
                        endpoint_id=self.target.endpoint_id,
                        holder=self._holder,
                        wanted=demand,
                        in_use=held,
                        cap=cap,
                        cooldown_until=cooldown_until,
                    ),
                    rank=self.target.endpoint_id,
                )
            except Endpoint.DoesNotExist:
                self._deleted = True
            else:
                self._slots, self._renewed_at = share.slots, time.monotonic()
                self._cooldown_until = max(self._cooldown_until, share.cooldown_until)
            self._admit()

    async def give_back(self) -> None:
        await self._commit(
            lambda: give_back_slots(endpoint_id=self.target.endpoint_id, holder=self._holder),
            rank=self.target.endpoint_id,
        )

    def went_well(self) -> None:
        self._recent.append((time.monotonic(), False))
        self._ceiling = min(float(self.target.max_concurrency), self._ceiling + 1.0 / max(1.0, self._ceiling))

    def rate_limited(self, retry_after: float | None) -> None:
        """Single 429s delay their own call; a storm of them halves this worker's pace and pauses the endpoint."""
        now = time.monotonic()
        self._recent.append((now, True))
        lately = [limited for at, limited in self._recent if at > now - STORM_SECONDS]
        if len(lately) < min(STORM_CALLS, self.target.max_concurrency) or sum(lately) < STORM_SHARE * len(lately):
            return
        if now - self._halved_at > 1.0:
            self._halved_at = now
            self._ceiling = max(1.0, self._ceiling / 2)
        self._cooldown_until = max(self._cooldown_until, time.time() + (retry_after or 1.0))

    async def _take_place(self) -> None:
        if self._waiting or not self._free():
            place = asyncio.get_running_loop().create_future()
            self._waiting.append(place)
            self._admit()
            try:
                await place
            except asyncio.CancelledError:
                if place.done() and not place.cancelled():
                    self._leave()
                raise
        else:
            self._in_use += 1
        if self._deleted:
            self._leave()
            raise Misconfigured("the endpoint was deleted")

    def _free(self) -> bool:
        return self._deleted or self._in_use < min(self._slots, int(self._ceiling))

    def _admit(self) -> None:
        while self._waiting and self._free():
            place = self._waiting.popleft()
            if not place.done():
                self._in_use += 1
                place.set_result(None)

    def _leave(self) -> None:
        self._in_use -= 1
        self._admit()

    async def _keep_pace(self, tokens: int) -> None:
        pause = self._cooldown_until - time.time()
        if pause > 0:
            await asyncio.sleep(pause)
        if self.target.rpm or self.target.tpm:
            wait = await self._commit(lambda: reserve(target=self.target, tokens=tokens), rank=self.target.endpoint_id)
            if wait > 0:
                await asyncio.sleep(wait)

    async def _correct(self, used: int, *, prompt: int, reserved: int) -> None:
        """What the request really took goes into the pace, and into what the next ones are taken to answer with."""
        self._answer_tokens += 0.1 * (max(0, used - prompt) - self._answer_tokens)
        if self.target.tpm and used != reserved:
            more = used - reserved
            await self._commit(lambda: correct(target=self.target, tokens=more), rank=self.target.endpoint_id)
