from collections.abc import Sequence
from urllib.parse import urlencode

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from curation.projects.access import Access, open_to, project_page
from curation.projects.models import Scope
from curation.samples.blind import look, look_at, reviews_blind, without_pending
from curation.samples.models import SampleStatus
from curation.trajectories.filters import PairList
from curation.trajectories.models import Pair, Trajectory
from curation.trajectories.pages.agents import AgentBoard, board_page
from curation.trajectories.pages.pages import list_page, trajectory_view
from curation.trajectories.pages.tasks import TaskList, task_out, tasks_of
from curation.trajectories.replay import replay_refusal, start_replay
from curation.web.ids import find, number
from curation.web.lists.pages import list_context
from curation.web.text.markup import with_signs


@project_page(Scope.READ, "GET")
def trajectory_list(request: HttpRequest, access: Access) -> HttpResponse:
    page = list_page(access, request.GET)
    context = {"page": page, "api_path": page.api_path, **page.pages, "leaves_out_pending": reviews_blind(access)}
    return render(request, "trajectories/list.html", context, status=page.problem.status if page.problem else 200)


@project_page(Scope.READ, "GET")
def trajectory_page(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    trajectory = trajectory_of(access, pk)
    look(access, trajectory.sample)
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
    look_at(access, [row.sample_id for pair in pairs for row in (pair.chosen, pair.rejected)])
