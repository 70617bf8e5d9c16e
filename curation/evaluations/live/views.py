"""Pages of live episodes: a launch, the list of episodes, one episode with its steps."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET, require_http_methods

from curation.evaluations.live.filters import EpisodeList
from curation.evaluations.live.forms import LiveForm
from curation.evaluations.live.pages import steps_of
from curation.evaluations.models import Episode, Evaluation
from curation.evaluations.screen.views import launch_page
from curation.projects.access import Access, project_page
from curation.projects.models import Scope
from curation.web.ids import find
from curation.web.lists.pages import list_context


@require_http_methods(["GET", "POST"])
@project_page(Scope.RUN)
def evaluation_new_live(request: HttpRequest, access: Access) -> HttpResponse:
    form = LiveForm(access.project, request.POST or None, initial={"environment": "sandbox", "family": "aws"})
    example = '{"kind": "live", "models": ["base", "tuned"], "environment": "sandbox", "max_steps": 15}'
    return launch_page(request, access, form, "evaluations/live/new.html", {"api_body": example})


@require_GET
@project_page(Scope.READ)
def evaluation_episodes(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    evaluation = find(Evaluation.objects.of(access.project), pk, "evaluation")
    params = EpisodeList.from_query(request.GET)
    page = params.page(params.rows(evaluation))
    context = {
        **list_context(request, params, page, f"/api/v1/evaluations/{evaluation.pk}/episodes"),
        "evaluation": evaluation,
        "model": request.GET.get("model", ""),
        "models": evaluation.models.order_by("place"),
    }
    return render(request, "evaluations/live/episodes.html", context)


@require_GET
@project_page(Scope.READ)
def evaluation_episode(request: HttpRequest, access: Access, pk: str, episode: str) -> HttpResponse:
    """One episode: for htmx the fragment that opens beside a list, else a page."""
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
