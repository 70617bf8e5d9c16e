"""The ways by which samples are made, each as a funnel of steps with rates."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import BooleanField, Case, Count, QuerySet, When
from pydantic import Field

from curation.duels.models import Duel
from curation.exports.models import Export, FrozenRow
from curation.projects.models import Project
from curation.samples.models import Bucket, Sample, SampleKind, SampleStatus
from curation.trajectories.models import Trajectory
from curation.web.schemas import out

ALONE = Case(When(duel=None, trajectory=None, then=True), default=False, output_field=BooleanField())

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


def pipelines_of(
    project: Project, statuses: Mapping[str, int], funnel: dict[str, int], *, blind: bool = False
) -> list[PipelineOut]:
    """The pipelines that the project uses; `statuses` counts all of its samples, and `funnel` the steps before them.
    `blind` omits counts that reveal scores and outcomes."""
    duels = sessions = imported = _Samples()
    alone = dict(statuses)
    # From their side: to look for a duel and a trajectory of each sample takes longer than all other figures.
    for (kind, status, bucket), number in (
        _made(Duel.everything.of(project)) + _made(Trajectory.objects.of(project))
    ).items():
        alone[status] -= number
        if kind == SampleKind.TURN:
            duels = duels.plus(status, bucket, number)
        else:
            sessions = sessions.plus(status, bucket, number)
    for status, number in alone.items():
        imported = imported.plus(status, "", max(0, number))  # samples may be made between the two counts
    for is_alone, kind, number in _exported(project):
        if is_alone:
            imported = replace(imported, exported=number)
        elif kind == SampleKind.TURN:
            duels = replace(duels, exported=number)
        else:
            sessions = replace(sessions, exported=number)
    found = []
    words = project.settings.data.words
    if funnel["answered by king"] or funnel["challenged"]:
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
    elif duels.total:
        found.append(_pipeline("Imported answers", [("Samples", duels.total, None), *duels.review()]))
    elif funnel["prompts"]:
        found.append(_pipeline("Prompts", [("Prompts", funnel["prompts"], None)]))
    if funnel["scenarios"] or funnel["trajectories"]:
        made = [("Scenarios", funnel["scenarios"], None), ("Admitted", funnel["scenarios admitted"], "Scenarios")]
        steps = [
            *(made if funnel["scenarios"] else []),
            ("Trajectories", funnel["trajectories"], None),
            *([] if blind else [("Kept", funnel["trajectories kept"], "Trajectories")]),
            ("Samples", sessions.total, None),
            *sessions.review(),
        ]
        found.append(_pipeline("Rollouts of scenarios" if funnel["scenarios"] else "Runs of agents", steps))
    if imported.total:
        found.append(_pipeline("Imported samples", [("Samples", imported.total, None), *imported.review()]))
    return found


def _made(rows: QuerySet[Any]) -> Counter[tuple[str, str, str]]:
    """Count the samples of duels or of trajectories by kind, status and bucket."""
    of_samples = (
        rows.filter(sample__isnull=False).order_by().values_list("sample__kind", "sample__status", "sample__bucket")
    )
    return Counter({tuple(group): number for *group, number in of_samples.annotate(n=Count("pk"))})


def _exported(project: Project) -> Iterable[tuple[bool, str, int]]:
    """Count the samples with rows in finished exports, each once: (whether imported, kind, count)."""
    left = FrozenRow.objects.filter(export__in=Export.objects.filter(project=project, ready=True), skipped=False)
    rows = Sample.objects.of(project).order_by().filter(pk__in=left.values("sample_id")).annotate(alone=ALONE)
    by_kind: dict[tuple[bool, str], int] = defaultdict(int)
    for alone, kind, number in rows.values_list("alone", "kind").annotate(n=Count("id")):
        by_kind[alone, "" if alone else kind] += number
    return [(alone, kind, number) for (alone, kind), number in by_kind.items()]


def _pipeline(name: str, steps: Iterable[tuple[str, int, str | None]]) -> PipelineOut:
    counts: dict[str, int] = {}
    found = []
    for step, count, of in steps:
        base = counts.get(of, 0) if of else 0
        found.append(FunnelStepOut(step, count, of, round(count / base, 4)) if base else FunnelStepOut(step, count))
        counts[step] = count
    return PipelineOut(name, found)
