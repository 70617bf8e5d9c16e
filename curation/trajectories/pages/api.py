"""REST calls of `curation.trajectories`: trajectories, replaying one, pairs."""

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Status

from curation.projects.access import Access, enter, principal_of
from curation.projects.models import Project, Scope
from curation.runs.pages.schemas import RunOut, run_out
from curation.trajectories.models import Trajectory
from curation.trajectories.pages.queries import (
    PairListParams,
    TrajectoryListParams,
    filter_of,
    pair_page,
    trajectory_page,
)
from curation.trajectories.pages.schemas import PairPage, TrajectoryOut, TrajectoryPage, pair_out, trajectory_out
from curation.trajectories.replay.start import start_replay
from curation.web.http.etag import set_etag
from curation.web.ids import find

router = Router(tags=["trajectories"])


@router.get("/projects/{slug}/trajectories", response=TrajectoryPage, exclude_unset=True, summary="List trajectories")
def list_trajectories(request: HttpRequest, slug: str, params: Query[TrajectoryListParams]) -> dict[str, object]:
    """Slim rows; `full=true` adds the transcripts, then ask for fewer rows at a time."""
    access = enter(request, slug, Scope.READ)
    page = trajectory_page(
        access.project,
        filter_of(request.GET),
        sort=params.order(),
        cursor=params.cursor,
        limit=params.limit,
        count=params.count,
        full=params.full,
    )
    rows = [trajectory_out(row, full=params.full) for row in page.rows]
    answer: dict[str, object] = {"data": rows, "next_cursor": page.next_cursor}
    return answer | ({"total": page.total} if params.count else {})


@router.get("/trajectories/{trajectory_id}", response=TrajectoryOut, summary="One trajectory with its transcript")
def get_trajectory(request: HttpRequest, response: HttpResponse, trajectory_id: str) -> dict[str, object]:
    _, trajectory = _entered(request, trajectory_id, Scope.READ)
    set_etag(response, f"{trajectory.pk}-{trajectory.outcome}-{trajectory.replay or 'new'}-{trajectory.tokens}")
    return trajectory_out(trajectory, full=True)


@router.post("/trajectories/{trajectory_id}/replay", response={202: RunOut}, summary="Run its commands again")
def post_replay(request: HttpRequest, response: HttpResponse, trajectory_id: str) -> Status[dict[str, object]]:
    """Launches a run of kind `replay`; the trajectory's `replay` then says whether outputs, terminal and checker
    agree."""
    access, trajectory = _entered(request, trajectory_id, Scope.RUN)
    run = start_replay(access=access, trajectory=trajectory)
    response["Location"] = f"/api/v1/runs/{run.pk}"
    return Status(202, run_out(run))


@router.get("/projects/{slug}/pairs", response=PairPage, exclude_unset=True, summary="List preference pairs")
def list_pairs(request: HttpRequest, slug: str, params: Query[PairListParams]) -> dict[str, object]:
    access = enter(request, slug, Scope.READ)
    page = pair_page(access.project, params)
    answer: dict[str, object] = {"data": [pair_out(row) for row in page.rows], "next_cursor": page.next_cursor}
    return answer | ({"total": page.total} if params.count else {})


def _entered(request: HttpRequest, trajectory_id: str, scope: str) -> tuple[Access, Trajectory]:
    mine = Trajectory.objects.filter(project__in=Project.objects.visible_to(principal_of(request).user))
    trajectory = find(mine.with_text().select_related("project"), trajectory_id, "trajectory")
    return enter(request, trajectory.project, scope), trajectory
