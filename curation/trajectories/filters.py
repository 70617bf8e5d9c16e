"""The filter of trajectories: of the page, the REST list and runs; and the list of pairs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar

from django.db import models
from django.db.models.fields.json import KeyTransform
from pydantic import ConfigDict, Field, model_validator

from curation.projects.access import Access
from curation.projects.models import Project
from curation.runs.models import Run
from curation.samples.blind import record_unblinding, without_pending
from curation.samples.list.conditions import IsTrajectory
from curation.samples.models import Sample, SampleStatus
from curation.scenarios.models import Scenario, Terminal
from curation.trajectories.models import (
    RECORDED,
    FactState,
    Outcome,
    Pair,
    PairQuerySet,
    ReplayState,
    StepAdvantage,
    Strategy,
    Trajectory,
    TrajectoryMetadata,
    TrajectoryQuerySet,
    outcomes_named,
    recorded,
)
from curation.web.ids import find, known_ids
from curation.web.lists.clauses import (
    FEW,
    Clause,
    Unindexed,
    all_matching,
    column_in,
    column_range,
    lookup_clause,
    unindexed,
)
from curation.web.lists.filters import Axes, ListParams, Moment, RowFilter, Words, ids_of, named_list, one_of
from curation.web.lists.keyset import KeysetPage
from judging.statistics.values import ActionVerdict

# The word of a URL for a column that is empty.
NO_TERMINAL, NOT_REPLAYED = "none", "none"
USELESS = "useless"


class TrajectoryFilter(RowFilter):
    """Which trajectories; an empty filter matches all. Unknown fields are refused."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, json_schema_extra={"examples": [{"outcome": ["solved"], "keep": True}]}
    )

    lookups: ClassVar[Mapping[str, str]] = {
        "id": "pk",
        "instance_id": "instance_id",
        "repo": "repo",
        "keep": "keep",
    }

    labels: ClassVar[Mapping[str, str]] = {
        "outcome": "Outcome",
        "keep": "Kept",
        "reward": "Name of the reward",
        "reward_min": "Reward from",
        "reward_max": "Reward to",
        "terminal": "Terminal",
        "replay": "Replay",
        "step": "Step",
        "status": "Review",
        "name": "Scenario",
        "task": "Task",
        "agent": "Agent",
        "model": "Model",
        "source": "Source",
        "instance_id": "Instance",
        "repo": "Repository",
        "steps_min": "Steps from",
        "steps_max": "Steps to",
        "run": "Run",
        **RECORDED,
        "axes": "Axes",
        "metadata": "Metadata",
        "scenario": "Scenario id",
        "id": "Trajectory",
        "created_after": "Created from",
        "created_before": "Created before",
    }
    choices: ClassVar[Mapping[str, Sequence[tuple[str, str]]]] = {
        "outcome": Outcome.choices,
        "keep": [("true", "Kept"), ("false", "Not kept")],
        "terminal": [*Terminal.choices, (NO_TERMINAL, "Never ended")],
        "replay": [(value or NOT_REPLAYED, label) for value, label in ReplayState.choices],
        **dict.fromkeys(RECORDED, FactState.choices),
        "step": [(USELESS, "Has a useless step"), *((one, f"Has a step: {one}") for one in map(str, ActionVerdict))],
        "status": SampleStatus.choices,
    }

    id: Annotated[Words, ids_of("trajectory")] = Field(default=(), description="Ids of the trajectories themselves.")
    scenario: Annotated[Words, ids_of("scenario")] = Field(default=(), description="Ids of scenarios.")
    name: Words = Field(default=(), description="Names of scenarios.")
    task: Words = Field(default=(), description="Tasks of imported runs, and of episodes on servers.")
    agent: Words = Field(default=(), description="Names of the agents of imported runs.")
    source: Words = Field(default=(), description="Files of imported runs.")
    instance_id: Words = ()
    repo: Words = ()
    outcome: Annotated[Words, one_of(Outcome.values)] = Field(
        default=(), description="`failed` and `error` are also all outcomes that say more."
    )
    reward: str = Field(
        default="", max_length=60, description="The reward of `reward_min` and `reward_max`; empty: the main one."
    )
    reward_min: float | None = Field(default=None, description="From this reward.")
    reward_max: float | None = Field(default=None, description="Up to this reward, included.")
    steps_min: int | None = Field(default=None, ge=0, description="With at least so many steps.")
    steps_max: int | None = Field(default=None, ge=0, description="With at most so many steps.")
    keep: bool | None = Field(default=None, description="Whether it was kept.")
    terminal: Annotated[Words, one_of([*Terminal.values, NO_TERMINAL])] = ()
    model: Words = Field(default=(), description="Names of endpoints, or models of imported runs.")
    run: Annotated[Words, ids_of("run")] = Field(default=(), description="Ids of rollout runs.")
    replay: Annotated[Words, one_of([NOT_REPLAYED, *filter(None, ReplayState.values)])] = ()
    step: Annotated[Words, one_of([USELESS, *map(str, ActionVerdict)])] = Field(
        default=(),
        description="The verdict of a probe on one of its steps: useless, better, worse, likely, alike, open.",
    )
    documentation_read: Annotated[Words, one_of(FactState.values)] = Field(
        default=(), description="Whether the provider's documentation was read, by the sandbox's record."
    )
    provider_asked: Annotated[Words, one_of(FactState.values)] = Field(
        default=(), description="Whether the provider was asked, by the sandbox's record."
    )
    status: Annotated[Words, one_of(SampleStatus.values)] = Field(
        default=(), description="The review status of its sample."
    )
    metadata: Axes = Field(
        default=(), description="`name=value` of an imported run's metadata, or `metadata.name=value` as a parameter."
    )
    axes: Axes = Field(default=(), description="`axis=value` of the scenario.")
    created_after: Moment | None = Field(default=None, description="From this moment on.")
    created_before: Moment | None = Field(default=None, description="Before this moment.")

    @model_validator(mode="after")
    def in_order(self) -> "TrajectoryFilter":
        if self.created_after and self.created_before and self.created_after >= self.created_before:
            raise ValueError("`created_after` is not before `created_before`")
        return self

    def apply(self, project: Project) -> TrajectoryQuerySet:
        """The project's trajectories that match. A run or scenario of another project: `NotFound`."""
        return all_matching(self.narrow(Trajectory.objects.of(project)), self.clauses(project))

    def clauses(self, project: Project) -> list[Clause]:
        """The conditions beside `lookups`."""
        found = [
            column_in(name, group) for name in ("task", "agent", "model", "source") for group in getattr(self, name)
        ]
        for group in self.outcome:
            found.append(column_in("outcome", sorted({one for word in group for one in outcomes_named(word)})))
        found += [_metadata_clause(project, group) for group in self.metadata]
        for group in self.scenario:
            known = known_ids(Scenario.objects.of(project), group, "scenario", where=project.slug)
            found.append(lookup_clause(Trajectory, "scenario_id__in", known))
        for group in self.run:
            known = known_ids(Run.objects.of(project), group, "run", where=project.slug)
            found.append(lookup_clause(Trajectory, "run_id__in", known))
        for name, none in (("terminal", NO_TERMINAL), ("replay", NOT_REPLAYED)):
            for group in getattr(self, name):
                found.append(column_in(name, ["" if word == none else word for word in group]))
        found += [_status_clause(project, group) for group in self.status]
        for group in self.name:
            named = Scenario.objects.of(project).filter(name__in=group).values_list("pk", flat=True)
            found.append(lookup_clause(Trajectory, "scenario_id__in", list(named) or [0]))  # an id that none has
        found += [_step_clause(group) for group in self.step]
        found += [unindexed(recorded(fact, group)) for fact in RECORDED for group in getattr(self, fact)]
        found += [_scenario_clause(_with_axes(group)) for group in self.axes]
        ranges: dict[str, dict[str, Any]] = {
            "steps": {"gte": self.steps_min, "lte": self.steps_max},
            "created_at": {"gte": self.created_after, "lt": self.created_before},
            "reward": {"gte": self.reward_min, "lte": self.reward_max},
        }
        for column, bounds in ranges.items():
            given = {bound: value for bound, value in bounds.items() if value is not None}
            if column == "reward" and self.reward:
                found.append(_named_reward_clause(self.reward, given))
            elif given:
                found.append(column_range(column, given, wide=False))
        return found


