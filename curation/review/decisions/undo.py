"""Undo the caller's last step, a decision or a saved revision; called again, the step before it, also on another
sample."""

from collections.abc import Collection
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Q

from curation.projects.access import Access
from curation.review.decisions.drafts import save_draft
from curation.review.decisions.findings import flag_findings
from curation.review.decisions.marks import restore_marks
from curation.review.decisions.opinions import next_round, take_opinion_back, withdraw_revision
from curation.review.decisions.revise import flags_after
from curation.review.decisions.state import change, emit_decided, log_line, restored, stale
from curation.review.models import IMPORTED, Action, Decision, Draft, Revision, Suggestion
from curation.review.queue.lease import held_by_other, holder_of, lock_sample
from curation.review.queue.seats import names_side
from curation.samples.models import Sample, SampleStatus
from curation.web.problems import Conflict

# Lines of the log that are no decision of their own. A reopening is refused as the revision that caused it.
NOT_DECIDING = (Action.SKIP, Action.UNDO, Action.REOPEN)


@dataclass(frozen=True, slots=True)
class Undone:
    """The line of the log, the decision or revision that is undone, and the sample with its earlier state."""

    line: Decision
    undone: Decision | Revision
    sample: Sample

    @property
    def shown(self) -> Decision:
        """The decision that is undone; for a revision the line that undoes it."""
        return self.undone if isinstance(self.undone, Decision) else self.line

    @property
    def summary(self) -> str:
        if isinstance(self.undone, Revision):
            return f"Undid revision {self.undone.number} of sample {self.sample.pk}."
        return f"Undid {self.undone.get_action_display().lower()} of sample {self.sample.pk}."


def undo(*, access: Access, sample_id: int | None = None, version: int | None = None) -> Undone:
    """Undo the caller's last step that is not undone yet: on this sample, or without one in the whole project.

    A step is a decision or a saved revision. Bulk actions have their own undo (`undo_bulk`) and are skipped if no
    sample is named. Typed texts become the caller's draft again. Raises `Conflict` if there is nothing to undo, if
    someone else has changed the sample since or has it open, and for a revision that was judged again. Raises `Stale`
    if the sample no longer has the `version` that the caller saw.
    """
    with transaction.atomic():
        found = last_step(access, sample_id, bulk=sample_id is not None)
        if found is None:
            where = "in this project" if sample_id is None else f"on sample {sample_id}"
            raise Conflict(f"You have no decision {where} to undo, and no saved revision.", code="nothing_to_undo")
        sample = lock_sample(access.project, found.sample_id)
        if version is not None and version != sample.version:
            raise stale(sample, given=version)
        if isinstance(found, Revision):
            return _undo_revision(found.pk, sample, access)
        return _undo_decision(found.pk, sample, access)


def last_step(
    access: Access, sample_id: int | None = None, *, bulk: bool = True, passed_over: Collection[str] = ()
) -> Decision | Revision | None:
    """The caller's last step that is not undone: on this sample, or in the whole project. `passed_over` are batches
    that do not count."""
    of = {"sample__project": access.project} if sample_id is None else {"sample": sample_id}
    # Withdrawing a guarantee undoes its approvals.
    decisions = Decision.objects.filter(reviewer=access.user, guarantee=None, **of).not_undone()
    decisions = decisions.exclude(action__in=(Action.UNDO, Action.REOPEN))
    if sample_id is None:
        decisions = decisions.exclude(batch__startswith=IMPORTED).exclude(batch__in=passed_over)
    if not bulk:
        decisions = decisions.filter(batch="")
    decision = decisions.order_by("-id").first()
    revisions = Revision.objects.filter(author=access.user, **of).not_undone()
    revision = revisions.defer("text").order_by("-id").first()
    if decision is None or revision is None:
        return decision or revision
    return revision if revision.created_at > decision.created_at else decision


def _undo_decision(pk: int, sample: Sample, access: Access) -> Undone:
    # Read under the lock: another undo may have been quicker.
    decision = Decision.objects.get(pk=pk)
    if decision.undone_by_id is not None:
        raise Conflict(f"The decision on sample {sample.pk} has just been undone.", code="nothing_to_undo")
    _refuse_changed(sample, access, Q(id__gt=decision.pk), Q(created_at__gt=decision.created_at))
    line = undo_line(decision, sample, access)
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
    if "marks" in decision.before:
        restore_marks(sample, decision.before["marks"])
    _restore_draft(decision, access)
    return _done(line, decision, sample, access, {"undone": decision.pk, "action": decision.action})


