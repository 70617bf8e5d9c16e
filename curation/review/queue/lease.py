"""Leases: holding a sample while it is open, keeping it, giving it back. Whoever comes next may take a lapsed one."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from curation.projects.access import Access
from curation.review.decisions.state import lock_sample
from curation.review.models import Lease
from curation.review.queue.seats import draw_swapped
from curation.samples.models import Sample
from curation.web.prepared import Prepared
from curation.web.problems import Conflict


@dataclass(frozen=True, slots=True)
class Held:
    """A lease that the caller holds until `until`; `swapped` puts the challenger on the left."""

    lease_id: int
    sample_id: int
    until: datetime
    swapped: bool


def claim(sample: Sample, access: Access) -> Held | None:
    """Gives the locked sample to the caller, or None where another reviewer holds it. Call it inside a transaction.

    The caller's own is extended and keeps its seats. A lapsed one of another is replaced by a new row: the id of a
    lease stands for one drawing of the seats.
    """
    review = access.project.settings.review
    now = timezone.now()
    until = now + timedelta(seconds=review.lease_seconds)
    lease = lease_of(sample)
    if lease is not None and lease.reviewer_id == access.user.pk:
        lease.until = until
        lease.save(update_fields=["until"])
        return _held(lease)
    if lease is not None:
        if lease.until > now:
            return None
        lease.delete()
    swapped = draw_swapped(blind=review.blind)
    return _held(Lease.objects.create(sample=sample, reviewer=access.user, swapped=swapped, until=until))


def lease_of(sample: Sample) -> Lease | None:
    """The lease on the locked sample, whoever's, lapsed or not."""
    return _on_sample.first(sample=sample.pk)


def hold(*, access: Access, sample_id: int) -> Held:
    """Claims this very sample for the caller; a conflict names who has it."""
    with transaction.atomic():
        sample = lock_sample(access.project, sample_id)
        held = claim(sample, access)
        if held is None:
            raise held_by_other(sample_id, holder_of(sample_id, other_than=access.user))
        return held


def heartbeat(*, access: Access, lease: Lease) -> Held:
    """Extends the caller's lease, also one that has lapsed and that nobody has taken since."""
    if lease.reviewer_id != access.user.pk:
        raise Conflict(f"Lease {lease.pk} is held by {lease.reviewer.get_username()}.", code="lease_lost")
    until = timezone.now() + timedelta(seconds=access.project.settings.review.lease_seconds)
    kept = Lease.objects.filter(pk=lease.pk, reviewer=access.user).update(until=until)
    if not kept:
        raise Conflict(f"Lease {lease.pk} has lapsed and someone else has taken the sample.", code="lease_lost")
    lease.until = until
    return _held(lease)


def release(*, access: Access, lease: Lease) -> None:
    """Gives the sample back to the queue; a lease that is another's or gone is left as it is."""
    Lease.objects.filter(pk=lease.pk, reviewer=access.user).delete()


def holder_of(sample_id: int, *, other_than: User | None = None) -> User | None:
    """Who has the sample open now, if that is anyone other than `other_than`."""
    rows = Lease.objects.filter(sample_id=sample_id, until__gt=timezone.now()).select_related("reviewer")
    if other_than is not None:
        rows = rows.exclude(reviewer=other_than)
    lease = rows.first()
    return lease.reviewer if lease else None


def held_by_other(sample_id: int, holder: User | None) -> Conflict:
    name = holder.get_username() if holder else "someone else"
    return Conflict(f"Sample {sample_id} is in review by {name}.", code="leased", current={"in_review_by": name})


_on_sample = Prepared(lambda sample: Lease.objects.filter(sample=sample, seat=0)[:1], sample=int)


def _held(lease: Lease) -> Held:
    return Held(lease.pk, lease.sample_id, lease.until, lease.swapped)
