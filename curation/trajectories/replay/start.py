"""Running one recorded trajectory again, from its page or by a call."""

from curation.projects.access import Access
from curation.projects.models import Scope
from curation.runs.launch import launch
from curation.runs.models import Run
from curation.trajectories.models import Outcome, Trajectory
from curation.trajectories.replay.stage import BROKEN, EDITED
from curation.web.problems import Conflict


def replay_refusal(trajectory: Trajectory) -> str:
    """Why this one cannot be replayed, or nothing. Needs its scenario."""
    if trajectory.bundle_sha256 != trajectory.scenario.bundle_sha256:
        return EDITED
    return BROKEN if trajectory.outcome == Outcome.INFRA_ERROR else ""


def start_replay(*, access: Access, trajectory: Trajectory) -> Run:
    """A run of kind `replay` over this trajectory alone.

    `Conflict` where there is nothing to compare with, `Invalid` where no sandbox works here, with why.
    """
    access.require(Scope.RUN)
    refusal = replay_refusal(trajectory)
    if refusal:
        raise Conflict(f"Trajectory {trajectory.pk} cannot be replayed: {refusal}.", code="not_replayable")
    params = {"filter": {"id": str(trajectory.pk)}}
    return launch(project=access.project, kind="replay", params=params, user=access.user)
