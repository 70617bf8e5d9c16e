"""One worker's view of an endpoint: who may call it next, and with how many others. What all workers share of it is in
`curation.llm.client.pace`."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Protocol, TypeVar

from curation.llm.client.completion import Target
from curation.llm.client.errors import Misconfigured
from curation.llm.client.pace import SILENT_AFTER, SlotsGivenBack, SlotsWanted, correct, reserve

T = TypeVar("T")
# How many renewals back the most turns are remembered that were wanted at once.
LATELY = 8
# Tokens that an answer is taken to have until the first ones came.
FIRST_ANSWER = 200.0
STORM_CALLS, STORM_SHARE, STORM_SECONDS = 6, 0.5, 3.0


class Commit(Protocol):
    """Runs database work off the event loop. Works of one transaction are done in the order of their `rank`, so that
    nobody who locks several endpoints waits in a circle."""

    def __call__(self, work: Callable[[], T], *, rank: int) -> Awaitable[T]: ...


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
        self._turns = self._most_turns = 0
        self._lately: deque[int] = deque(maxlen=LATELY)
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._recent: deque[tuple[float, bool]] = deque(maxlen=64)
        self._halved_at = 0.0
        self._answer_tokens = FIRST_ANSWER
        self._first = True
        self._deleted = False

    @property
    def is_busy(self) -> bool:
        """Whether a slot has to be waited for, or a turn is taken from a limit per minute. Before the first share came,
        which takes no longer than any other look into the database, it is not."""
        if self.target.rpm or self.target.tpm:
            return True
        return self._renewed_at > 0.0 and not self._free()

    @asynccontextmanager
    async def turn(self, tokens: int) -> AsyncIterator[Turn]:
        """Waits until it is next, and for the endpoint's pace; `tokens` is the prompt's size.

        With limits per minute the slot comes first: time spent waiting for it must not bunch up what was spread.
        """
        turn = Turn(self)
        self._turns += 1
        self._most_turns = max(self._most_turns, self._turns)
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
        """Asks for the slots that it could have used lately: an episode that works in its sandbox will be back at once.
        Tells of a storm that it met and hears of those that others met.

        One renewal at a time: an earlier answer that comes after a later question would let in more than were told.
        """
        async with self._renewing:
            cap = self.target.max_concurrency
            self._lately.append(self._most_turns)
            self._most_turns = self._turns
            demand = cap if eager else min(cap, max(self._lately))
            # Calls go on leaving while the database answers, as many as it gave: it is told that these are in use. A
            # share that was not renewed for long may have been given to others.
            is_ours = time.monotonic() - self._renewed_at < SILENT_AFTER / 2
            held = max(self._in_use, min(self._slots, demand) if is_ours else 0)
            self._slots, cooldown_until = held, self._cooldown_until
            asked = SlotsWanted(self.target.endpoint_id, self._holder, demand, held, cap, cooldown_until)
            share = await self._commit(asked, rank=self.target.endpoint_id)
            if share is None:
                self._deleted = True
            else:
                self._slots, self._renewed_at = share.slots, time.monotonic()
                self._cooldown_until = max(self._cooldown_until, share.cooldown_until)
            self._admit()

    async def give_back(self) -> None:
        back = SlotsGivenBack(self.target.endpoint_id, self._holder)
        await self._commit(back, rank=self.target.endpoint_id)

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
