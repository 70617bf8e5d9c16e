from django.http import HttpRequest
from ninja import Query, Router

from curation.evaluations.live import schemas as s
from curation.evaluations.live.filters import EpisodeList
from curation.evaluations.live.try_reset import TryParams, try_reset
from curation.evaluations.models import Episode, Evaluation
from curation.projects.access import enter, principal_of
from curation.projects.models import Scope
from curation.samples.blind import look
from curation.web.ids import find
from curation.web.schemas import Page

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
    look(enter(request, episode.evaluation.project, Scope.READ), episode.sample)
    return s.EpisodeDetail.model_validate(episode)
