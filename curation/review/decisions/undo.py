"""Undo the caller's last step; called again, the step before it, also on another sample.

A step is a decision or a saved revision. On the pages of review a step is also a label, marks of a session, a cleared
finding, a resolved flag or a request for a second opinion: undo takes them back in the order of time (`last_of_all`).
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from operator import itemgetter
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet, Subquery

from curation.assignments.models import AssignedSample
from curation.labels.models import Label, LabelValue
from curation.labels.values import words_of
from curation.projects.access import Access
from curation.projects.models import Project
from curation.review.decisions.drafts import save_draft
from curation.review.decisions.findings import flag_findings, withdraw
from curation.review.decisions.marks import restore_marks, undo_marking
from curation.review.decisions.opinions import next_round, withdraw_opinion, withdraw_revision
from curation.review.decisions.revise import flags_after
from curation.review.decisions.state import change, emit_decided, log_line, restored, stale
from curation.review.decisions.withdraw_assignment import withdraw_assignment
from curation.review.models import IMPORTED, Action, Clearance, Decision, Draft, FlagResolution, Revision, Suggestion
from curation.review.queue.lease import lock_sample, refuse_held_by_other
from curation.review.queue.seats import names_side
from curation.samples.models import Sample, SampleStatus
from curation.trajectories.models import Marking
from curation.web.database.queries import Prepared
from curation.web.problems import Conflict
from curation.web.text.figures import counted

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
        withdraw_opinion(sample)
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
        withdraw_opinion(sample)
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
    restored = {name: getattr(draft, name) or value for name, value in given.items()}
    Draft.objects.filter(pk=draft.pk).update(**restored, after=decision.pk)


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
    refuse_held_by_other(sample.pk, access.user)


def _changed(sample: Sample, what: str) -> Conflict:
    return Conflict(
        f"Sample {sample.pk} was not changed: {what}.",
        code="changed_since",
        current={"version": sample.version, "status": SampleStatus(sample.status).value},
    )


@dataclass(frozen=True, slots=True)
class DecisionStep:
    """`what` describes the step, `undone` its undo."""

    sample_id: int
    at: datetime
    what: str
    undone: str
    undo: Callable[[], object]

    @property
    def summary(self) -> str:
        return f"{self.undone} sample {self.sample_id}."


def last_of_all(access: Access, passed_over: Collection[str] = ()) -> Decision | Revision | DecisionStep | None:
    """The caller's last step in the project that can be undone."""
    decided = last_step(access, passed_over=passed_over)
    at_of = _times.first(user=access.user.pk, project=access.project.pk) or (None,) * len(_KINDS)
    found = [(at, kind) for at, kind in zip(at_of, _KINDS, strict=True) if at is not None]
    at, kind = max(found, key=itemgetter(0), default=(None, None))
    if at is None or kind is None or (decided is not None and at <= decided.created_at):
        return decided
    rows, step_of = kind
    row = rows(access.user.pk, access.project.pk).first()
    return decided if row is None else step_of(access, row)


def _labels(user: int, project: int) -> QuerySet[Label]:
    rows = Label.objects.filter(author=user, sample__project=project, undone=False)
    return rows.select_related("question").order_by("-id")


def _label(access: Access, row: Label) -> DecisionStep:
    name = row.question.title
    what, undone = f"answered “{name}”", f"Took back your answer to “{name}” about"
    return DecisionStep(row.sample_id, row.created_at, what, undone, partial(_undo_label, access, row))


def _undo_label(access: Access, label: Label) -> None:
    """The answer before it counts again."""
    with transaction.atomic():
        sample = lock_sample(access.project, label.sample_id)
        own = Label.objects.filter(sample=sample, question=label.question_id, author=access.user, undone=False)
        if not own.filter(pk=label.pk, current=True).update(current=False, undone=True):
            raise Conflict(f"The answer about sample {sample.pk} has just been undone.", code="nothing_to_undo")
        LabelValue.objects.filter(label=label).delete()
        before = own.order_by("-id").first()
        if before is not None:
            Label.objects.filter(pk=before.pk).update(current=True)
            words = [] if before.value is None else words_of(label.question, before.value)
            LabelValue.objects.bulk_create(
                LabelValue(label=before, question=label.question, sample=sample, value=word) for word in words
            )
        access.record(
            "sample.label",
            str(sample.pk),
            {"questions": [label.question.name], "version": sample.version, "undone": label.pk},
        )


