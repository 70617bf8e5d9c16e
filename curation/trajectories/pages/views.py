from collections.abc import Sequence
from urllib.parse import urlencode

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse

from curation.projects.access import Access, open_to, project_page
from curation.projects.models import Scope
from curation.samples.blind import record_unblinding, reviews_blind, unblind, without_pending
from curation.samples.models import SampleStatus
from curation.trajectories.filters import PairList, TrajectoryList
from curation.trajectories.models import Outcome, Pair, Trajectory, TrajectoryQuerySet
from curation.trajectories.pages.agents import AgentBoard, board_page
from curation.trajectories.pages.context import trajectory_view
from curation.trajectories.pages.tasks import TaskList, task_out, tasks_of
from curation.trajectories.replay import replay_refusal, start_replay
from curation.web.ids import find, number
from curation.web.lists.pages import chips, column, controls, list_context, page_urls, tabs
from curation.web.problems import Problem
from curation.web.text.markup import with_signs

# The outcomes of imported runs; `failed` and `error` are also those that say more, which the filter offers.
TABS = [
    *((outcome.value, str(outcome.label)) for outcome in (Outcome.SOLVED, Outcome.FAILED)),
    (Outcome.ERROR.value, "Error"),
    (Outcome.UNKNOWN.value, str(Outcome.UNKNOWN.label)),
]


@project_page(Scope.READ, "GET")
def trajectory_list(request: HttpRequest, access: Access) -> HttpResponse:
    """A filter that is refused becomes `problem`; the form shows its fields as they were sent."""
    given = request.GET
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
    shown = {
        "list_url": url,
        "query": params.to_query(),
        "sort": params.sort or params.sorts[0],
        "tabs": tabs(url, params, "outcome", TABS),
        "controls": controls(params.labels, given if problem else QueryDict(params.to_query()), params.choices),
        "chips": chips(url, params),
        "commands": column(url, params, "commands", "Commands"),
        "rows": rows,
        "problem": problem,
    }
    api_path = params.url(f"/api/v1/projects/{access.project.slug}/trajectories")
    context = {"page": shown, "api_path": api_path, **pages, "leaves_out_pending": reviews_blind(access)}
    return render(request, "trajectories/list.html", context, status=problem.status if problem else 200)


@project_page(Scope.READ, "GET")
def trajectory_page(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    trajectory = trajectory_of(access, pk)
    unblind(access, trajectory.sample)
    view = trajectory_view(
        access,
        trajectory,
        view=request.GET.get("view", ""),
        other_id=request.GET.get("with", ""),
        step=number(request.GET.get("step", "")),
    )
    context = {
        "trajectory": trajectory,
        "view": view,
        "may_run": access.may(Scope.RUN),
        "no_replay": replay_refusal(trajectory),
        "next_steps": _next_steps(access, trajectory),
        "search_url": "",  # `/` finds in the session here
        "api_path": f"/api/v1/trajectories/{trajectory.pk}",
    }
    return render(request, "trajectories/page.html", context)


def _next_steps(access: Access, trajectory: Trajectory) -> list[tuple[str, str]]:
    """The review of its sample while nobody has decided it, then the trajectories of its scenario or task."""
    slug, sample = access.project.slug, trajectory.sample
    steps = []
    if sample is not None and sample.status == SampleStatus.PENDING and access.may(Scope.REVIEW):
        steps.append(("Review the sample", reverse("sample-page", args=[slug, sample.pk])))
    if trajectory.scenario_id is not None:
        listed = f"{reverse('trajectory-list', args=[slug])}?scenario={trajectory.scenario_id}"
        steps.append(("Other trajectories of the scenario", listed))
    elif trajectory.task:
        listed = f"{reverse('trajectory-list', args=[slug])}?{urlencode({'task': trajectory.task})}"
        steps.append(("Other runs of the task", listed))
    return open_to(access, [*steps, ("Launch pairs", f"{reverse('run-new', args=[slug])}?kind=pairs")])


@project_page(Scope.READ, "GET")
def trajectory_tasks(request: HttpRequest, access: Access) -> HttpResponse:
    """A line for each task, as REST counts them."""
    params = TaskList.from_query(request.GET)
    page, counts = tasks_of(access, params)
    context = list_context(request, params, page, f"/api/v1/projects/{access.project.slug}/tasks")
    rows = [task_out(row.task, counts[row.task], params.k) for row in page.rows]
    context["rows"] = [row | {"name": with_signs(str(row["task"]))} for row in rows]
    context["leaves_out_pending"] = reviews_blind(access)
    return render(request, "trajectories/tasks.html", context)


@project_page(Scope.READ, "GET")
def trajectory_agents(request: HttpRequest, access: Access) -> HttpResponse:
    """The leaderboard of agents and models, by sets of tasks."""
    params = AgentBoard.from_query(request.GET)
    context = {
        "sets": board_page(access, params),
        "k": params.k,
        "conditions": params.words(),
        "leaves_out_pending": reviews_blind(access),
        "api_path": f"/api/v1/projects/{access.project.slug}/agents",
    }
    return render(request, "trajectories/agents.html", context)


@project_page(Scope.RUN, "POST")
def trajectory_replay(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    run = start_replay(access=access, trajectory=trajectory_of(access, pk))
    messages.success(request, f"Run {run.pk} replays trajectory {pk}.")
    return redirect("run-page", access.project.slug, run.pk)


@project_page(Scope.READ, "GET")
def pair_list(request: HttpRequest, access: Access) -> HttpResponse:
    params = PairList.from_query(request.GET)
    page = params.page(pairs_shown(access, params.rows(access.project)))
    look_at_pairs(access, page.rows)
    context = list_context(request, params, page, f"/api/v1/projects/{access.project.slug}/pairs")
    context["leaves_out_pending"] = reviews_blind(access)
    return render(request, "trajectories/pairs/list.html", context)


def trajectory_of(access: Access, pk: str) -> Trajectory:
    return find(Trajectory.objects.of(access.project).with_text().select_related("sample"), pk, "trajectory")


def pairs_shown(access: Access, rows: QuerySet[Pair]) -> QuerySet[Pair]:
    """A pair says which of two trajectories ended better."""
    return without_pending(access, rows, "chosen__sample", "rejected__sample")


def look_at_pairs(access: Access, pairs: Sequence[Pair]) -> None:
    record_unblinding(access, [row.sample_id for pair in pairs for row in (pair.chosen, pair.rejected)])
