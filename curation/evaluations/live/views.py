"""Pages of live episodes: the figures while the run works and after, the list of episodes, one with its steps."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods

from curation.evaluations.live.filters import EpisodeListParams
from curation.evaluations.live.forms import LiveForm
from curation.evaluations.live.pages import live_page, steps_of
from curation.evaluations.models import Episode, Evaluation
from curation.projects.access import Access, project_page
from curation.projects.models import Scope
from curation.runs.launch import launch
from curation.runs.pages.forms import explain
from curation.web.ids import find
from curation.web.lists.keyset import paginate
from curation.web.lists.pages import page_urls, read_params
from curation.web.problems import Problem


def show_live(request: HttpRequest, access: Access, evaluation: Evaluation, *, fragment: bool) -> HttpResponse:
    """The evaluation's page, or the part of it that asks for itself until the run has ended."""
    page = live_page(evaluation)
    context = {
        "page": page,
        "others": Evaluation.objects.of(access.project).filter(kind=evaluation.kind).order_by("-id")[:50],
        "may_run": access.may(Scope.RUN),
        "api_path": f"/api/v1/evaluations/{evaluation.pk}",
    }
    template = "evaluations/live/_live.html" if fragment else "evaluations/live/page.html"
    response = render(request, template, context)
    if fragment and not page.live:
        response["HX-Refresh"] = "true"
    return response


@require_http_methods(["GET", "POST"])
@project_page(Scope.RUN)
def evaluation_new_live(request: HttpRequest, access: Access) -> HttpResponse:
    form = LiveForm(access.project, request.POST or None, initial={"environment": "sandbox", "family": "aws"})
    if request.method == "POST" and form.is_valid():
        try:
            budget = form.cleaned_data["budget"]
            run = launch(project=access.project, kind="evaluate", params=form.params(), user=access.user, budget=budget)
            return redirect("evaluation-page", access.project.slug, run.result["evaluation"])
        except Problem as problem:
            explain(form, problem)
    context = {
        "form": form,
        "api_path": f"/api/v1/projects/{access.project.slug}/evaluations",
        "api_method": "POST",
        "api_body": '{"kind": "live", "models": ["base", "tuned"], "environment": "sandbox", "max_steps": 15}',
    }
    return render(request, "evaluations/live/new.html", context, status=422 if form.errors else 200)


@require_GET
@project_page(Scope.READ)
def evaluation_episodes(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    evaluation = find(Evaluation.objects.of(access.project), pk, "evaluation")
    params = read_params(EpisodeListParams, request)
    page = paginate(params.apply(evaluation), sort=params.order(), cursor=params.cursor, limit=params.limit)
    context = {
        "evaluation": evaluation,
        "episodes": page.rows,
        "params": params,
        "model": ",".join(params.model),
        "models": evaluation.models.order_by("place"),
        "api_path": f"/api/v1/evaluations/{evaluation.pk}/episodes",
        **page_urls(request, page.next_cursor),
    }
    return render(request, "evaluations/live/episodes.html", context)


@require_GET
@project_page(Scope.READ)
def evaluation_episode(request: HttpRequest, access: Access, pk: str, episode: str) -> HttpResponse:
    """One episode; asked for by htmx it is the fragment that opens beside a list."""
    evaluation = find(Evaluation.objects.of(access.project), pk, "evaluation")
    rows = Episode.objects.filter(evaluation=evaluation).select_related("by", "text")
    found = find(rows, episode, "episode")
    others = Episode.objects.filter(evaluation=evaluation, key=found.key).exclude(pk=found.pk).with_model()
    context = {
        "evaluation": evaluation,
        "episode": found,
        "steps": steps_of(found),
        "others": others.order_by("by__place"),
        "api_path": f"/api/v1/episodes/{found.pk}",
    }
    template = (
        "evaluations/live/_episode.html" if request.headers.get("HX-Request") else "evaluations/live/episode.html"
    )
    return render(request, template, context)