def _status_clause(project: Project, group: Sequence[str]) -> Clause:
    samples = Sample.objects.of(project).filter(IsTrajectory(models.F("kind")), status__in=group).order_by()
    # No condition on the project beside the sample: SQLite would look at all trajectories of the project.
    found = Trajectory.objects.filter(sample__in=samples.values("pk")).values("pk")
    return Clause(
        indexed=lambda rows: rows.filter(pk__in=found),
        scanned=lambda rows: rows.filter(sample__status__in=group),
        is_few=lambda _: samples[: FEW + 1].count() <= FEW,
    )


def _named_reward_clause(name: str, bounds: Mapping[str, float]) -> Clause:
    def rewarded(rows: TrajectoryQuerySet) -> TrajectoryQuerySet:
        rows = rows.filter(rewards__has_key=name).alias(named=KeyTransform(name, "rewards"))
        return rows.filter(**{f"named__{bound}": value for bound, value in bounds.items()})

    return Clause(indexed=rewarded, scanned=rewarded, is_few=lambda _: False)


def _scenario_clause(scenarios: models.QuerySet[Scenario]) -> Clause:
    wanted = scenarios.order_by().values("pk")
    found = Trajectory.objects.filter(scenario__in=wanted).values("pk")
    return Clause(
        indexed=lambda rows: rows.filter(pk__in=found),
        scanned=lambda rows: rows.alias(through=Unindexed(models.F("scenario"))).filter(through__in=wanted),
    )


