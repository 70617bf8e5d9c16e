"""The one filter of trajectories: of the page, the REST list and runs (`curation.web.lists.filters`)."""

from collections.abc import Sequence
from typing import Annotated

from django.db import models
from pydantic import ConfigDict, Field, model_validator

from curation.projects.models import Project
from curation.runs.models import Run
from curation.samples.models import Status
from curation.scenarios.models import Scenario, Terminal
from curation.trajectories.models import Outcome, ReplayState, Trajectory, TrajectoryQuerySet
from curation.web.lists.filters import Axes, Moment, RowFilter, Words, ids_of, one_of
from curation.web.problems import NotFound

# How a URL says what the column keeps as an empty text.
NO_TERMINAL, NOT_REPLAYED = "none", "none"


class TrajectoryFilter(RowFilter):
    """Which trajectories; without any field all of them. Unknown keys are refused."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, json_schema_extra={"examples": [{"outcome": ["solved"], "keep": True}]}
    )

    id: Annotated[Words, ids_of("trajectory")] = Field(default=(), description="Ids of the trajectories themselves.")
    scenario: Annotated[Words, ids_of("scenario")] = Field(default=(), description="Ids of scenarios.")
    name: Words = Field(default=(), description="Names of scenarios.")
    outcome: Annotated[Words, one_of(Outcome.values)] = ()
    keep: bool | None = Field(default=None, description="Whether it was kept.")
    terminal: Annotated[Words, one_of([*Terminal.values, NO_TERMINAL])] = ()
    model: Words = Field(default=(), description="Names of endpoints.")
    run: Annotated[Words, ids_of("run")] = Field(default=(), description="Ids of rollout runs.")
    replay: Annotated[Words, one_of([NOT_REPLAYED, *filter(None, ReplayState.values)])] = ()
    status: Annotated[Words, one_of(Status.values)] = Field(default=(), description="What its sample's review said.")
    axes: Axes = Field(default=(), description="`axis=value` of the scenario.")
    created_after: Moment | None = Field(default=None, description="From this moment on.")
    created_before: Moment | None = Field(default=None, description="Before this moment.")

    @model_validator(mode="after")
    def in_order(self) -> "TrajectoryFilter":
        if self.created_after and self.created_before and self.created_after >= self.created_before:
            raise ValueError("`created_after` does not lie before `created_before`")
        return self

    def apply(self, project: Project) -> TrajectoryQuerySet:
        """The project's trajectories that match. A run or scenario of another project: `NotFound`."""
        rows = Trajectory.objects.of(project)
        for group in self.id:
            rows = rows.filter(pk__in=[int(word) for word in group])
        for group in self.scenario:
            rows = rows.filter(scenario_id__in=_known(Scenario.objects.of(project), group, "scenario", project))
        for group in self.run:
            rows = rows.filter(run_id__in=_known(Run.objects.of(project), group, "run", project))
        for field, column in (("name", "scenario__name"), ("model", "model"), ("status", "sample__status")):
            for group in getattr(self, field):
                rows = rows.filter(**{f"{column}__in": group})
        for group in self.outcome:
            rows = rows.filter(outcome__in=group)
        for group in self.terminal:
            rows = rows.filter(terminal__in=["" if word == NO_TERMINAL else word for word in group])
        for group in self.replay:
            rows = rows.filter(replay__in=["" if word == NOT_REPLAYED else word for word in group])
        return self._of_axes(self._of_scalars(rows))

    def _of_scalars(self, rows: TrajectoryQuerySet) -> TrajectoryQuerySet:
        if self.keep is not None:
            rows = rows.filter(keep=self.keep)
        if self.created_after:
            rows = rows.filter(created_at__gte=self.created_after)
        if self.created_before:
            rows = rows.filter(created_at__lt=self.created_before)
        return rows

    def _of_axes(self, rows: TrajectoryQuerySet) -> TrajectoryQuerySet:
        for group in self.axes:
            rows = rows.filter(scenario__in=_with_axes(group))
        return rows


def _with_axes(group: Sequence[str]) -> models.QuerySet[Scenario]:
    wanted = models.Q()
    for word in group:
        axis, _, value = word.partition("=")
        wanted |= models.Q(axis_rows__axis=axis, axis_rows__value=value)
    return Scenario.objects.filter(wanted)


def _known(
    rows: models.QuerySet[Run] | models.QuerySet[Scenario], ids: Sequence[str], noun: str, project: Project
) -> list[int]:
    found = list(rows.filter(pk__in=[int(given) for given in ids]).values_list("pk", flat=True))
    missing = [given for given in ids if int(given) not in found]
    if missing:
        raise NotFound(f"There is no {noun} {', '.join(missing)} in {project.slug}.")
    return found
