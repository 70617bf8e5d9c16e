"""The queue: how much is left to decide, and the next sample for a reviewer."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from django.db import transaction
from django.db.models import Exists, Max, Min, OuterRef, QuerySet, Subquery
from django.utils import timezone

from curation.projects.access import Access
from curation.projects.models import Project
from curation.review.models import Action, Decision, Lease
from curation.review.queue.lease import Held, claim
from curation.samples.models import Sample, SampleQuerySet, Status
from curation.web.prepared import Prepared

COUNTED_UP_TO = 10_000
# Each round that finds a sample just taken by another means that the other got one: somebody always moves on.
ROUNDS = 200

Order = Literal["borderline", "newest", "random"]
Narrow = Callable[[SampleQuerySet], SampleQuerySet]


@dataclass(frozen=True, slots=True)
class Taken:
    """A sample that the caller now holds. `skipped_before`: the caller passed it over earlier and it came round."""

    sample: Sample
    held: Held
    skipped_before: bool


def open_count(project: Project) -> int:
    """Undecided samples, counted by index up to `COUNTED_UP_TO`; a page shows more as "10,000+"."""
    return Sample.objects.of(project).filter(status=Status.PENDING).order_by()[:COUNTED_UP_TO].count()


def take_next(
    *, access: Access, order: Order = "borderline", narrow: Narrow | None = None, resume: bool = False
) -> Taken | None:
    """Claims the next undecided sample that nobody holds, in one transaction; None when there is none.

    What the caller skipped or flagged comes after all else, the longest ago first. With `resume` the caller's own live
    lease is given back before anything new, so that reloading a page shows the same sample again.
    """
    rows = Sample.objects.of(access.project).filter(status=Status.PENDING)
    if narrow is not None:
        rows = narrow(rows)
    plain = narrow is None and order == "borderline"
    with transaction.atomic():
        claimed = (_open_already(rows, access) if resume else None) or _claim_first(rows, access, order, plain=plain)
    if claimed is None:
        return None
    # The whole row is read after the locks are gone: on SQLite everyone who writes waits for this transaction.
    held, skipped = claimed
    sample = _shown.first(sample=held.sample_id)
    return None if sample is None else Taken(sample, held, skipped)


def _claim_first(rows: SampleQuerySet, access: Access, order: Order, *, plain: bool) -> tuple[Held, bool] | None:
    for _ in range(ROUNDS):
        found, skipped = _first(rows, access, order, plain=plain)
        if found is None:
            return None
        held = claim(found, access)
        if held is not None:
            return held, skipped
    return None


def _open_already(rows: SampleQuerySet, access: Access) -> tuple[Held, bool] | None:
    own = Lease.objects.filter(reviewer=access.user, until__gt=timezone.now())
    sample_id = own.filter(sample__in=rows).order_by("-created_at").values_list("sample_id", flat=True).first()
    if sample_id is None:
        return None
    found = rows.select_for_update(of=("self",)).filter(pk=sample_id).first()
    held = claim(found, access) if found else None
    return (held, False) if held else None


def _first(rows: SampleQuerySet, access: Access, order: Order, *, plain: bool) -> tuple[Sample | None, bool]:
    """The first free sample in this order, locked, and whether it is one that the caller had skipped.

    `plain`: `rows` are all that is undecided and the order is the usual one, which is what nearly every call asks.
    """
    if plain:
        fresh = _next_plain.first(project=access.project.pk, reviewer=access.user.pk, now=timezone.now())
        if fresh is not None:
            return fresh, False
    free, skips = _free(rows, timezone.now()), _skips(access.user.pk)
    if not plain:
        fresh = _in_order(free.filter(~Exists(skips)), access.project, order)
        if fresh is not None:
            return fresh, False
    last_skip = Subquery(skips.order_by("-id").values("id")[:1])
    return free.filter(Exists(skips)).order_by(last_skip).first(), True


def _free(rows: SampleQuerySet, now: datetime) -> SampleQuerySet:
    """The rows that nobody holds, to be locked by who reads them."""
    live = Lease.objects.filter(sample=OuterRef("pk"), until__gt=now)
    return rows.filter(~Exists(live)).only("id").select_for_update(skip_locked=True, of=("self",))


def _skips(reviewer: int) -> QuerySet[Decision]:
    return Decision.objects.filter(
        sample=OuterRef("pk"), reviewer=reviewer, action__in=(Action.SKIP, Action.FLAG), undone_by=None
    )


_next_plain = Prepared(
    lambda project, reviewer, now: (
        _free(Sample.objects.filter(project=project, status=Status.PENDING), now)
        .filter(~Exists(_skips(reviewer)))
        .order_by("priority", "id")[:1]
    ),
    project=int,
    reviewer=int,
    now=datetime,
)
_shown = Prepared(lambda sample: Sample.objects.for_list().filter(pk=sample)[:1], sample=int)


def _in_order(free: SampleQuerySet, project: Project, order: Order) -> Sample | None:
    if order == "newest":
        return free.order_by("-id").first()
    if order == "random":
        # A random place in the ids, then the next one there: no sorting of a million rows. Gaps make the sample after
        # a long one likelier, which nobody reviewing notices.
        ends = Sample.objects.of(project).aggregate(low=Min("id"), high=Max("id"))
        if ends["low"] is None:
            return None
        start = ends["low"] + secrets.randbelow(ends["high"] - ends["low"] + 1)
        return free.filter(id__gte=start).order_by("id").first() or free.order_by("id").first()
    return free.order_by("priority", "id").first()
