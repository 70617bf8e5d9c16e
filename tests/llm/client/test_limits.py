"""Slots, requests and tokens per minute, storms: what all workers share of one endpoint."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection
from pytest_django import DjangoAssertNumQueries

from curation.llm.client import pace
from curation.llm.client.completion import EndpointTarget
from curation.llm.client.errors import Misconfigured
from curation.llm.client.gateway import target_of
from curation.llm.client.limits import RENEWALS_REMEMBERED, EndpointLimiter
from curation.llm.client.pace import SILENT_AFTER, PaceShare, RequestSlots, ReturnSlots, correct, reserve
from curation.llm.models import Endpoint, EndpointPace, EndpointShare
from tests.factories import make_endpoint, make_project

CAP = 8


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[float], None]]:
    """Time stands still; `clock(seconds)` moves it on."""
    now = [1_800_000_000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    monkeypatch.setattr(pace, "database_seconds", lambda: now[0])

    def move(seconds: float) -> None:
        now[0] += seconds

    yield move


def make_target(**values: Any) -> EndpointTarget:
    return target_of(make_endpoint(make_project(), "m", **{"max_concurrency": CAP, **values}))


def share(target: EndpointTarget, holder: str, wanted: int = CAP, in_use: int = 0, cap: int = CAP) -> int:
    return asked(RequestSlots(target.endpoint_id, holder, wanted, in_use, cap)).slots


def asked(wish: RequestSlots) -> PaceShare:
    given = wish()
    assert given
    return given


def granted(target: EndpointTarget) -> int:
    return sum(EndpointShare.objects.filter(endpoint_id=target.endpoint_id).values_list("granted", flat=True))


@pytest.mark.django_db
def test_one_worker_gets_all_slots_and_a_second_its_fair_part_as_they_come_free() -> None:
    target = make_target()
    assert share(target, "a") == CAP
    assert share(target, "b") == 0  # all are in use
    assert share(target, "a", in_use=CAP) == CAP // 2  # the first hears that another waits
    assert granted(target) == CAP  # but its slots in use stay counted
    assert share(target, "b") == 0
    share(target, "a", in_use=CAP // 2)
    assert share(target, "b") == CAP // 2
    assert granted(target) == CAP


@pytest.mark.django_db
def test_slots_that_one_worker_does_not_want_are_there_for_the_others() -> None:
    target = make_target()
    share(target, "a", wanted=2)
    assert share(target, "b") == CAP - 2


@pytest.mark.django_db
def test_what_a_worker_gives_back_or_a_dead_one_held_is_free_again(clock: Callable[[float], None]) -> None:
    target = make_target()
    share(target, "a")
    ReturnSlots(target.endpoint_id, "a")()
    assert share(target, "b") == CAP
    clock(SILENT_AFTER + 1)
    assert share(target, "c") == CAP


@pytest.mark.django_db
@pytest.mark.parametrize("rpm", [7, 60, pytest.param(600, marks=pytest.mark.slow)])
def test_no_minute_holds_more_requests_than_allowed(rpm: int, clock: Callable[[float], None]) -> None:
    target = make_target(rpm=rpm)
    now = time.time()
    starts = [now + reserve(target=target, tokens=0) for _ in range(3 * rpm)]
    for first in starts:
        assert sum(first <= start < first + 60 for start in starts) <= rpm
    assert starts[-1] - now < 3 * 63  # and the limit is used


@pytest.mark.django_db
def test_no_minute_holds_more_tokens_than_allowed(clock: Callable[[float], None]) -> None:
    target = make_target(tpm=10_000)
    now = time.time()
    starts = [now + reserve(target=target, tokens=500) for _ in range(60)]
    for first in starts:
        assert sum(500 for start in starts if first <= start < first + 60) <= 10_000


@pytest.mark.django_db
def test_answers_longer_than_expected_hold_the_next_ones_back(clock: Callable[[float], None]) -> None:
    target = make_target(tpm=6_000)
    assert reserve(target=target, tokens=100) == 0
    correct(target=target, tokens=5_900)
    assert reserve(target=target, tokens=100) > 55


@pytest.mark.django_db
def test_a_storm_that_one_worker_met_holds_all_back(clock: Callable[[float], None]) -> None:
    target = make_target()
    until = time.time() + 30
    asked(RequestSlots(target.endpoint_id, "a", 1, 1, CAP, cooldown_until=until))
    other = asked(RequestSlots(target.endpoint_id, "b", 1, 0, CAP))
    assert other.cooldown_until == until
    assert reserve(target=target, tokens=1) == pytest.approx(30)


class AtOnce:
    """Commits on the spot, in a thread, one after the other; `pause` holds the next one."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.asked = 0

    async def __call__(self, work: Callable[[], Any], *, rank: int = 0) -> Any:
        self.asked += 1
        async with self.lock:
            return await asyncio.to_thread(closing, work)


def closing(work: Callable[[], Any]) -> Any:
    from django.db import connection

    try:
        return work()
    finally:
        connection.close()


class Holders:
    """Counts simultaneous holders."""

    def __init__(self) -> None:
        self.now = self.most = self.ever = 0

    @contextmanager
    def inside(self) -> Iterator[None]:
        self.now += 1
        self.ever += 1
        self.most = max(self.most, self.now)
        yield
        self.now -= 1


async def use(limiter: EndpointLimiter, holders: Holders, seconds: float = 0.01) -> None:
    async with limiter.turn(1) as turn, turn.slot():
        with holders.inside():
            await asyncio.sleep(seconds)


async def renewing(*limiters: EndpointLimiter) -> None:
    while True:
        for limiter in limiters:
            await limiter.renew()
        await asyncio.sleep(0.02)


