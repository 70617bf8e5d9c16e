"""Steps on the pages of review beside decisions and revisions: labels, marks of a session's steps, cleared findings,
resolved flags and requests for a second opinion. Undo takes them back too, in the order of time."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from operator import itemgetter

from django.db import transaction
from django.db.models import QuerySet, Subquery

from curation.assignments.models import AssignedSample
from curation.labels.models import Label, LabelValue
from curation.labels.values import words_of
from curation.projects.access import Access
from curation.projects.models import Project
from curation.review.decisions.clear import withdraw
from curation.review.decisions.marks import undo_marking
from curation.review.decisions.undo import last_step
from curation.review.decisions.withdraw_assignment import withdraw_assignment
from curation.review.models import Clearance, Decision, FlagResolution, Revision
from curation.review.queue.lease import lock_sample
from curation.samples.models import SampleStatus
from curation.trajectories.models import Marking
from curation.web.database.prepared import Prepared
from curation.web.problems import Conflict
from curation.web.text.figures import counted


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
    found = [(at, kind) for at, kind in zip(_newest(access), _KINDS, strict=True) if at is not None]
    at, kind = max(found, key=itemgetter(0), default=(None, None))
    if at is None or kind is None or (decided is not None and at <= decided.created_at):
        return decided
    return kind(access) or decided


def _newest(access: Access) -> tuple[datetime | None, ...]:
    """The time of the caller's last step of each kind."""
    return _times.first(user=access.user.pk, project=access.project.pk) or (None,) * len(_KINDS)


def _labels(user: int, project: int) -> QuerySet[Label]:
    return Label.objects.filter(author=user, sample__project=project, undone=False).order_by("-id")


def _label(access: Access) -> DecisionStep | None:
    row = _labels(access.user.pk, access.project.pk).select_related("question").first()
    if row is None:
        return None
    name = row.question.title
    return DecisionStep(
        row.sample_id,
        row.created_at,
        f"answered “{name}”",
        f"Took back your answer to “{name}” about",
        partial(_undo_label, access, row),
    )


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
    return rows.filter(undone=False).order_by("-id")


def _marking(access: Access) -> DecisionStep | None:
    row = _markings(access.user.pk, access.project.pk).select_related("trajectory").first()
    if row is None or row.trajectory.sample_id is None:
        return None
    marked = f"the marks of {counted(len(row.before), 'step')}"
    taking_back = partial(undo_marking, access, row)
    return DecisionStep(
        row.trajectory.sample_id, row.created_at, f"set {marked}", f"Took back {marked} of", taking_back
    )


def _clearances(user: int, project: int) -> QuerySet[Clearance]:
    return Clearance.objects.filter(cleared_by=user, sample__project=project).order_by("-id")


def _clearance(access: Access) -> DecisionStep | None:
    row = _clearances(access.user.pk, access.project.pk).first()
    if row is None:
        return None
    taking_back = partial(
        withdraw, access=access, sample_id=row.sample_id, rule=row.rule, value_sha256=row.value_sha256
    )
    what = f"cleared a finding ({row.rule})"
    return DecisionStep(row.sample_id, row.created_at, what, f"Took back the clearance of {row.rule} in", taking_back)


def _resolutions(user: int, project: int) -> QuerySet[FlagResolution]:
    return FlagResolution.objects.filter(resolved_by=user, flag__sample__project=project).order_by("-id")


def _resolution(access: Access) -> DecisionStep | None:
    row = _resolutions(access.user.pk, access.project.pk).select_related("flag").first()
    if row is None:
        return None
    sample_id = row.flag.sample_id
    return DecisionStep(
        sample_id,
        row.created_at,
        "resolved its flags",
        "Opened the flags again of",
        partial(_open_flags, access, sample_id, row.note),
    )


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
    return rows.order_by("-assignment_id")


def _request(access: Access) -> DecisionStep | None:
    row = _requests(access.user.pk, access.project.pk).select_related("assignment").first()
    if row is None:
        return None
    return DecisionStep(
        row.sample_id,
        row.assignment.created_at,
        "asked for a second opinion",
        "Withdrew the request for a second opinion on",
        partial(withdraw_assignment, access=access, assignment=row.assignment),
    )


_KINDS = (_label, _marking, _clearance, _resolution, _request)


def _times_of(user: int, project: int) -> QuerySet[Project, tuple[datetime | None, ...]]:
    steps = (_labels, _markings, _clearances, _resolutions)
    own = [Subquery(rows(user, project).values("created_at")[:1]) for rows in steps]
    request = Subquery(_requests(user, project).values("assignment__created_at")[:1])
    return Project.objects.filter(pk=project).values_list(*own, request)


# Every page of a sample asks, and nearly always a decision is the last step.
_times = Prepared(_times_of, user=int, project=int)
