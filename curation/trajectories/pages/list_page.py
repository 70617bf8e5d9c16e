"""The trajectories list: the rows, and the URL of every link."""

from dataclasses import dataclass, field

from django.http import QueryDict
from django.urls import reverse

from curation.projects.access import Access
from curation.trajectories.filters import TrajectoryList
from curation.trajectories.models import Outcome, Trajectory, TrajectoryQuerySet
from curation.web.lists.pages import Chip, FilterControl, SortColumn, Tab, chips, column, controls, page_urls, tabs
from curation.web.problems import Problem

# The outcomes of imported runs; `failed` and `error` are also those that say more, which the filter offers.
TABS = [
    *((outcome.value, str(outcome.label)) for outcome in (Outcome.SOLVED, Outcome.FAILED)),
    (Outcome.ERROR.value, "Error"),
    (Outcome.UNKNOWN.value, str(Outcome.UNKNOWN.label)),
]


@dataclass(frozen=True, slots=True)
class TrajectoryListPage:
    """The context of `trajectories/list.html`. `problem`: the filter was refused, `controls` are as sent."""

    list_url: str
    api_path: str
    query: str
    sort: str
    tabs: tuple[Tab, ...]
    controls: dict[str, FilterControl]
    chips: tuple[Chip, ...]
    commands: SortColumn
    rows: list[Trajectory] = field(default_factory=list)
    pages: dict[str, str | None] = field(default_factory=dict)
    problem: Problem | None = None


def list_page(access: Access, given: QueryDict) -> TrajectoryListPage:
    """The page of a URL. A filter that is refused becomes `problem`; the form shows its fields as they were sent."""
    url = reverse("trajectory-list", args=[access.project.slug])
    params, problem = TrajectoryList(), None
    rows: list[Trajectory] = []
    pages: dict[str, str | None] = {}
    try:
        params = TrajectoryList.from_query(given)
        page = params.shown(access, TrajectoryQuerySet.for_list)
        rows, pages = page.rows, page_urls(url, params, page.next_cursor)
    except Problem as refused:
        if refused.code == "unknown_parameter":
            raise  # no field of the form could show it; the list is shown without it
        problem = refused
    return TrajectoryListPage(
        list_url=url,
        api_path=params.url(f"/api/v1/projects/{access.project.slug}/trajectories"),
        query=params.to_query(),
        sort=params.sort or params.sorts[0],
        tabs=tabs(url, params, "outcome", TABS),
        controls=controls(params.labels, given if problem else QueryDict(params.to_query()), params.choices),
        chips=chips(url, params),
        commands=column(url, params, "commands", "Commands"),
        rows=rows,
        pages=pages,
        problem=problem,
    )
