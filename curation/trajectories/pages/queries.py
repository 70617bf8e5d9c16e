"""One page of the trajectories list and of the pairs list, for the pages and for REST."""

from collections.abc import Collection, Sequence
from typing import Annotated, ClassVar

from django.http import QueryDict
from pydantic import Field

from curation.projects.models import Project
from curation.runs.models import Run
from curation.trajectories.models import Pair, PairQuerySet, Strategy, Trajectory
from curation.trajectories.pages.filters import TrajectoryFilter
from curation.web.ids import find
from curation.web.lists.keyset import Page, paginate
from curation.web.lists.params import ListParams, one_of, words
from curation.web.problems import FieldError, Problem

Words = Annotated[list[str], Field(description="A comma list is an OR, repeated parameters are an AND.")]
# What a URL says, and the column that an index keeps in that order. The first is the default.
SORTS = {"-id": "-id", "id": "id", "-commands": "-commands", "commands": "commands"}


class TrajectoryListParams(ListParams):
    """The list's own parameters and the filter's; `TrajectoryFilter` checks the latter."""

    sorts: ClassVar[Sequence[str]] = tuple(SORTS)

    full: bool = Field(False, description="Adds `turns` and the checker's output to each row.")
    id: Words = []
    scenario: Words = []
    name: Words = []
    outcome: Words = []
    keep: str | None = None
    terminal: Words = []
    model: Words = []
    run: Words = []
    replay: Words = []
    status: Words = []
    axes: Words = []
    created_after: str | None = None
    created_before: str | None = None


# What of a URL is not the filter's.
OWN_PARAMETERS = frozenset({*ListParams.model_fields, "full"})


class PairListParams(ListParams):
    sorts: ClassVar[Sequence[str]] = ("-id", "id")

    scenario: Words = []
    strategy: Words = []
    run: str | None = None


def filter_of(query: QueryDict, *, besides: Collection[str] = OWN_PARAMETERS) -> TrajectoryFilter:
    return TrajectoryFilter.from_query(query, besides=besides)


def trajectory_page(
    project: Project,
    wanted: TrajectoryFilter,
    *,
    sort: str,
    cursor: str | None,
    limit: int,
    count: bool = False,
    full: bool = False,
) -> Page[Trajectory]:
    """Slim rows in one query; with `full` the transcripts too."""
    rows = wanted.apply(project)
    rows = rows.with_text() if full else rows.for_list()
    return paginate(rows, sort=SORTS[sort], cursor=cursor, limit=limit, count=count)


def pair_page(project: Project, params: PairListParams) -> Page[Pair]:
    rows = _pairs(project, params).for_list()
    return paginate(rows, sort=params.order(), cursor=params.cursor, limit=params.limit, count=params.count)


def _pairs(project: Project, params: PairListParams) -> PairQuerySet:
    rows = Pair.objects.of(project)
    for group in words(params.scenario):
        wrong = [word for word in group if not (word.isascii() and word.isdigit() and len(word) < 19)]
        if wrong:
            reason = f"{wrong[0]!r} is not the id of a scenario"
            raise Problem(f"scenario: {reason}", code="bad_filter", errors=[FieldError("scenario", reason)])
        rows = rows.filter(scenario_id__in=[int(word) for word in group])
    for group in words(params.strategy):
        rows = rows.filter(strategy__in=one_of("strategy", group, Strategy.values))
    if params.run is not None:
        rows = rows.filter(run=find(Run.objects.of(project), params.run, "run"))
    return rows