def _undo_revision(pk: int, sample: Sample, access: Access) -> Undone:
    """Take the text back: it stays in the chain, the text before it counts again, and with it the approval that the
    text ended."""
    revision = Revision.objects.get(pk=pk)
    if revision.undone_by_id is not None:
        raise Conflict(
            f"Revision {revision.number} of sample {sample.pk} has just been undone.", code="nothing_to_undo"
        )
    private = revision.private_to_id is not None
    if not private:  # others do not see it, so no change of theirs depends on it
        since = Q(created_at__gt=revision.created_at)
        _refuse_changed(sample, access, since, since)
        if revision.text_scores.exists():
            raise _changed(sample, f"revision {revision.number} has been judged again. Revise the answer instead")
    line = log_line(sample, access, Action.UNDO)
    line.revision, line.settles = revision, not private
    line.save()
    revision.undone_by = line
    revision.save(update_fields=["undone_by"])
    if private:
        take_opinion_back(sample)
    else:
        fields: dict[str, object] = {"flags": flags_after(sample, revision)}
        reopening = Decision.objects.filter(revision=revision, action=Action.REOPEN).not_undone().first()
        if reopening is not None:
            reopening.undone_by = line
            reopening.save(update_fields=["undone_by"])
            approved = Decision.objects.filter(sample=sample).standing_approvals().exists()
            fields |= restored(reopening.before, approved=approved)
        # Decisions on this text do not count for the one before.
        change(sample, **fields, **(next_round(sample) if sample.opinions else {}))
        flag_findings(sample)
    _restore_edit(revision, access)
    return _done(line, revision, sample, access, {"revision": revision.pk})


def undo_line(decision: Decision, sample: Sample, access: Access) -> Decision:
    """The line of the log that undoes a decision, not yet written. Others see it when they may see the decision."""
    line = log_line(sample, access, Action.UNDO, batch=decision.batch)
    line.settles, line.guarantee_id = decision.settles, decision.guarantee_id
    return line


def _done(
    line: Decision, undone: Decision | Revision, sample: Sample, access: Access, data: dict[str, object]
) -> Undone:
    access.record("sample.undo", str(sample.pk), {"decision": line.pk, **data})
    emit_decided(access.project, [line])
    return Undone(line, undone, sample)


def _restore_draft(decision: Decision, access: Access) -> None:
    """Texts and picks entered since then are newer and stay. A side that was named is not picked again: the page would
    show where it is."""
    picked = decision.preference and not names_side(decision.preference)
    given = {"comment": decision.comment, "pick": decision.pick if picked else ""}
    if decision.batch or not any(given.values()):
        return
    draft, _ = Draft.objects.get_or_create(sample_id=decision.sample_id, reviewer=access.user)
    Draft.objects.filter(pk=draft.pk).update(**{name: getattr(draft, name) or value for name, value in given.items()})


def _restore_edit(revision: Revision, access: Access) -> None:
    """Text typed since then is newer and stays. Saved again, the restored text still comes from its suggestion."""
    used = {"revision": None, "outcome": Suggestion.Outcome.USED}
    Suggestion.objects.filter(revision=revision, asked_by=access.user).update(**used)
    draft = Draft.objects.filter(sample_id=revision.sample_id, reviewer=access.user).first()
    if draft is None or not any(draft.edit_of(revision.of)):
        text, note = revision.text, revision.note
        save_draft(access=access, sample_id=revision.sample_id, of=revision.of, text=text, note=note)


def _refuse_changed(sample: Sample, access: Access, decided_since: Q, revised_since: Q) -> None:
    """Refuse to undo a step if someone else has changed the sample since, or has it open."""
    later = Decision.objects.filter(decided_since, sample=sample).not_undone()
    # A decision that waits has built on nothing, and nobody may learn of it.
    later = later.exclude(reviewer=access.user).exclude(action__in=NOT_DECIDING).exclude(settles=False)
    other = later.select_related("reviewer").first()
    if other is not None:
        raise _changed(sample, f"{other.reviewer.get_username()} has since decided {other.get_action_display()!r}")
    newer_texts = Revision.objects.filter(revised_since, sample=sample, private_to=None).not_undone()
    revision = newer_texts.exclude(author=access.user)
    if (newer := revision.select_related("author").first()) is not None:
        raise _changed(sample, f"{newer.written_by} has since saved revision {newer.number}")
    holder = holder_of(sample.pk, other_than=access.user)
    if holder is not None:
        raise held_by_other(sample.pk, holder)


def _changed(sample: Sample, what: str) -> Conflict:
    return Conflict(
        f"Sample {sample.pk} was not changed: {what}.",
        code="changed_since",
        current={"version": sample.version, "status": SampleStatus(sample.status).value},
    )
