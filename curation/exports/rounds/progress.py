"""The state of a round, in words, and the requirements of its next step."""

from dataclasses import dataclass

from django.db.models import Count

from curation.exports.models import Round
from curation.runs.models import LIVE, RunState
from curation.samples.models import SampleStatus
from curation.trajectories.models import Trajectory
from curation.web.text.figures import counted


@dataclass(frozen=True, slots=True)
class RoundProgress:
    """`state` is rollout, review, nothing, ready, export, done or failed; `says` describes the current or next step.

    Kept trajectories by decision: `approved`, `pending` and the others.
    """

    state: str
    says: str
    kept: int
    approved: int
    pending: int

    @property
    def tone(self) -> str:
        return {"done": "good", "review": "attention", "nothing": "attention", "failed": "bad"}.get(self.state, "muted")


def progress_of(round_: Round) -> RoundProgress:
    """Read the state of a round from its runs and decisions."""
    rows = Trajectory.objects.filter(run=round_.rollout_id, keep=True).order_by()
    counted = dict(rows.values_list("sample__status").annotate(n=Count("id")))
    kept, approved = sum(counted.values()), counted.get(SampleStatus.APPROVED.value, 0)
    pending = counted.get(SampleStatus.PENDING.value, 0) + counted.get(SampleStatus.NEEDS_REFINE.value, 0)
    state, says = _state(round_, kept, approved, pending)
    return RoundProgress(state, says, kept, approved, pending)


def _state(round_: Round, kept: int, approved: int, pending: int) -> tuple[str, str]:
    rollout, export = round_.rollout, round_.export
    if export is not None:
        if export.ready:
            return (
                "done",
                "Exported. Train a model on it, register it as an endpoint, and start the next round with it.",
            )
        if export.run.state in LIVE:
            return "export", "The approved trajectories are being exported."
        return "failed", "The export failed. Start it again."
    if rollout.state in LIVE:
        return "rollout", "The operator is working on the scenarios."
    if rollout.state != RunState.SUCCEEDED:
        return "failed", "The rollout did not succeed. Resume it on its page."
    if not kept:
        return "nothing", "No trajectory was kept, so there is nothing to review or to train on."
    trajectories = counted(kept, "kept trajectory")
    if pending:
        return (
            "review",
            f"Waiting for review: {pending:,} of {trajectories} {'is' if pending == 1 else 'are'} undecided.",
        )
    if not approved:
        return "nothing", f"People approved none of {trajectories}, so nothing is exported."
    are = "is" if approved == 1 else "are"
    return "ready", f"Reviewed: {approved:,} of {trajectories} {are} approved, and {are} exported within a minute."
