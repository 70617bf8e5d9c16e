from collections.abc import Mapping, Sequence
from typing import ClassVar

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from ninja import Query, Router
from pydantic import ValidationError

from curation.evaluations.live import schemas as s
from curation.evaluations.live.context import steps_of, task_facts, tried_lines
from curation.evaluations.live.forms import LiveForm
from curation.evaluations.live.try_reset import TryParams, try_reset
from curation.evaluations.models import Episode, Evaluation, EvaluationKind
from curation.evaluations.params import SANDBOX
from curation.evaluations.screen.forms import again_from
from curation.evaluations.screen.views import estimate_fragment, launch_page
from curation.projects.access import Access, enter, principal_of, project_page
from curation.projects.models import Scope
from curation.runs.pages.forms import run_to_repeat
from curation.samples.blind import record_unblinding, reviews_blind, unblind, without_pending
from curation.web.ids import find
from curation.web.lists.filters import ListParams, Words
from curation.web.lists.keyset import KeysetPage
from curation.web.lists.pages import list_context
from curation.web.problems import Problem
from curation.web.schemas import Page


class EpisodeList(ListParams):
    sorts: ClassVar[Sequence[str]] = ("id", "-id")
    lookups: ClassVar[Mapping[str, str]] = {
        **{"model": "by__name", "tier": "tier", "task": "key", "completed": "completed", "hinted": "hinted"}
    }

    model: Words = ()
    tier: Words = ()
    task: Words = ()
    completed: bool | None = None
    hinted: bool | None = None

    def shown(self, access: Access, evaluation: Evaluation) -> KeysetPage[Episode]:
        """A page of the episodes that match. An episode says how its trajectory ended, so those who review blind get
        none of a pending sample; the log notes that others looked at it."""
        rows = self.narrow(Episode.objects.filter(evaluation=evaluation).with_model().with_sample())
        page = self.page(without_pending(access, rows, "trajectory__sample"))
        record_unblinding(access, [row.sample.pk for row in page.rows if row.sample])
        return page


@project_page(Scope.RUN, "GET", "POST")
def evaluation_new_live(request: HttpRequest, access: Access) -> HttpResponse:
    source = run_to_repeat(access.project, "evaluate", request.GET.get("from"))
    initial = _as_last_time(access) if source is None else again_from(source)
    form = LiveForm(access.project, request.POST or None, initial=initial)
    example = '{"kind": "live", "models": ["base", "tuned"], "environment": "sandbox", "max_steps": 15}'
    return launch_page(request, access, form, "evaluations/live/new.html", {"api_body": example}, source)


@project_page(Scope.RUN, "POST")
def evaluation_estimate_live(request: HttpRequest, access: Access) -> HttpResponse:
    """Fragment: an upper bound for the cost of the form's episodes."""
    form = LiveForm(access.project, request.POST)
    return estimate_fragment(request, access, form, ready=form.is_valid())


def _as_last_time(access: Access) -> dict[str, object]:
    """The environment and its reset as in the project's last live evaluation."""
    live = Evaluation.objects.of(access.project).filter(kind=EvaluationKind.LIVE).order_by("-pk").first()
    last = live.params if live else {}
    names = ("environment", "reset_template", "family")
    return {"environment": SANDBOX, "family": "aws"} | {name: last[name] for name in names if last.get(name)}


@project_page(Scope.RUN, "POST")
def evaluation_try_reset(request: HttpRequest, access: Access) -> HttpResponse:
    """Fragment: the arguments of the form's reset, and the task that the server says it plays."""
    tried, problem = None, ""
    try:
        given = TryParams.model_validate(LiveForm(access.project, request.POST).to_try())
        tried = tried_lines(try_reset(access=access, given=given))
    except ValidationError:
        problem = "Name the server first."
    except Problem as refused:
        problem = refused.detail
    return render(request, "evaluations/live/_tried.html", {"tried": tried, "problem": problem})


@project_page(Scope.READ, "GET")
def evaluation_episodes(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    evaluation = find(Evaluation.objects.of(access.project), pk, "evaluation")
    params = EpisodeList.from_query(request.GET)
    page = params.shown(access, evaluation)
    context = {
        **list_context(request, params, page, f"/api/v1/evaluations/{evaluation.pk}/episodes"),
        "evaluation": evaluation,
        "leaves_out_pending": reviews_blind(access) and evaluation.samples().exists(),
        "model": request.GET.get("model", ""),
        "models": evaluation.models.order_by("place"),
    }
    return render(request, "evaluations/live/episodes.html", context)


@project_page(Scope.READ, "GET")
def evaluation_episode(request: HttpRequest, access: Access, pk: str, episode: str) -> HttpResponse:
    """One episode: for htmx the fragment that opens beside a list, else a page."""
    evaluation = find(Evaluation.objects.of(access.project), pk, "evaluation")
    rows = Episode.objects.filter(evaluation=evaluation).with_sample().select_related("by", "text")
    found = find(rows, episode, "episode")
    unblind(access, found.sample)
    others = Episode.objects.filter(evaluation=evaluation, key=found.key).exclude(pk=found.pk).with_model()
    context = {
        "evaluation": evaluation,
        "episode": found,
        "steps": steps_of(found),
        "facts": task_facts(found),
        "others": without_pending(access, others, "trajectory__sample").order_by("by__place"),
        "api_path": f"/api/v1/episodes/{found.pk}",
    }
    template = (
        "evaluations/live/_episode.html" if request.headers.get("HX-Request") else "evaluations/live/episode.html"
    )
    return render(request, template, context)


router = Router(tags=["evaluations"])
Answer = dict[str, object]


@router.get("/evaluations/{evaluation_id}/episodes", response=Page[s.EpisodeOut], summary="Live episodes, one by one")
def list_episodes(request: HttpRequest, evaluation_id: str, params: Query[EpisodeList]) -> Answer:
    """Those who review blind get no episodes of pending samples."""
    evaluation = find(Evaluation.objects.visible_to(principal_of(request).user), evaluation_id, "evaluation")
    access = enter(request, evaluation.project, Scope.READ)
    return params.shown(access, evaluation).response()


@router.post(
    "/projects/{slug}/evaluations/try-reset",
    response=s.TriedResetOut,
    summary="Try a reset: what is sent to a server and what it says it plays",
)
def post_try_reset(request: HttpRequest, slug: str, body: TryParams) -> s.TriedResetOut:
    """Opens one episode on the server and closes it; nothing is stored. `confirmation`: confirmed, unconfirmed,
    mismatch, or seed where no task was asked for."""
    return try_reset(access=enter(request, slug, Scope.RUN), given=body)


@router.get("/episodes/{episode_id}", response=s.EpisodeDetail, summary="One live episode with its steps")
def get_episode(request: HttpRequest, episode_id: str) -> s.EpisodeDetail:
    evaluations = Evaluation.objects.visible_to(principal_of(request).user)
    rows = Episode.objects.filter(evaluation__in=evaluations).with_sample()
    episode = find(rows.select_related("by", "text", "evaluation__project"), episode_id, "episode")
    unblind(enter(request, episode.evaluation.project, Scope.READ), episode.sample)
    return s.EpisodeDetail.model_validate(episode)
