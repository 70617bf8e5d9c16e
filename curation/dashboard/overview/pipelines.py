"""The ways by which samples are made, each as a funnel of steps with rates."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Case, Count, QuerySet, Value, When
from pydantic import Field

from curation.duels.models import Duel, DuelQuerySet
from curation.exports.models import Export, FrozenRow
from curation.projects.models import Project
from curation.projects.settings.data import Words
from curation.samples.models import Bucket, Sample, SampleKind, SampleStatus
from curation.trajectories.models import Trajectory
from curation.web.schemas import out

# Samples by their origin.
ALONE, IMPORTED, SESSIONS, DUELS = "alone", "imported", "sessions", "duels"
ORIGIN = Case(
    When(duel=None, trajectory=None, then=Value(ALONE)),
    When(kind=SampleKind.TRAJECTORY, then=Value(SESSIONS)),
    When(duel__run__kind="import", then=Value(IMPORTED)),
    default=Value(DUELS),
)

EXPORTED = "Exported"
# A step's name, its count, and the earlier step that it is a share of.
Step = tuple[str, int, str | None]


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

    def review(self) -> list[Step]:
        """Exported samples may have another status by now, so they are no share of the approved ones."""
        return [
            ("Decided", self.decided, "Samples"),
            ("Approved", self.approved, "Decided"),
            (EXPORTED, self.exported, None),
        ]

    def alone(self) -> list[Step]:
        """The steps of samples that come into the project as they are."""
        return [("Samples", self.total, None), *self.review()] if self.total else []


def duels_made(project: Project) -> DuelQuerySet:
    """Without the imported ones, unless a panel has scored them."""
    return Duel.objects.of(project).exclude(run__kind="import")


def pipelines_of(
    project: Project, statuses: Mapping[str, int], funnel: dict[str, int], *, known: int, blind: bool = False
) -> list[PipelineOut]:
    """The pipelines that the project uses; `statuses` counts all of its samples, `funnel` the steps before them, and
    `known` the trajectories with a known outcome. `blind` omits counts that reveal scores and outcomes."""
    samples = _samples_by_origin(project, statuses)
    words = project.settings.data.words
    duels = _duel_steps(samples[DUELS], funnel, words, blind=blind)
    only_prompts = funnel["prompts"] and not duels and not samples[IMPORTED].total
    found: dict[str, list[Step]] = {
        f"{words.pair}s of single turns": duels,
        "Prompts": [("Prompts", funnel["prompts"], None)] if only_prompts else [],
        "Imported answers": samples[IMPORTED].alone(),
        "Rollouts of scenarios" if funnel["scenarios"] else "Runs of agents": _session_steps(
            samples[SESSIONS], funnel, known, blind=blind
        ),
        "Imported samples": samples[ALONE].alone(),
    }
    return [_pipeline(name, steps) for name, steps in found.items() if steps]


def _samples_by_origin(project: Project, statuses: Mapping[str, int]) -> dict[str, _Samples]:
    found = dict.fromkeys((DUELS, IMPORTED, SESSIONS, ALONE), _Samples())
    alone = dict(statuses)
    # From their side: to look for a duel and a trajectory of each sample takes longer than all other figures.
    duels = _by_state(Duel.objects.of(project), "run__kind")
    counts = [(IMPORTED if kind == "import" else DUELS, *state) for kind, *state in duels]
    counts += [(SESSIONS, *state) for state in _by_state(Trajectory.objects.of(project))]
    for origin, status, bucket, number in counts:
        alone[status] -= number
        found[origin] = found[origin].plus(status, bucket, number)
    for status, number in alone.items():
        found[ALONE] = found[ALONE].plus(status, "", max(0, number))  # samples may be made between the two counts
    for origin, number in _exported(project):
        found[origin] = replace(found[origin], exported=number)
    return found


def _duel_steps(samples: _Samples, funnel: Mapping[str, int], words: Words, *, blind: bool) -> list[Step]:
    if not (funnel["answered by king"] or funnel["challenged"] or samples.total):
        return []
    pairs = f"{words.pair}s"
    scored = [("Parsed", samples.parsed, "Samples"), ("Final or refined", samples.good, "Parsed")]
    return [
        ("Prompts", funnel["prompts"], None),
        (f"Answered by {words.opponent.lower()}", funnel["answered by king"], "Prompts"),
        (f"Answered by {words.candidate.lower()}", funnel["challenged"], "Prompts"),
        (pairs, funnel["duels"], None),
        ("Samples", samples.total, pairs),
        *(scored if samples.parsed and not blind else []),
        *samples.review(),
    ]


def _session_steps(samples: _Samples, funnel: Mapping[str, int], known: int, *, blind: bool) -> list[Step]:
    if not (funnel["scenarios"] or funnel["trajectories"]):
        return []
    made = [("Scenarios", funnel["scenarios"], None), ("Admitted", funnel["scenarios admitted"], "Scenarios")]
    return [
        *(made if funnel["scenarios"] else []),
        ("Trajectories", funnel["trajectories"], None),
        *([] if blind else _kept(funnel, known)),
        ("Samples", samples.total, None),
        *samples.review(),
    ]


def _kept(funnel: Mapping[str, int], known: int) -> list[Step]:
    """Nobody kept or dropped an imported run whose outcome is unknown."""
    if known == funnel["trajectories"]:
        return [("Kept", funnel["trajectories kept"], "Trajectories")]
    step = ("Outcome known", known, "Trajectories")
    return [step, ("Kept", funnel["trajectories kept"], step[0])] if known else [step]


def _by_state(rows: QuerySet[Any], *columns: str) -> list[tuple[Any, ...]]:
    """Count the samples of duels or of trajectories: (the rows' `columns`, status, bucket, count)."""
    of_samples = rows.filter(sample__isnull=False).order_by().values_list(*columns, "sample__status", "sample__bucket")
    return list(of_samples.annotate(n=Count("pk")))


def _exported(project: Project) -> Iterable[tuple[str, int]]:
    """Count the samples with rows in finished exports, each once, by origin."""
    left = FrozenRow.objects.filter(export__in=Export.objects.filter(project=project, ready=True), skipped=False)
    rows = Sample.objects.of(project).order_by().filter(pk__in=left.values("sample_id")).annotate(origin=ORIGIN)
    return rows.values_list("origin").annotate(n=Count("id"))


def _pipeline(name: str, steps: Iterable[Step]) -> PipelineOut:
    counts: dict[str, int] = {}
    found = []
    for step, count, of in steps:
        base = counts.get(of, 0) if of else 0
        found.append(FunnelStepOut(step, count, of, round(count / base, 4)) if base else FunnelStepOut(step, count))
        counts[step] = count
    return PipelineOut(name, found)
