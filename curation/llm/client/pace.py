"""What all workers share of an endpoint: its slots, its requests and tokens per minute, and its bad moments.

The database holds it, so that the limits hold for any number of workers on any broker. An endpoint's pace row is locked
first; who locks those of several takes them in the order of their ids.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Q

from curation.llm.client.completion import Target
from curation.llm.models import Endpoint, EndpointPace, EndpointShare

SILENT_AFTER = 10.0
BURST_SECONDS = 2.0
SLOWED_MINUTE = 60.0 + BURST_SECONDS


@dataclass(frozen=True, slots=True)
class Share:
    """Slots this worker may use now, and until when (Unix seconds) a storm of 429s holds the endpoint back."""

    slots: int
    cooldown_until: float


@dataclass(frozen=True, slots=True)
class SlotsWanted:
    """Gives a worker as many of `cap` slots as are free, and no more than its fair part while others go short; None
    where the endpoint was deleted.

    What it still has in use stays counted until it is given back, so that all shares together never exceed `cap`.
    A `cooldown_until` (Unix seconds) that this worker was told by the endpoint holds for all.
    """

    endpoint_id: int
    holder: str
    wanted: int
    in_use: int
    cap: int
    cooldown_until: float = 0.0

    def __call__(self) -> Share | None:
        with transaction.atomic():
            return self.together([self])[0]

    @classmethod
    def together(cls, wishes: Sequence["SlotsWanted"]) -> list[Share | None]:
        """Needs a transaction; the wishes are of one holder, each for an endpoint of its own."""
        now = time.time()
        paces = _locked_paces([wish.endpoint_id for wish in wishes])
        shares = EndpointShare.objects.filter(endpoint_id__in=paces, seen_at__gt=now - SILENT_AFTER)
        others: dict[int, list[EndpointShare]] = {endpoint_id: [] for endpoint_id in paces}
        for share in shares.exclude(holder=wishes[0].holder):
            others[share.endpoint_id].append(share)
        given = [
            wish._share(paces[wish.endpoint_id], others[wish.endpoint_id]) if wish.endpoint_id in paces else None
            for wish in wishes
        ]
        EndpointShare.objects.bulk_create(
            [
                EndpointShare(
                    endpoint_id=wish.endpoint_id,
                    holder=wish.holder,
                    wanted=wish.wanted,
                    granted=max(wish.in_use, share.slots),
                    seen_at=now,
                )
                for wish, share in zip(wishes, given, strict=True)
                if share
            ],
            update_conflicts=True,
            unique_fields=["endpoint", "holder"],
            update_fields=["wanted", "granted", "seen_at"],
        )
        return given

    def _share(self, pace: EndpointPace, others: Sequence[EndpointShare]) -> Share:
        if self.cooldown_until > pace.cooldown_until:
            pace.cooldown_until = self.cooldown_until
            pace.save(update_fields=["cooldown_until"])
        slots = min(self.wanted, max(0, self.cap - sum(other.granted for other in others)))
        if any(other.wanted > other.granted for other in others):
            slots = min(slots, max(1, self.cap // (len(others) + 1)))
        return Share(slots, pace.cooldown_until)


@dataclass(frozen=True, slots=True)
class SlotsGivenBack:
    """Ends a worker's share, and those of workers that are long gone."""

    endpoint_id: int
    holder: str

    def __call__(self) -> None:
        self.together([self])

    @classmethod
    def together(cls, shares: Sequence["SlotsGivenBack"]) -> list[None]:
        ids = [share.endpoint_id for share in shares]
        gone = Q(holder=shares[0].holder) | Q(seen_at__lt=time.time() - 60 * SILENT_AFTER)
        EndpointShare.objects.filter(gone, endpoint_id__in=ids).delete()
        return [None] * len(shares)


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
    """`Endpoint.DoesNotExist` where the endpoint was deleted."""
    paces = _locked_paces([endpoint_id])
    if not paces:
        raise Endpoint.DoesNotExist(f"endpoint {endpoint_id}")
    return paces[endpoint_id]


def _locked_paces(endpoint_ids: Sequence[int]) -> dict[int, EndpointPace]:
    """The endpoints' pace rows, locked; made on first use, and left out where the endpoint was deleted."""
    rows = EndpointPace.objects.select_for_update().filter(pk__in=endpoint_ids).order_by("pk")
    paces = {row.pk: row for row in rows}
    if missing := set(endpoint_ids) - set(paces):
        there = Endpoint.objects.select_for_update(no_key=True).filter(pk__in=missing).order_by("pk")
        for endpoint_id in there.values_list("pk", flat=True):
            paces[endpoint_id], _ = EndpointPace.objects.select_for_update().get_or_create(endpoint_id=endpoint_id)
    return paces
