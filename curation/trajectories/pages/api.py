from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Status

from curation.projects.access import Access, enter, principal_of
from curation.projects.models import Project, Scope
from curation.runs.pages.schemas import RunOut, accepted_run
from curation.samples.blind import unblind
from curation.trajectories.filters import PairList, TrajectoryList
from curation.trajectories.imported.document import atif_of
from curation.trajectories.models import Trajectory, TrajectoryQuerySet
from curation.trajectories.pages.fragments import image_response
from curation.trajectories.pages.schemas import (
    PairOut,
    StepValueOut,
    TrajectoryOut,
    TrajectoryRow,
    step_value_out,
    trajectory_out,
    trajectory_row,
)
from curation.trajectories.pages.views import look_at_pairs, pairs_shown
from curation.trajectories.probe.steps import step_worths
from curation.trajectories.replay import start_replay
from curation.web.ids import find
from curation.web.schemas import Page, answer

router = Router(tags=["trajectories"])
_BINARY: dict[str, Any] = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
_FILE: dict[str, Any] = {"responses": {200: {"content": _BINARY}}}


@router.get(
    "/projects/{slug}/trajectories", response=Page[TrajectoryRow], exclude_unset=True, summary="List trajectories"
)
def list_trajectories(request: HttpRequest, slug: str, params: Query[TrajectoryList]) -> dict[str, object]:
    """Slim rows; `full=true` adds the turns, so ask for fewer rows at a time. Those who review blind get no
    trajectories of pending samples."""
    columns = TrajectoryQuerySet.with_text if params.full else TrajectoryQuerySet.for_rest
    page = params.shown(enter(request, slug, Scope.READ), columns)
    return page.response(trajectory_out if params.full else trajectory_row)


@router.get("/trajectories/{trajectory_id}", response=TrajectoryOut, summary="One trajectory with its transcript")
def get_trajectory(request: HttpRequest, trajectory_id: str) -> dict[str, object]:
    access, trajectory = _entered(request, trajectory_id, Scope.READ)
    unblind(access, trajectory.sample)
    return trajectory_out(trajectory)


@router.get("/trajectories/{trajectory_id}/atif", response=dict[str, Any], summary="One trajectory as ATIF")
def get_trajectory_as_atif(request: HttpRequest, trajectory_id: str) -> dict[str, object]:
    """A document that came in as ATIF goes out as it was."""
    access, trajectory = _entered(request, trajectory_id, Scope.READ)
    unblind(access, trajectory.sample)
    return atif_of(trajectory)


@router.get(
    "/trajectories/{trajectory_id}/values",
    response=answer("StepValuesOut", data=list[StepValueOut]),
    summary="The values of its steps",
)
def get_step_values(request: HttpRequest, trajectory_id: str) -> dict[str, object]:
    """How often rollouts that went on after a step were solved, by the last run of kind `probe`; empty without one."""
    access, trajectory = _entered(request, trajectory_id, Scope.READ)
    unblind(access, trajectory.sample)
    worths = step_worths(access, trajectory)
    return {"data": [step_value_out(row) for row in worths.rows] if worths else []}


@router.get("/projects/{slug}/images/{sha256}", openapi_extra=_FILE, summary="An image of a trajectory's steps")
def get_image(request: HttpRequest, slug: str, sha256: str) -> HttpResponse:
    """In `steps`, the path of an image that the project keeps is `sha256:` and its digest."""
    return image_response(enter(request, slug, Scope.READ).project, sha256)


@router.post("/trajectories/{trajectory_id}/replay", response={202: RunOut}, summary="Run its commands again")
def post_replay(request: HttpRequest, response: HttpResponse, trajectory_id: str) -> Status[dict[str, object]]:
    """Launch a run of kind `replay`; the trajectory's `replay` then says whether outputs, terminal and checker
    agree."""
    access, trajectory = _entered(request, trajectory_id, Scope.RUN)
    run = start_replay(access=access, trajectory=trajectory)
    return accepted_run(response, run)


@router.get("/projects/{slug}/pairs", response=Page[PairOut], summary="List preference pairs")
def list_pairs(request: HttpRequest, slug: str, params: Query[PairList]) -> dict[str, object]:
    access = enter(request, slug, Scope.READ)
    page = params.page(pairs_shown(access, params.rows(access.project)))
    look_at_pairs(access, page.rows)
    return page.response()


def _entered(request: HttpRequest, trajectory_id: str, scope: str) -> tuple[Access, Trajectory]:
    mine = Trajectory.objects.filter(project__in=Project.objects.visible_to(principal_of(request).user))
    trajectory = find(mine.with_text().select_related("project", "sample"), trajectory_id, "trajectory")
    return enter(request, trajectory.project, scope), trajectory
