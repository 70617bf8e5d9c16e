"""Running one recorded trajectory again, from its page or by a call."""

from curation.projects.access import Access
from curation.projects.models import Scope
from curation.runs.launch import launch
from curation.runs.models import Run
from curation.trajectories.models import Trajectory


def start_replay(*, access: Access, trajectory: Trajectory) -> Run:
    """A run of kind `replay` over this trajectory alone. `Invalid` where no sandbox works here, with why."""
    access.require(Scope.RUN)
    params = {"filter": {"id": str(trajectory.pk)}}
    return launch(project=access.project, kind="replay", params=params, user=access.user)