def _markings(user: int, project: int) -> QuerySet[Marking]:
    rows = Marking.objects.filter(author=user, trajectory__project=project, trajectory__sample__isnull=False)
    return rows.filter(undone=False).select_related("trajectory").order_by("-id")


def _marking(access: Access, row: Marking) -> DecisionStep:
    marked, taking_back = f"the marks of {counted(len(row.before), 'step')}", partial(undo_marking, access, row)
    sample_id = row.trajectory.sample_id or 0  # `_markings` have one
    return DecisionStep(sample_id, row.created_at, f"set {marked}", f"Took back {marked} of", taking_back)


def _clearances(user: int, project: int) -> QuerySet[Clearance]:
    return Clearance.objects.filter(cleared_by=user, sample__project=project).order_by("-id")


def _clearance(access: Access, row: Clearance) -> DecisionStep:
    of: dict[str, Any] = {"sample_id": row.sample_id, "rule": row.rule, "value_sha256": row.value_sha256}
    what, undone = f"cleared a finding ({row.rule})", f"Took back the clearance of {row.rule} in"
    return DecisionStep(row.sample_id, row.created_at, what, undone, partial(withdraw, access=access, **of))


def _resolutions(user: int, project: int) -> QuerySet[FlagResolution]:
    rows = FlagResolution.objects.filter(resolved_by=user, flag__sample__project=project)
    return rows.select_related("flag").order_by("-id")


def _resolution(access: Access, row: FlagResolution) -> DecisionStep:
    pk, what, undone = row.flag.sample_id, "resolved its flags", "Opened the flags again of"
    return DecisionStep(pk, row.created_at, what, undone, partial(_open_flags, access, pk, row.note))


def _open_flags(access: Access, sample_id: int, note: str) -> None:
    """Open those flags again that one note resolved."""
    with transaction.atomic():
        sample = lock_sample(access.project, sample_id)
        resolved = FlagResolution.objects.filter(flag__sample=sample, resolved_by=access.user, note=note)
        flags = list(resolved.order_by("flag_id").values_list("flag_id", flat=True))
        if not flags:
            raise Conflict(f"The flags of sample {sample.pk} are open already.", code="nothing_to_undo")
        resolved.delete()
        access.record("sample.reopen_flags", str(sample.pk), {"flags": flags})


def _requests(user: int, project: int) -> QuerySet[AssignedSample]:
    """A request whose sample is settled has had its effect."""
    rows = AssignedSample.objects.filter(
        assignment__second_opinion=True,
        assignment__created_by=user,
        assignment__project=project,
        sample__status=SampleStatus.PENDING,
        sample__opinions__gt=0,
    )
    return rows.select_related("assignment").order_by("-assignment_id")


def _request(access: Access, row: AssignedSample) -> DecisionStep:
    what, undone = "asked for a second opinion", "Withdrew the request for a second opinion on"
    withdrawing = partial(withdraw_assignment, access=access, assignment=row.assignment)
    return DecisionStep(row.sample_id, row.assignment.created_at, what, undone, withdrawing)


# The rows of each kind of step, the last one first, and the step of a row.
_KINDS: tuple[tuple[Callable[[int, int], QuerySet[Any]], Callable[[Access, Any], DecisionStep]], ...] = (
    (_labels, _label),
    (_markings, _marking),
    (_clearances, _clearance),
    (_resolutions, _resolution),
    (_requests, _request),
)


def _times_of(user: int, project: int) -> QuerySet[Project, tuple[datetime | None, ...]]:
    own = [Subquery(rows(user, project).values("created_at")[:1]) for rows, _ in _KINDS[:-1]]
    request = Subquery(_requests(user, project).values("assignment__created_at")[:1])
    return Project.objects.filter(pk=project).values_list(*own, request)


# Every page of a sample asks, and nearly always a decision is the last step.
_times = Prepared(_times_of, user=int, project=int)
