"""What the trajectories page shows: the rows, and the URL of every link."""

from dataclasses import dataclass, field

from django.http import QueryDict
from django.urls import reverse

from curation.projects.access import Access
from curation.samples.blind import look_at, without_pending
from curation.samples.models import Status
from curation.scenarios.models import Terminal
from curation.trajectories.filters import NO_TERMINAL, NOT_REPLAYED, TrajectoryList
from curation.trajectories.models import Outcome, ReplayState, Trajectory
from curation.web.lists.pages import Chip, Choices, Column, Control, Tab, chips, column, controls, page_urls, tabs
from curation.web.problems import Problem

LABELS = {
    "outcome": "Outcome",
    "keep": "Kept",
    "terminal": "Terminal",
    "replay": "Replay",
    "status": "Review",
    "name": "Scenario",
    "model": "Model",
    "run": "Run",
    "axes": "Axes",
    "scenario": "Scenario id",
    "id": "Trajectory",
    "created_after": "Created from",
    "created_before": "Created before",
}
OPTIONS: dict[str, Choices] = {
    "outcome": Outcome.choices,
    "keep": [("true", "Kept"), ("false", "Not kept")],
    "terminal": [*Terminal.choices, (NO_TERMINAL, "No terminal")],
    "replay": [(value or NOT_REPLAYED, label) for value, label in ReplayState.choices],
    "status": Status.choices,
}


@dataclass(frozen=True, slots=True)
class ListPage:
    """The context of `trajectories/list.html`. `problem`: the filter was refused, `controls` are as sent."""

    list_url: str
    api_path: str
    query: str
    sort: str
    tabs: tuple[Tab, ...]
    controls: dict[str, Control]
    chips: tuple[Chip, ...]
    commands: Column
    rows: list[Trajectory] = field(default_factory=list)
    pages: dict[str, str | None] = field(default_factory=dict)
    problem: Problem | None = None


def list_page(access: Access, given: QueryDict) -> ListPage:
    """The page of a URL. A filter that is refused becomes `problem`; the form shows its fields as they were sent."""
    url = reverse("trajectory-list", args=[access.project.slug])
    params, problem = TrajectoryList(), None
    rows: list[Trajectory] = []
    pages: dict[str, str | None] = {}
    try:
        params = TrajectoryList.from_query(given)
        page = params.page(without_pending(access, params.rows(access.project), "sample"))
        look_at(access, [row.sample_id for row in page.rows])
        rows, pages = page.rows, page_urls(url, params, page.next_cursor)
    except Problem as refused:
        problem = refused
    return ListPage(
        list_url=url,
        api_path=params.url(f"/api/v1/projects/{access.project.slug}/trajectories"),
        query=params.to_query(),
        sort=params.sort or params.sorts[0],
        tabs=tabs(url, params, "outcome", Outcome.choices),
        controls=controls(LABELS, given if problem else QueryDict(params.to_query()), OPTIONS),
        chips=chips(url, params, LABELS, OPTIONS),
        commands=column(url, params, "commands", "Commands"),
        rows=rows,
        pages=pages,
        problem=problem,
    )
