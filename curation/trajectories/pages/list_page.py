"""What the trajectories page shows: the rows, and every link of it as a URL."""

from dataclasses import dataclass, field
from urllib.parse import urlencode

from django.http import QueryDict
from django.urls import reverse

from curation.projects.access import Access
from curation.samples.list.pages import Chip, Column, Control
from curation.samples.models import Status
from curation.scenarios.models import Terminal
from curation.trajectories.models import Outcome, ReplayState, Trajectory
from curation.trajectories.pages.filters import NO_TERMINAL, NOT_REPLAYED, TrajectoryFilter
from curation.trajectories.pages.queries import OWN_PARAMETERS, SORTS, filter_of, trajectory_page
from curation.web.problems import FieldError, Problem

PAGE_ROWS = 50
DEFAULT_SORT = next(iter(SORTS))
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
    "created_after": "Made from",
    "created_before": "Made before",
}
WORDS: dict[str, tuple[str, ...]] = {
    "keep": ("true", "false"),
    "terminal": (*Terminal.values, NO_TERMINAL),
    "replay": (*filter(None, ReplayState.values), NOT_REPLAYED),
    "status": tuple(Status.values),
}


@dataclass(frozen=True, slots=True)
class Tab:
    label: str
    url: str
    current: bool


@dataclass(frozen=True, slots=True)
class ListPage:
    """The context of `trajectories/list.html`. `problem`: the filter was not understood, `controls` are as sent."""

    list_url: str
    api_path: str
    query: str
    sort: str
    tabs: list[Tab]
    controls: dict[str, Control]
    chips: list[Chip]
    commands: Column
    rows: list[Trajectory] = field(default_factory=list)
    newer_url: str = ""
    older_url: str = ""
    problem: Problem | None = None


def list_page(access: Access, given: QueryDict) -> ListPage:
    """The page of a URL."""
    url = reverse("trajectory-list", args=[access.project.slug])
    sort = given.get("sort") or DEFAULT_SORT
    wanted, problem = TrajectoryFilter(), None
    rows: list[Trajectory] = []
    cursor, next_cursor = given.get("cursor") or None, None
    try:
        wanted = filter_of(given, besides=OWN_PARAMETERS)
        if sort not in SORTS:
            raise Problem(f"The list has no order {sort!r}.", errors=[FieldError("sort", "unknown sort order")])
        page = trajectory_page(access.project, wanted, sort=sort, cursor=cursor, limit=PAGE_ROWS)
        rows, next_cursor = page.rows, page.next_cursor
    except Problem as refused:
        problem = refused
    pairs = [(name, value) for name, values in QueryDict(wanted.to_query()).lists() for value in values]
    order = [] if sort == DEFAULT_SORT else [("sort", sort)]
    return ListPage(
        list_url=url,
        api_path=_link(f"/api/v1/projects/{access.project.slug}/trajectories", pairs + order),
        query=wanted.to_query(),
        sort=sort,
        tabs=_tabs(url, pairs, order),
        controls=_controls(QueryDict(wanted.to_query()) if problem is None else given),
        chips=[
            Chip(LABELS[name].lower(), value.replace(",", " or "), _link(url, pairs[:n] + pairs[n + 1 :] + order))
            for n, (name, value) in enumerate(pairs)
        ],
        commands=_commands(url, pairs, sort),
        rows=rows,
        newer_url=_link(url, pairs + order) if cursor else "",
        older_url=_link(url, [*pairs, *order, ("cursor", next_cursor)]) if next_cursor else "",
        problem=problem,
    )


def _tabs(url: str, pairs: list[tuple[str, str]], order: list[tuple[str, str]]) -> list[Tab]:
    """One tab per outcome; a tab keeps what else the list was narrowed by."""
    rest = [pair for pair in pairs if pair[0] != "outcome"] + order
    current = ",".join(value for name, value in pairs if name == "outcome")
    chosen = [Tab(one.label, _link(url, [("outcome", one.value), *rest]), one.value == current) for one in Outcome]
    return [Tab("All", _link(url, rest), not current), *chosen]


def _controls(sent: QueryDict) -> dict[str, Control]:
    controls = {}
    for name, label in LABELS.items():
        value, *more = sent.getlist(name) or [""]
        options = WORDS.get(name, ())
        shown = (*options, value) if options and value and value not in options else options
        controls[name] = Control(name, label, value, shown, tuple(more))
    return controls


def _commands(url: str, pairs: list[tuple[str, str]], sort: str) -> Column:
    """The most commands first; a second click turns the order."""
    current, down = sort.removeprefix("-") == "commands", sort.startswith("-")
    following = "commands" if current and down else "-commands"
    aria = ("descending" if down else "ascending") if current else ""
    return Column("Commands", _link(url, [*pairs, ("sort", following)]), aria)


def _link(url: str, pairs: list[tuple[str, str]]) -> str:
    return f"{url}?{urlencode(pairs, safe=',:/=')}" if pairs else url