def run(work: Callable[[], Coroutine[None, None, None]]) -> None:
    asyncio.run(asyncio.wait_for(work(), timeout=30))


@pytest.mark.django_db(transaction=True)
def test_two_workers_together_never_have_more_slots_than_the_endpoint() -> None:
    target = make_target()
    holders = Holders()

    async def work() -> None:
        limiters = [EndpointLimiter(target, name, AtOnce()) for name in ("a", "b")]
        shares = asyncio.create_task(renewing(*limiters))
        await asyncio.gather(*(use(limiters[n % 2], holders) for n in range(200)))
        # One has nothing to do for a while and gives way; then both want all again.
        await asyncio.gather(*(use(limiters[0], holders) for _ in range(100)))
        await asyncio.gather(*(use(limiters[n % 2], holders) for n in range(100)))
        shares.cancel()

    run(work)
    assert (holders.ever, holders.most) == (400, CAP)


@pytest.mark.django_db(transaction=True)
def test_calls_leave_while_a_share_is_renewed_and_renewals_take_turns() -> None:
    target, holders = make_target(), Holders()

    async def work() -> None:
        commit = AtOnce()
        limiter = EndpointLimiter(target, "a", commit)
        calls = [asyncio.create_task(use(limiter, holders, seconds=0.1)) for _ in range(3 * CAP)]
        while holders.now < CAP:
            await asyncio.sleep(0.01)
        async with commit.lock:  # the database is slow to answer
            renewals = [asyncio.create_task(limiter.renew()) for _ in range(2)]
            await asyncio.gather(*calls)
            assert (holders.ever, holders.most, commit.asked) == (3 * CAP, CAP, 2), "one of the renewals has asked"
        await asyncio.gather(*renewals)
        assert commit.asked == 3

    run(work)


@pytest.mark.django_db(transaction=True)
def test_slots_that_were_used_lately_are_kept_for_calls_that_come_back_and_given_up_after_a_while() -> None:
    target, holders = make_target(), Holders()

    async def work() -> None:
        limiter = EndpointLimiter(target, "a", AtOnce())
        await asyncio.gather(*(use(limiter, holders, seconds=0.1) for _ in range(CAP)))
        await limiter.renew()  # nobody asks at this moment: the answers are being acted on
        await asyncio.gather(*(use(limiter, holders, seconds=0.1) for _ in range(CAP)))
        for _ in range(RENEWALS_REMEMBERED + 1):
            await limiter.renew()

    run(work)
    assert holders.most == CAP
    assert share(target, "b") == CAP, "a worker without work keeps nothing from the others"


@pytest.mark.django_db
def test_wishes_for_many_endpoints_take_no_more_queries_than_one(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    project = make_project()
    targets = [target_of(make_endpoint(project, f"m{n}", max_concurrency=CAP)) for n in range(5)]
    wishes = [RequestSlots(target.endpoint_id, "a", 3, 0, CAP) for target in targets]
    for target in targets[:2]:
        share(target, "b", wanted=CAP - 1)
    RequestSlots.together(wishes)
    Endpoint.objects.get(pk=targets[4].endpoint_id).delete()
    clock = int(connection.vendor == "postgresql")
    with django_assert_num_queries(4 + clock):  # paces, the endpoint that has none, others' shares, ours
        given = RequestSlots.together(wishes)
    assert [one and one.slots for one in given] == [1, 1, 3, 3, None]
    with django_assert_num_queries(1 + clock):
        ReturnSlots.together([ReturnSlots(target.endpoint_id, "a") for target in targets])
    assert set(EndpointShare.objects.values_list("holder", flat=True)) == {"b"}


@pytest.mark.django_db(transaction=True)
def test_whoever_stops_waiting_leaves_no_slot_behind() -> None:
    target = make_target(max_concurrency=1)
    holders = Holders()

    async def work() -> None:
        limiter = EndpointLimiter(target, "a", AtOnce())
        async with limiter.turn(1) as turn, turn.slot():
            waiting = [asyncio.create_task(use(limiter, holders)) for _ in range(5)]
            while len(limiter._waiting) < 2:  # two are next, the others wait for their turn
                await asyncio.sleep(0)
            for task in waiting[:3]:
                task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await use(limiter, holders)

    run(work)
    assert (holders.ever, holders.most, holders.now) == (3, 1, 0)


@pytest.mark.django_db(transaction=True)
def test_a_storm_slows_the_worker_and_good_answers_bring_it_back() -> None:
    target = make_target()

    async def work() -> None:
        limiter = EndpointLimiter(target, "a", AtOnce())
        await limiter.renew(eager=True)
        limiter.record_rate_limit(None)
        assert limiter._ceiling == CAP  # a single 429 is its own call's matter
        for _ in range(8):
            limiter.record_rate_limit(3.0)
        assert limiter._ceiling == CAP / 2
        await limiter.renew()
        for _ in range(200):
            limiter.record_success()
        assert limiter._ceiling == CAP

    run(work)
    assert EndpointPace.objects.get(pk=target.endpoint_id).cooldown_until > time.time() + 2


@pytest.mark.django_db(transaction=True)
def test_those_who_wait_for_an_endpoint_that_was_deleted_are_told() -> None:
    target = make_target(max_concurrency=1)
    told: list[BaseException | None] = []

    async def work() -> None:
        limiter = EndpointLimiter(target, "a", AtOnce())
        async with limiter.turn(1) as turn, turn.slot():
            waiting = [asyncio.create_task(use(limiter, Holders())) for _ in range(3)]
            await asyncio.to_thread(closing, Endpoint.objects.filter(pk=target.endpoint_id).delete)
            await limiter.renew()
            told.extend(await asyncio.gather(*waiting, return_exceptions=True))

    run(work)
    assert [type(one) for one in told] == [Misconfigured] * 3
