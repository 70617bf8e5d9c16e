"""The filter of trajectories: of the page, the REST list and runs; and the list of pairs."""

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

from django.db import models
from pydantic import ConfigDict, Field, model_validator

from curation.projects.models import Project
from curation.runs.models import Run
from curation.samples.models import Status
from curation.scenarios.models import Scenario, Terminal
from curation.trajectories.models import (
    RECORDED,
    Known,
    Outcome,
    Pair,
    PairQuerySet,
    ReplayState,
    Strategy,
    Trajectory,
    TrajectoryQuerySet,
)
from curation.web.ids import find, known_ids
from curation.web.lists.filters import Axes, Moment, RowFilter, Words, ids_of, one_of
from curation.web.lists.params import ListParams, named_list

# The word of a URL for a column that is empty.
NO_TERMINAL, NOT_REPLAYED = "none", "none"


class TrajectoryFilter(RowFilter):
    """Which trajectories; an empty filter matches all. Unknown fields are refused."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, json_schema_extra={"examples": [{"outcome": ["solved"], "keep": True}]}
    )

    lookups: ClassVar[Mapping[str, str]] = {
        "id": "pk",
        "name": "scenario__name",
        "model": "model",
        "status": "sample__status",
        "outcome": "outcome",
        "keep": "keep",
        "created_after": "created_at__gte",
        "created_before": "created_at__lt",
    }

    labels: ClassVar[Mapping[str, str]] = {
        "outcome": "Outcome",
        "keep": "Kept",
        "terminal": "Terminal",
        "replay": "Replay",
        "status": "Review",
        "name": "Scenario",
        "model": "Model",
        "run": "Run",
        **RECORDED,
        "axes": "Axes",
        "scenario": "Scenario id",
        "id": "Trajectory",
        "created_after": "Created from",
        "created_before": "Created before",
    }
    choices: ClassVar[Mapping[str, Sequence[tuple[str, str]]]] = {
        "outcome": Outcome.choices,
        "keep": [("true", "Kept"), ("false", "Not kept")],
        "terminal": [*Terminal.choices, (NO_TERMINAL, "No terminal")],
        "replay": [(value or NOT_REPLAYED, label) for value, label in ReplayState.choices],
        **dict.fromkeys(RECORDED, Known.choices),
        "status": Status.choices,
    }

    id: Annotated[Words, ids_of("trajectory")] = Field(default=(), description="Ids of the trajectories themselves.")
    scenario: Annotated[Words, ids_of("scenario")] = Field(default=(), description="Ids of scenarios.")
    name: Words = Field(default=(), description="Names of scenarios.")
    outcome: Annotated[Words, one_of(Outcome.values)] = ()
    keep: bool | None = Field(default=None, description="Whether it was kept.")
    terminal: Annotated[Words, one_of([*Terminal.values, NO_TERMINAL])] = ()
    model: Words = Field(default=(), description="Names of endpoints.")
    run: Annotated[Words, ids_of("run")] = Field(default=(), description="Ids of rollout runs.")
    replay: Annotated[Words, one_of([NOT_REPLAYED, *filter(None, ReplayState.values)])] = ()
    documentation_read: Annotated[Words, one_of(Known.values)] = Field(
        default=(), description="Whether the provider's documentation was read, by the sandbox's record."
    )
    provider_asked: Annotated[Words, one_of(Known.values)] = Field(
        default=(), description="Whether the provider was asked, by the sandbox's record."
    )
    status: Annotated[Words, one_of(Status.values)] = Field(default=(), description="The review status of its sample.")
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
        for fact in RECORDED:
            for group in getattr(self, fact):
                rows = rows.recorded(fact, group)
        for group in self.axes:
            rows = rows.filter(scenario__in=_with_axes(group))
        return rows


def _with_axes(group: Sequence[str]) -> models.QuerySet[Scenario]:
    wanted = models.Q()
    for word in group:
        axis, _, value = word.partition("=")
        wanted |= models.Q(axis_rows__axis=axis, axis_rows__value=value)
    return Scenario.objects.filter(wanted)


@named_list("trajectories", page="trajectory-list")
class TrajectoryList(TrajectoryFilter, ListParams):
    """The parameters of the list of trajectories."""

    sorts: ClassVar[Sequence[str]] = ("-id", "id", "-commands", "commands")
    beside: ClassVar[frozenset[str]] = ListParams.beside | {"full"}

    full: bool = Field(default=False, description="Adds `turns` and the checker's output to each row.")

    def rows(self, project: Project) -> TrajectoryQuerySet:
        rows = self.apply(project)
        return rows.with_text() if self.full else rows.for_list()


@named_list("pairs", page="pair-list")
class PairList(ListParams):
    """The parameters of the list of pairs."""

    sorts: ClassVar[Sequence[str]] = ("-id", "id")
    lookups: ClassVar[Mapping[str, str]] = {"scenario": "scenario_id", "strategy": "strategy"}

    scenario: Annotated[Words, ids_of("scenario")] = ()
    strategy: Annotated[Words, one_of(Strategy.values)] = ()
    run: str | None = None

    def rows(self, project: Project) -> PairQuerySet:
        """The project's pairs that match. A run of another project: `NotFound`."""
        rows = self.narrow(Pair.objects.of(project)).for_list()
        return rows.filter(run=find(Run.objects.of(project), self.run, "run")) if self.run is not None else rows