def _step_clause(group: Sequence[str]) -> Clause:
    judged = StepAdvantage.objects.filter(verdict__in=group)
    judged = judged | StepAdvantage.objects.useless() if USELESS in group else judged
    own = judged.filter(value__trajectory=models.OuterRef("pk"))
    return Clause(
        indexed=lambda rows: rows.filter(pk__in=judged.values("value__trajectory")),
        scanned=lambda rows: rows.filter(models.Exists(own)),
    )


def _metadata_clause(project: Project, group: Sequence[str]) -> Clause:
    """Trajectories with one of the values. Many matches are looked up for each row of a scan."""
    values: dict[str, list[str]] = {}
    for word in group:
        name, _, value = word.partition("=")
        values.setdefault(name, []).append(value)
    # The values of one name are one search in the index, and an OR would be a scan.
    wanted = models.Q()
    for name, of_name in values.items():
        wanted |= models.Q(name=name, value__in=of_name)
    rows = TrajectoryMetadata.objects.filter(wanted)
    found = rows.filter(project=project).values("trajectory")
    return Clause(
        indexed=lambda all_rows: all_rows.filter(pk__in=found),
        scanned=lambda all_rows: all_rows.filter(models.Exists(rows.filter(trajectory=models.OuterRef("pk")))),
        is_few=lambda _: found[: FEW + 1].count() <= FEW,
    )


def _with_axes(group: Sequence[str]) -> models.QuerySet[Scenario]:
    wanted = models.Q()
    for word in group:
        axis, _, value = word.partition("=")
        wanted |= models.Q(axis_rows__axis=axis, axis_rows__value=value)
    return Scenario.objects.filter(wanted)


@named_list("trajectories", page="trajectory-list")
class TrajectoryList(TrajectoryFilter, ListParams):
    sorts: ClassVar[Sequence[str]] = ("-id", "id", "-commands", "commands")
    beside: ClassVar[frozenset[str]] = ListParams.beside | {"full"}

    full: bool = Field(default=False, description="Adds `steps`, `turns` and the checker's output to each row.")

    def shown(self, access: Access, columns: Callable[[TrajectoryQuerySet], Any]) -> KeysetPage[Any]:
        """A page; a blind reviewer gets no trajectories of pending samples. The log notes that the caller looked."""
        rows = without_pending(access, Trajectory.objects.of(access.project), "sample")
        page = self.read(rows, self.clauses(access.project), columns=columns)
        record_unblinding(access, [row.sample_id for row in page.rows])
        return page


@named_list("pairs", page="pair-list")
class PairList(ListParams):
    lookups: ClassVar[Mapping[str, str]] = {"scenario": "scenario_id", "strategy": "strategy"}

    scenario: Annotated[Words, ids_of("scenario")] = ()
    strategy: Annotated[Words, one_of(Strategy.values)] = ()
    run: str | None = None

    def rows(self, project: Project) -> PairQuerySet:
        """The project's pairs that match. A run of another project: `NotFound`."""
        rows = self.narrow(Pair.objects.of(project)).for_list()
        return rows.filter(run=find(Run.objects.of(project), self.run, "run")) if self.run is not None else rows
