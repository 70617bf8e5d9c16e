"""Deletion of a run with its trajectories, replays and pairs: rows that block it, and rows deleted with it."""

from collections.abc import Iterable
from typing import Any

from django.db.models import Q, QuerySet
from django.urls import reverse

from curation.projects.removal.rows import Rest, goes_with, rests_on
from curation.runs.models import Run
from curation.trajectories.models import Pair, Replay, Trajectory


@rests_on(Run)
def rows_of_others(run: Run) -> Iterable[Rest]:
    slug = run.project.slug
    pairs = Pair.objects.filter(Q(chosen__run=run) | Q(rejected__run=run)).exclude(run=run).count()
    if pairs:
        yield Rest(f"Pairs of other runs that use its trajectories: {pairs}.", reverse("pair-list", args=[slug]))
    url = reverse("trajectory-list", args=[slug])
    replays = Replay.objects.filter(trajectory__run=run).exclude(run=run).count()
    if replays:
        yield Rest(f"Replays by other runs of its trajectories: {replays}.", f"{url}?run={run.pk}")
    replayed = Replay.objects.filter(run=run).exclude(trajectory__run=run).count()
    if replayed:
        yield Rest(f"Trajectories of other runs that it replayed: {replayed}.", url)
    if run.kind != "import":
        through = Trajectory.objects.filter(scenario__run=run).exclude(run=run).count()
        if through:
            yield Rest(f"Trajectories of other runs through its scenarios: {through}.", url)


@goes_with(Run)
def rows_of_trajectories(run: Run) -> Iterable[QuerySet[Any]]:
    """Pairs, and trajectories whose sample is gone."""
    yield Pair.objects.filter(run=run)
    own = Q(run=run) | Q(scenario__run=run) if run.kind == "import" else Q(run=run)
    yield Trajectory.objects.filter(own, project=run.project_id, sample=None)
