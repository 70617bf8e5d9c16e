"""The ways by which samples are made, each as a funnel of steps with rates."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Case, Count, QuerySet, Value, When
from pydantic import Field

from curation.duels.models import Duel, DuelQuerySet
from curation.exports.models import Export, FrozenRow
from curation.projects.models import Project
from curation.samples.models import Bucket, Sample, SampleKind, SampleStatus
from curation.trajectories.models import Trajectory
from curation.web.schemas import out

# Samples by their origin.
ALONE, IMPORTED, MADE = "alone", "imported", "made"
ORIGIN = Case(
    When(duel=None, trajectory=None, then=Value(ALONE)),
    When(duel__run__kind="import", then=Value(IMPORTED)),
    default=Value(MADE),
)

EXPORTED = "Exported"


@out
class FunnelStepOut:
    """`rate` is the share (0 to 1) of the earlier step `of`; both are None where a step counts something else."""

    name: str = Field(examples=["Approved"])
    count: int = Field(examples=[7])
    of: str | None = Field(
        default=None, examples=["Decided"], description="The earlier step that `rate` is a share of."
    )
    rate: float | None = Field(
        default=None, examples=[0.64], description="0 to 1; null where a step counts something else."
    )

    @property
    def is_exported(self) -> bool:
        return self.name == EXPORTED

    @property
    def percent(self) -> float | None:
        return None if self.rate is None else 100 * self.rate


@out
class PipelineOut:
    """One way by which samples are made, as a funnel."""

    name: str = Field(examples=["Duels of single turns"])
    steps: list[FunnelStepOut] = Field()


@dataclass(frozen=True, slots=True)
class _Samples:
    total: int = 0
    parsed: int = 0
    good: int = 0
    decided: int = 0
    approved: int = 0
    exported: int = 0

    def plus(self, status: str, bucket: str, number: int) -> "_Samples":
        return replace(
            self,
            total=self.total + number,
            parsed=self.parsed + number * (bucket not in ("", Bucket.UNPARSED)),
            good=self.good + number * (bucket in (Bucket.FINAL, Bucket.REFINED)),
            decided=self.decided + number * (status != SampleStatus.PENDING),
            approved=self.approved + number * (status == SampleStatus.APPROVED),
        )

    def review(self) -> Iterable[tuple[str, int, str | None]]:
        """Exported samples may have another status by now, so they are no share of the approved ones."""
        found: list[tuple[str, int, str | None]] = [("Decided", self.decided, "Samples")]
        return [*found, ("Approved", self.approved, "Decided"), (EXPORTED, self.exported, None)]


def duels_made(project: Project) -> DuelQuerySet:
    """Without the imported ones, unless a panel has scored them."""
    return Duel.objects.of(project).exclude(run__kind="import")


def pipelines_of(
    project: Project, statuses: Mapping[str, int], funnel: dict[str, int], *, known: int, blind: bool = False
) -> list[PipelineOut]:
    """The pipelines that the project uses; `statuses` counts all of its samples, `funnel` the steps before them, and
    `known` the trajectories with a known outcome. `blind` omits counts that reveal scores and outcomes."""
    duels = answers = sessions = imported = _Samples()
    alone = dict(statuses)
    # From their side: to look for a duel and a trajectory of each sample takes longer than all other figures.
    for (status, bucket), number in _by_state(duels_made(project)).items():
        alone[status] -= number
        duels = duels.plus(status, bucket, number)
    for (status, bucket), number in _by_state(Duel.objects.of(project).filter(run__kind="import")).items():
        alone[status] -= number
        answers = answers.plus(status, bucket, number)
    for (status, bucket), number in _by_state(Trajectory.objects.of(project)).items():
        alone[status] -= number
        sessions = sessions.plus(status, bucket, number)
    for status, number in alone.items():
        imported = imported.plus(status, "", max(0, number))  # samples may be made between the two counts
    for origin, kind, number in _exported(project):
        if origin == ALONE:
            imported = replace(imported, exported=imported.exported + number)
        elif kind == SampleKind.TRAJECTORY:
            sessions = replace(sessions, exported=number)
        elif origin == IMPORTED:
            answers = replace(answers, exported=number)
        else:
            duels = replace(duels, exported=number)
    found = []
    words = project.settings.data.words
    if funnel["answered by king"] or funnel["challenged"] or duels.total:
        pairs = f"{words.pair}s"
        scored = [("Parsed", duels.parsed, "Samples"), ("Final or refined", duels.good, "Parsed")]
        steps: list[tuple[str, int, str | None]] = [
            ("Prompts", funnel["prompts"], None),
            (f"Answered by {words.opponent.lower()}", funnel["answered by king"], "Prompts"),
            (f"Answered by {words.candidate.lower()}", funnel["challenged"], "Prompts"),
            (pairs, funnel["duels"], None),
            ("Samples", duels.total, pairs),
            *(scored if duels.parsed and not blind else []),
            *duels.review(),
        ]
        found.append(_pipeline(f"{pairs} of single turns", steps))
    elif funnel["prompts"] and not answers.total:
        found.append(_pipeline("Prompts", [("Prompts", funnel["prompts"], None)]))
    if answers.total:
        found.append(_pipeline("Imported answers", [("Samples", answers.total, None), *answers.review()]))
    if funnel["scenarios"] or funnel["trajectories"]:
        made = [("Scenarios", funnel["scenarios"], None), ("Admitted", funnel["scenarios admitted"], "Scenarios")]
        steps = [
            *(made if funnel["scenarios"] else []),
            ("Trajectories", funnel["trajectories"], None),
            *([] if blind else _kept(funnel, known)),
            ("Samples", sessions.total, None),
            *sessions.review(),
        ]
        found.append(_pipeline("Rollouts of scenarios" if funnel["scenarios"] else "Runs of agents", steps))
    if imported.total:
        found.append(_pipeline("Imported samples", [("Samples", imported.total, None), *imported.review()]))
    return found


def _kept(funnel: dict[str, int], known: int) -> list[tuple[str, int, str | None]]:
    """Nobody kept or dropped an imported run whose outcome is unknown."""
    if known == funnel["trajectories"]:
        return [("Kept", funnel["trajectories kept"], "Trajectories")]
    step = ("Outcome known", known, "Trajectories")
    return [step, ("Kept", funnel["trajectories kept"], step[0])] if known else [step]


def _by_state(rows: QuerySet[Any]) -> dict[tuple[str, str], int]:
    """Count the samples of duels or of trajectories by status and bucket."""
    of_samples = rows.filter(sample__isnull=False).order_by().values_list("sample__status", "sample__bucket")
    return {(status, bucket): number for status, bucket, number in of_samples.annotate(n=Count("pk"))}


def _exported(project: Project) -> Iterable[tuple[str, str, int]]:
    """Count the samples with rows in finished exports, each once: (origin, kind, count)."""
    left = FrozenRow.objects.filter(export__in=Export.objects.filter(project=project, ready=True), skipped=False)
    rows = Sample.objects.of(project).order_by().filter(pk__in=left.values("sample_id")).annotate(origin=ORIGIN)
    return rows.values_list("origin", "kind").annotate(n=Count("id"))


def _pipeline(name: str, steps: Iterable[tuple[str, int, str | None]]) -> PipelineOut:
    counts: dict[str, int] = {}
    found = []
    for step, count, of in steps:
        base = counts.get(of, 0) if of else 0
        found.append(FunnelStepOut(step, count, of, round(count / base, 4)) if base else FunnelStepOut(step, count))
        counts[step] = count
    return PipelineOut(name, found)
