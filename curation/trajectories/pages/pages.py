"""The list of trajectories, and the context of one trajectory's page; the template makes no queries."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from django.db.models import Count, Q, Sum
from django.http import QueryDict
from django.urls import reverse
from django.utils.safestring import SafeString

from curation.projects.access import Access
from curation.runs.models import Call
from curation.runs.pages.results import why_hidden
from curation.trajectories.filters import TrajectoryList
from curation.trajectories.models import RECORDED, Outcome, Replay, Trajectory, TrajectoryQuerySet
from curation.trajectories.probe.steps import StepWorths, step_worths
from curation.trajectories.session.conversation import Exchange
from curation.trajectories.session.shown import Shown, shown_as, view_named, views_of
from curation.trajectories.session.siblings import Siblings, compare_siblings
from curation.trajectories.session.steps import TERMINAL
from curation.web.lists.pages import Chip, FilterControl, SortColumn, Tab, chips, column, controls, page_urls, tabs
from curation.web.problems import Problem
from curation.web.text.markup import visible, with_signs, without_colours
from curation.web.text.transcript import Excerpt, TerminalStep

# Differences of a replay that the page lists, and characters of each side.
DIFFERENCES, SHOWN = 50, 2_000


@dataclass(frozen=True, slots=True)
class ReplayDifferenceLine:
    """What differed in a replay. `step` is None for the terminal and the checker, which belong to no step."""

    step: int | None
    what: SafeString
    recorded: SafeString
    replayed: SafeString


@dataclass(frozen=True, slots=True)
class ReplayView:
    row: Replay
    differences: list[ReplayDifferenceLine]
    more: int


@dataclass(frozen=True, slots=True)
class TrajectoryView:
    """`repeated` in percent; `views` are the names and addresses of the other views."""

    view: str
    views: list[tuple[str, str]]
    session: Excerpt[TerminalStep] | Excerpt[Exchange]
    repeated: int
    siblings: Siblings
    worths: StepWorths | None
    replay: ReplayView | None
    checker: SafeString
    panic_reason: SafeString
    previous_url: str
    next_url: str
    sample_url: str
    calls_url: str
    costs: dict[str, Any] | None
    axes: list[tuple[str, str]]


def trajectory_view(
    access: Access, trajectory: Trajectory, *, view: str = "", other_id: str = "", step: int | None = None
) -> TrajectoryView:
    """Needs `with_text()`; `step` is one that must be shown."""
    slug = access.project.slug
    session = shown_as(access, trajectory, view_named(trajectory, view))
    ids = Trajectory.objects.siblings_of(trajectory).values_list("pk", flat=True)
    before, after = ids.filter(pk__lt=trajectory.pk).last(), ids.filter(pk__gt=trajectory.pk).first()
    return TrajectoryView(
        view=session.view,
        views=[(name, f"?view={name}") for name in sorted(views_of(trajectory))],
        session=session.opening(around=step),
        repeated=round(trajectory.repeated_share * 100),
        siblings=compare_siblings(access, trajectory, session, other_id=other_id),
        worths=step_worths(access, trajectory),
        replay=_replay(access, trajectory),
        checker=visible(without_colours(trajectory.text.checker_output).rstrip()),
        panic_reason=visible(trajectory.panic_reason),
        previous_url=_page_url(slug, before, view),
        next_url=_page_url(slug, after, view),
        sample_url=reverse("sample-page", args=[slug, trajectory.sample_id]) if trajectory.sample_id else "",
        calls_url=_calls_url(access, trajectory),
        costs=_costs(trajectory),
        axes=[
            (with_signs(RECORDED.get(axis, axis)), with_signs(str(value))) for axis, value in trajectory.labels.items()
        ],
    )


def _page_url(slug: str, pk: int | None, view: str) -> str:
    return f"{reverse('trajectory-page', args=[slug, pk])}{f'?view={view}' if view else ''}" if pk else ""


def _calls_url(access: Access, trajectory: Trajectory) -> str:
    if trajectory.run is None or why_hidden(access, [trajectory.run]):
        return ""
    return reverse("run-calls", args=[access.project.slug, trajectory.run_id])


def _costs(trajectory: Trajectory) -> dict[str, Any] | None:
    """The `calls` of one rollout, the sum of known costs in US dollars (`cost`) and the number of `unknown` ones; None
    if the run is deleted or has no recorded call."""
    items = {f"item__{name}": value for name, value in trajectory.call_items.items()}
    calls = Call.objects.filter(item__run=trajectory.run_id, **items)
    # Before the sum, which takes the column's name.
    counts = {"calls": Count("id"), "unknown": Count("id", filter=Q(cost=None))}
    found = calls.aggregate(**counts, cost=Sum("cost", default=Decimal(0)))
    return found if found["calls"] else None


def _replay(access: Access, trajectory: Trajectory) -> ReplayView | None:
    row = Replay.objects.filter(trajectory=trajectory).select_related("run").order_by("-id").first()
    if row is None:
        return None
    kept = row.differences[:DIFFERENCES]
    session = shown_as(access, trajectory, TERMINAL)  # whose turns a replay names
    return ReplayView(row, [_difference(session, entry) for entry in kept], len(row.differences) - len(kept))


def _difference(session: Shown, entry: Mapping[str, object]) -> ReplayDifferenceLine:
    turn = entry.get("turn")
    return ReplayDifferenceLine(
        step=session.step_of(turn) if isinstance(turn, int) else None,
        what=visible(str(entry.get("what") or "")),
        recorded=visible(without_colours(str(entry.get("recorded"))[:SHOWN])),
        replayed=visible(without_colours(str(entry.get("replayed"))[:SHOWN])),
    )


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
