"""Undo the caller's last decision; called again, the one before it, also on another sample."""

from dataclasses import dataclass

from django.db import transaction

from curation.projects import audit
from curation.projects.access import Access
from curation.review.decisions.opinions import take_opinion_back, withdraw_revision
from curation.review.decisions.state import change, log_line, restored
from curation.review.models import Action, Decision, Draft, Revision
from curation.review.queue.lease import held_by_other, holder_of, lock_sample
from curation.samples.models import Sample, Status
from curation.web.problems import Conflict

# Lines of the log that are no decision of their own. A reopening is refused as the revision that caused it.
NOT_DECIDING = (Action.SKIP, Action.UNDO, Action.REOPEN)


@dataclass(frozen=True, slots=True)
class Undone:
    """The line of the log, the decision that is undone, and the sample with its earlier state."""

    decision: Decision
    undone: Decision
    sample: Sample


def undo(*, access: Access, sample_id: int | None = None) -> Undone:
    """Undo the caller's last decision that is not undone yet: on this sample, or without one in the whole project.

    Bulk actions have their own undo (`undo_bulk`) and are skipped where no sample is named. The comment and the pick
    become the caller's draft again. A conflict where there is nothing to undo, or where someone else has changed the
    sample since or has it open.
    """
    with transaction.atomic():
        found = _last_decision(access, sample_id)
        sample = lock_sample(access.project, found.sample_id)
        # Read again under the lock: another undo may have been quicker.
        decision = Decision.objects.get(pk=found.pk)
        if decision.undone_by_id is not None:
            raise Conflict(f"The decision on sample {sample.pk} has just been undone.", code="nothing_to_undo")
        _refuse_changed(decision, sample, access)
        line = log_line(sample, access, Action.UNDO)
        line.save()
        decision.undone_by = line
        decision.save(update_fields=["undone_by"])
        if decision.action == Action.FLAG:
            change(sample)
        elif not decision.settles:
            take_opinion_back(sample)
        elif decision.action != Action.SKIP:
            withdraw_revision(decision)
            approved = Decision.objects.filter(sample=sample).standing_approvals().exists()
            change(sample, **restored(decision.before, approved=approved))
        _restore_draft(decision, access)
        audit.record(
            actor=access.user,
            action="sample.undo",
            subject=str(sample.pk),
            project=access.project,
            data={"decision": line.pk, "undone": decision.pk, "action": decision.action},
        )
    return Undone(line, decision, sample)


def _restore_draft(decision: Decision, access: Access) -> None:
    """What was typed since then is newer and stays."""
    given = {"comment": decision.comment, "pick": decision.pick if decision.preference else ""}
    if decision.batch or not any(given.values()):
        return
    draft, _ = Draft.objects.get_or_create(sample_id=decision.sample_id, reviewer=access.user)
    given["comment"] = draft.comment or given["comment"]
    Draft.objects.filter(pk=draft.pk).update(**given)


def _refuse_changed(decision: Decision, sample: Sample, access: Access) -> None:
    """Refuse to undo what someone else has built on, or has open."""
    later = Decision.objects.filter(sample=sample, id__gt=decision.pk).not_undone()
    # A decision that waits has built on nothing, and nobody may learn of it.
    later = later.exclude(reviewer=access.user).exclude(action__in=NOT_DECIDING).exclude(settles=False)
    other = later.select_related("reviewer").first()
    if other is not None:
        raise _changed(sample, f"{other.reviewer.get_username()} has since decided {other.get_action_display()!r}")
    newer_texts = Revision.objects.filter(sample=sample, created_at__gt=decision.created_at, private_to=None)
    revision = newer_texts.exclude(author=access.user)
    if (newer := revision.select_related("author").first()) is not None:
        raise _changed(sample, f"{newer.written_by} has since saved revision {newer.number}")
    holder = holder_of(sample.pk, other_than=access.user)
    if holder is not None:
        raise held_by_other(sample.pk, holder)


def _last_decision(access: Access, sample_id: int | None) -> Decision:
    rows = Decision.objects.filter(reviewer=access.user).not_undone().exclude(action__in=(Action.UNDO, Action.REOPEN))
    if sample_id is None:
        rows = rows.filter(sample__project=access.project, batch="")
    else:
        rows = rows.filter(sample_id=sample_id)
    found = rows.order_by("-id").first()
    if found is None:
        where = "in this project" if sample_id is None else f"on sample {sample_id}"
        raise Conflict(f"You have no decision {where} to undo.", code="nothing_to_undo")
    return found


def _changed(sample: Sample, what: str) -> Conflict:
    return Conflict(
        f"Sample {sample.pk} was not changed: {what}.",
        code="changed_since",
        current={"version": sample.version, "status": Status(sample.status).value},
    )
