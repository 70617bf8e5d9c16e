"""Taking back one's own last decision, over several steps and across samples."""

from dataclasses import dataclass

from django.db import transaction

from curation.projects import audit
from curation.projects.access import Access
from curation.review.decisions.state import before_of, change, lock_sample, restored
from curation.review.models import Action, Decision, Revision
from curation.review.queue.lease import held_by_other, holder_of
from curation.samples.models import Sample, Status
from curation.web.problems import Conflict


@dataclass(frozen=True, slots=True)
class Undone:
    """The line that says so, the decision it took back, and the sample as it is again."""

    decision: Decision
    undone: Decision
    sample: Sample


def undo(*, access: Access, sample_id: int | None = None) -> Undone:
    """Takes back the caller's last decision that still stands: on this sample, or else in the whole project.

    Bulk actions have their own undo (`undo_bulk`) and are passed over where no sample is named. Refused with a conflict
    where there is nothing to take back, where someone else has changed the sample since, or has it open.
    """
    with transaction.atomic():
        found = _last_standing(access, sample_id)
        sample = lock_sample(access.project, found.sample_id)
        # Under the lock: two undos at once must not take the same decision back twice.
        decision = Decision.objects.get(pk=found.pk)
        if decision.undone_by_id is not None:
            raise Conflict(f"The decision on sample {sample.pk} has just been undone.", code="nothing_to_undo")
        refusal = why_not(decision, sample, access)
        if refusal is not None:
            raise refusal
        line = take_back(decision, sample, access)
        audit.record(
            actor=access.user,
            action="sample.undo",
            subject=str(sample.pk),
            project=access.project,
            data={"decision": line.pk, "undone": decision.pk, "action": decision.action},
        )
    return Undone(line, decision, sample)


def why_not(decision: Decision, sample: Sample, access: Access) -> Conflict | None:
    """Why this decision can not be taken back, in words; None where it can. Call it with the sample locked."""
    later = Decision.objects.filter(sample=sample, id__gt=decision.pk, undone_by=None)
    later = later.exclude(reviewer=access.user).exclude(action__in=(Action.SKIP, Action.UNDO))
    other = later.select_related("reviewer").first()
    if other is not None:
        return _changed(sample, f"{other.reviewer.get_username()} has since decided {other.get_action_display()!r}")
    revision = Revision.objects.filter(sample=sample, created_at__gt=decision.created_at).exclude(author=access.user)
    if (newer := revision.select_related("author").first()) is not None:
        return _changed(sample, f"{newer.author.get_username()} has since saved revision {newer.number}")
    holder = holder_of(sample.pk, other_than=access.user)
    return held_by_other(sample.pk, holder) if holder else None


def take_back(decision: Decision, sample: Sample, access: Access, *, batch: str = "") -> Decision:
    """Puts the state before `decision` back and appends the line; the caller holds the lock and has asked `why_not`."""
    line = Decision.objects.create(
        sample=sample,
        reviewer=access.user,
        action=Action.UNDO,
        version=sample.version,
        batch=batch,
        before=before_of(sample),
    )
    decision.undone_by = line
    decision.save(update_fields=["undone_by"])
    if decision.action == Action.FLAG:
        change(sample)
    elif decision.action != Action.SKIP:
        change(sample, **restored(decision.before))
    return line


def _last_standing(access: Access, sample_id: int | None) -> Decision:
    rows = Decision.objects.filter(reviewer=access.user, undone_by=None).exclude(action=Action.UNDO)
    if sample_id is None:
        rows = rows.filter(sample__project=access.project, batch="")
    else:
        rows = rows.filter(sample_id=sample_id)
    found = rows.order_by("-id").first()
    if found is None:
        where = "in this project" if sample_id is None else f"on sample {sample_id}"
        raise Conflict(f"You have no decision {where} that could be undone.", code="nothing_to_undo")
    return found


def _changed(sample: Sample, what: str) -> Conflict:
    return Conflict(
        f"Sample {sample.pk} stays as it is: {what}.",
        code="changed_since",
        current={"version": sample.version, "status": Status(sample.status).value},
    )
