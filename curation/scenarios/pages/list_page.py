"""What the scenarios list shows: tabs by status, a filter per axis, rows made harmless."""

from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode

from django.http import HttpRequest, QueryDict
from django.urls import reverse
from django.utils.safestring import SafeString

from curation.projects.access import Access
from curation.projects.models import Scope
from curation.scenarios.models import Scenario, Status
from curation.scenarios.pages.filters import ScenarioFilter
from curation.scenarios.pages.queries import OWN_PARAMETERS, ScenarioListParams, scenario_page
from curation.scenarios.taxonomy.axes import taxonomy_of
from curation.web.lists.pages import page_urls, read_params
from curation.web.problems import Problem
from curation.web.text.markup import visible, with_signs


@dataclass(frozen=True, slots=True)
class Tab:
    label: str
    url: str
    current: bool


@dataclass(frozen=True, slots=True)
class AxisSelect:
    """One axis as a select: its options are words of the filter, `task=cleanup`."""

    name: str
    options: tuple[tuple[str, str], ...]
    chosen: str


@dataclass(frozen=True, slots=True)
class Chip:
    """A part of the filter that has no control of its own, and the list without it."""

    name: str
    label: str
    value: str
    without_url: str


@dataclass(frozen=True, slots=True)
class Row:
    scenario: Scenario
    name: SafeString
    title: SafeString
    axes: str
    author: str
    reason: str


@dataclass(frozen=True, slots=True)
class ListPage:
    list_url: str
    api_path: str
    bundles_url: str
    text: str
    status: str
    query: str
    tabs: tuple[Tab, ...]
    axes: tuple[AxisSelect, ...]
    chips: tuple[Chip, ...]
    may_run: bool
    rows: list[Row] = field(default_factory=list)
    drafts: bool = False
    pages: dict[str, str | None] = field(default_factory=dict)
    problem: Problem | None = None


def list_page(request: HttpRequest, access: Access) -> ListPage:
    """The page of a URL. A filter that is not understood becomes `problem`; what was chosen stays chosen."""
    given = request.GET
    url = reverse("scenario-list", args=[access.project.slug])
    api = f"/api/v1/projects/{access.project.slug}/scenarios"
    rows: Sequence[Scenario] = ()
    pages: dict[str, str | None] = {}
    problem, query = None, ""
    try:
        found = scenario_page(access.project, read_params(ScenarioListParams, request), given)
        rows, pages = found.rows, page_urls(request, found.next_cursor)
        query = ScenarioFilter.from_query(given, besides=OWN_PARAMETERS).to_query()
    except Problem as refused:
        problem = refused
    selects = _axis_selects(access, given.getlist("axes"))
    return ListPage(
        list_url=url,
        api_path=_link(api, query),
        bundles_url=_link(f"{api}/bundles.zip", query),
        text=given.get("text", ""),
        status=given.get("status", ""),
        query=query,
        tabs=_tabs(url, given),
        axes=selects,
        chips=_chips(url, given, {select.chosen for select in selects}),
        may_run=access.may(Scope.RUN),
        rows=[_row(row) for row in rows],
        drafts=any(row.status == Status.DRAFT for row in rows),
        pages=pages,
        problem=problem,
    )


def _row(row: Scenario) -> Row:
    axes = ", ".join(str(value) for value in row.axes.values())
    author, reason = with_signs(row.authored_by), with_signs(row.reason)
    return Row(row, visible(row.name), visible(row.title), with_signs(axes), author, reason)


def _tabs(url: str, given: QueryDict) -> tuple[Tab, ...]:
    """One tab per status; a tab keeps what else the list was narrowed by."""
    current = given.get("status", "")
    others = [Tab(s.label, _changed(url, given, status=s.value), s.value == current) for s in Status]
    return (Tab("All", _changed(url, given, status=None), not current), *others)


def _axis_selects(access: Access, chosen: Sequence[str]) -> tuple[AxisSelect, ...]:
    selects = []
    for axis in taxonomy_of(access.project.settings).axes.values():
        mine = next((word for word in chosen if word.startswith(f"{axis.name}=")), "")
        options = {f"{axis.name}={value}": value for value in axis.values}
        if mine and mine not in options:
            options[mine] = mine.partition("=")[2]  # several values, or one that has left the taxonomy
        selects.append(AxisSelect(axis.name, tuple(options.items()), mine))
    return tuple(selects)


def _chips(url: str, given: QueryDict, selected: Container[str]) -> tuple[Chip, ...]:
    """Filters without a control: those that links bring, and axes that no select shows."""
    names = ("id", "name", "authored_by", "run")
    chips = [
        Chip(name, name.replace("_", " "), str(given[name]), _changed(url, given, **{name: None}))
        for name in names
        if given.get(name)
    ]
    for word in given.getlist("axes"):
        if word and word not in selected:
            rest = given.copy()
            rest.setlist("axes", [other for other in given.getlist("axes") if other != word])
            chips.append(Chip("axes", "axes", word, _changed(url, rest)))
    return tuple(chips)


def _changed(url: str, given: QueryDict, **changes: str | None) -> str:
    """The list's address with other parameters, on its first page."""
    query = given.copy()
    for name, value in {"cursor": None, **changes}.items():
        query.pop(name, None)
        if value is not None:
            query[name] = value
    pairs = [(name, value) for name, values in query.lists() for value in values if value]
    return _link(url, urlencode(pairs))


def _link(url: str, query: str) -> str:
    return f"{url}?{query}" if query else url
