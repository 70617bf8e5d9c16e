"""The filter of trajectories: of the page, the REST list and runs; and the list of pairs."""

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

from django.db import models
from django.db.models.fields.json import KeyTransform
from pydantic import ConfigDict, Field, model_validator

from curation.projects.models import Project
from curation.runs.models import Run
from curation.samples.list.clauses import FEW, Clause, all_matching, column_in, column_range, page_rows
from curation.samples.models import Status
from curation.scenarios.models import Scenario, Terminal
from curation.trajectories.models import (
    RECORDED,
    Known,
    Outcome,
    Pair,
    PairQuerySet,
    ReplayState,
    StepAdvantage,
    Strategy,
    Trajectory,
    TrajectoryMetadata,
    TrajectoryQuerySet,
    meant_by,
)
from curation.web.ids import find, known_ids
from curation.web.lists.filters import Axes, Moment, RowFilter, Words, ids_of, one_of
from curation.web.lists.params import ListParams, named_list
from judging.statistics.values import Verdict

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
        "name": "scenario__name",
        "instance_id": "instance_id",
        "repo": "repo",
        "status": "sample__status",
        "keep": "keep",
        "steps_min": "steps__gte",
        "steps_max": "steps__lte",
        "created_after": "created_at__gte",
        "created_before": "created_at__lt",
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
        **dict.fromkeys(RECORDED, Known.choices),
        "step": [(USELESS, "Has a useless step"), *((one, f"Has a step: {one}") for one in map(str, Verdict))],
        "status": Status.choices,
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
    step: Annotated[Words, one_of([USELESS, *map(str, Verdict)])] = Field(
        default=(),
        description="The verdict of a probe on one of its steps: useless, better, worse, likely, alike, open.",
    )
    documentation_read: Annotated[Words, one_of(Known.values)] = Field(
        default=(), description="Whether the provider's documentation was read, by the sandbox's record."
    )
    provider_asked: Annotated[Words, one_of(Known.values)] = Field(
        default=(), description="Whether the provider was asked, by the sandbox's record."
    )
    status: Annotated[Words, one_of(Status.values)] = Field(default=(), description="The review status of its sample.")
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
        return all_matching(self._beside_clauses(project), self._clauses(project))

    def _clauses(self, project: Project) -> list[Clause]:
        """The conditions that have an index of their own."""
        found = [
            column_in(name, group) for name in ("task", "agent", "model", "source") for group in getattr(self, name)
        ]
        for group in self.outcome:
            found.append(column_in("outcome", sorted({one for word in group for one in meant_by(word)})))
        found += [_metadata_clause(project, group) for group in self.metadata]
        bounds = {"gte": self.reward_min, "lte": self.reward_max}
        given = {name: value for name, value in bounds.items() if value is not None}
        return [*found, column_range("reward", given, wide=False)] if given and not self.reward else found

    def _beside_clauses(self, project: Project) -> TrajectoryQuerySet:
        rows = self.narrow(Trajectory.objects.of(project))
        for group in self.scenario:
            known = known_ids(Scenario.objects.of(project), group, "scenario", where=project.slug)
            rows = rows.filter(scenario_id__in=known)
        for group in self.run:
            rows = rows.filter(run_id__in=known_ids(Run.objects.of(project), group, "run", where=project.slug))
        for group in self.terminal:
            rows = rows.filter(terminal__in=["" if word == NO_TERMINAL else word for word in group])
        for group in self.replay:
            rows = rows.filter(replay__in=["" if word == NOT_REPLAYED else word for word in group])
        for group in self.step:
            rows = rows.filter(models.Exists(_advantages_of(group)))
        for fact in RECORDED:
            for group in getattr(self, fact):
                rows = rows.recorded(fact, group)
        for group in self.axes:
            rows = rows.filter(scenario__in=_with_axes(group))
        if self.reward:
            named = KeyTransform(self.reward, "rewards")
            rows = rows.filter(rewards__has_key=self.reward)
            for lookup, value in {"gte": self.reward_min, "lte": self.reward_max}.items():
                rows = rows if value is None else rows.alias(named=named).filter(**{f"named__{lookup}": value})
        return rows


def _advantages_of(group: Sequence[str]) -> models.QuerySet[StepAdvantage]:
    own = StepAdvantage.objects.filter(value__trajectory=models.OuterRef("pk"))
    return own.filter(verdict__in=group) | own.useless() if USELESS in group else own.filter(verdict__in=group)


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

    def rows(self, project: Project) -> TrajectoryQuerySet:
        rows = page_rows(self._beside_clauses(project), self._clauses(project), sort=self.order())
        return rows.with_text() if self.full else rows.for_list()


@named_list("pairs", page="pair-list")
class PairList(ListParams):
    sorts: ClassVar[Sequence[str]] = ("-id", "id")
    lookups: ClassVar[Mapping[str, str]] = {"scenario": "scenario_id", "strategy": "strategy"}

    scenario: Annotated[Words, ids_of("scenario")] = ()
    strategy: Annotated[Words, one_of(Strategy.values)] = ()
    run: str | None = None

    def rows(self, project: Project) -> PairQuerySet:
        """The project's pairs that match. A run of another project: `NotFound`."""
        rows = self.narrow(Pair.objects.of(project)).for_list()
        return rows.filter(run=find(Run.objects.of(project), self.run, "run")) if self.run is not None else rows
