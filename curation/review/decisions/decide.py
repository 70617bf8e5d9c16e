"""One person's decision on one sample."""

import math
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from curation.projects import audit
from curation.projects.access import Access
from curation.review.decisions.state import before_of, change, lock_sample, refuse_stale_version
from curation.review.decisions.words import wrong_text
from curation.review.models import Action, Decision, Lease, Pick, Revision
from curation.review.queue.lease import held_by_other, lease_of
from curation.review.queue.seats import resolve_pick, seat_word
from curation.samples.models import Flag, Kind, Sample, Status
from curation.web.problems import Conflict, FieldError, Invalid
from curation.webhooks.emit import emit
from curation.webhooks.models import Event

STATUS_AFTER = {
    Action.APPROVE.value: Status.APPROVED.value,
    Action.REJECT.value: Status.REJECTED.value,
    Action.REFINE.value: Status.NEEDS_REFINE.value,
    Action.QUEUE.value: Status.PENDING.value,
}
DECISIONS = (Action.APPROVE, Action.REJECT, Action.REFINE, Action.SKIP, Action.FLAG)
MAX_COMMENT = 20_000


@dataclass(frozen=True, slots=True)
class Decided:
    """The line of the log, and the sample as it is after it."""

    decision: Decision
    sample: Sample


def decide(
    *,
    access: Access,
    sample_id: int,
    action: str,
    version: int | None = None,
    preference: str = "",
    reason: str = "",
    comment: str = "",
    seconds: float | None = None,
) -> Decided:
    """Writes the decision, the sample's new status and version, and ends the lease, all in one transaction.

    approve, reject and refine settle the sample. skip only gives it back. flag gives it back too and leaves it
    undecided, with its reason in the log for whoever opens it next; it raises the version, since it is something to
    know before deciding. Refused: `Stale` where `version` is not the present one; `Conflict` where another reviewer
    holds the sample or, when no version was sent, has settled it.
    """
    _check_words(action, reason, comment, seconds)
    with transaction.atomic():
        sample = lock_sample(access.project, sample_id)
        refuse_stale_version(sample, version)
        lease = _own_lease(sample, access)
        _refuse_accident(sample, access, action, version)
        pick = _pick(sample, preference, lease)
        decision = Decision.objects.create(
            sample=sample,
            reviewer=access.user,
            action=action,
            pick=pick or (Pick.CANDIDATE if action == Action.APPROVE and sample.kind == Kind.TURN else ""),
            preference=preference,
            reason=reason,
            comment=comment,
            seconds=seconds,
            seat=seat_word(lease.swapped) if lease and sample.kind == Kind.TURN else "",
            version=sample.version,
            revision=_kept_revision(sample, pick) if action == Action.APPROVE else None,
            before=before_of(sample),
        )
        settle(sample, action, access)
        Lease.objects.filter(Q(reviewer=access.user) | Q(until__lte=timezone.now()), sample=sample).delete()
        audit.record(
            actor=access.user,
            action=f"sample.{action}",
            subject=str(sample.pk),
            project=access.project,
            data={"decision": decision.pk, "version": decision.version},
        )
        told = {"sample": str(sample.pk), "decision": str(decision.pk), "action": action, "status": sample.status}
        emit(access.project, Event.REVIEW_DECIDED, told)
    return Decided(decision, sample)


def settle(sample: Sample, action: str, access: Access) -> None:
    """Gives the sample the status that the action means; skip changes nothing of it, flag only its version."""
    if action == Action.SKIP:
        return
    if action == Action.FLAG:
        change(sample)
        return
    queued = action == Action.QUEUE
    change(
        sample,
        status=STATUS_AFTER[action],
        decided_by_id=None if queued else access.user.pk,
        decided_at=None if queued else timezone.now(),
        leak_cleared=action == Action.APPROVE and bool(sample.flags & Flag.LEAK),
    )


def _check_words(action: str, reason: str, comment: str, seconds: float | None) -> None:
    wrong = []
    if action not in DECISIONS:
        wrong.append(FieldError("action", f"is one of {', '.join(DECISIONS)}, not {action!r}"))
    wrong += wrong_text("reason", reason, most=200) + wrong_text("comment", comment, most=MAX_COMMENT)
    if seconds is not None and not (math.isfinite(seconds) and seconds >= 0):
        wrong.append(FieldError("seconds", "is a number of seconds, 0 or more"))
    if wrong:
        raise Invalid("; ".join(f"`{error.path}` {error.message}" for error in wrong) + ".", errors=wrong)


def _own_lease(sample: Sample, access: Access) -> Lease | None:
    """The caller's lease, lapsed or not; a conflict where another reviewer holds the sample now."""
    lease = lease_of(sample)
    if lease is None or lease.reviewer_id == access.user.pk:
        return lease
    if lease.until > timezone.now():
        raise held_by_other(sample.pk, lease.reviewer)
    return None


def _refuse_accident(sample: Sample, access: Access, action: str, version: int | None) -> None:
    settled = sample.status in (Status.APPROVED, Status.REJECTED) and action != Action.SKIP
    if version is None and settled and sample.decided_by_id != access.user.pk and sample.decided_by:
        raise Conflict(
            f"Sample {sample.pk} was {sample.get_status_display().lower()} by {sample.decided_by.get_username()}. "
            f"To decide it anew, send its version, {sample.version}.",
            code="already_decided",
            current={"version": sample.version, "status": sample.status},
        )


def _pick(sample: Sample, preference: str, lease: Lease | None) -> str:
    if preference and sample.kind != Kind.TURN:
        raise Invalid("A trajectory has no sides to prefer.", errors=[FieldError("preference", "not for a trajectory")])
    return resolve_pick(preference, swapped=lease.swapped if lease else None)


def _kept_revision(sample: Sample, pick: str) -> Revision | None:
    if sample.version == 1:
        return None  # a revision would have raised it
    side = Pick.OPPONENT if pick == Pick.OPPONENT else Pick.CANDIDATE
    return Revision.objects.filter(sample=sample, of=side).order_by("-number").first()
