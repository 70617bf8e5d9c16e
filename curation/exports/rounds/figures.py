"""The state of a round, in words, with the requirements of its next step; and the results of each round of a chain: its
kept rate, in total, per task and per axis, and its additions."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from django.db.models import Count, Q
from pydantic import Field

from curation.exports.models import Round, RoundQuerySet
from curation.projects.access import Access
from curation.runs.models import LIVE, RunState
from curation.samples.blind import without_pending
from curation.samples.models import SampleStatus
from curation.scenarios.models import MACHINE_OUTCOMES
from curation.scenarios.pages.measured import MeasuredOut
from curation.trajectories.models import Trajectory, TrajectoryQuerySet
from curation.web.schemas import Out
from curation.web.text.figures import counted

_TRIED = Count("id", filter=~Q(outcome__in=MACHINE_OUTCOMES))
_KEPT = Count("id", filter=Q(keep=True))
_LOST = Count("id", filter=Q(outcome__in=MACHINE_OUTCOMES))


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


def progress_of(round_: Round) -> RoundProgress:
    """Read the state of a round from its runs and decisions."""
    rows = Trajectory.objects.filter(run=round_.rollout_id, keep=True).order_by()
    numbers = dict(rows.values_list("sample__status").annotate(n=Count("id")))
    kept, approved = sum(numbers.values()), numbers.get(SampleStatus.APPROVED.value, 0)
    pending = numbers.get(SampleStatus.PENDING.value, 0) + numbers.get(SampleStatus.NEEDS_REFINE.value, 0)
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


class AxisRateOut(MeasuredOut):
    axis: str = Field(examples=["task"])
    value: str = Field(examples=["cleanup"])


class RoundOut(Out):
    id: str
    chain: str = Field(description="Id of the first round; the next ones have the same.")
    number: int = Field(examples=[1])
    operator: str
    run: str = Field(description="The rollout.")
    export: str | None
    state: str = Field(
        examples=["review"],
        description="rollout, review, nothing, ready, export, done or failed",
    )
    says: str = Field(examples=["Waiting for review: 3 of 8 kept trajectories are undecided."])
    kept: int = Field(description="Trajectories.")
    approved: int
    pending: int
    rate: MeasuredOut = Field(description="The kept rate.")
    by_axis: list[AxisRateOut]
    scenarios_solved: int
    new_scenarios_solved: int = Field(description="Those that no earlier round of the chain solved.")
    rows: int = Field(description="Rows in the files of its export.")
    created_at: datetime

    @property
    def tone(self) -> str:
        return {"done": "good", "review": "attention", "nothing": "attention", "failed": "bad"}.get(self.state, "muted")


def rounds_shown(access: Access, rows: RoundQuerySet) -> RoundQuerySet:
    """The figures of a round count how its trajectories ended."""
    return without_pending(access, rows, "rollout__trajectories__sample")


def figures_of(chain: Sequence[Round]) -> list[RoundOut]:
    """Return the figures of a chain's rounds, in their order. Rollouts that the machine ended count as lost."""
    found = []
    before: set[int] = set()
    for round_ in chain:
        rows = Trajectory.objects.filter(run=round_.rollout_id).order_by()
        solved = set(rows.filter(keep=True).values_list("scenario", flat=True))
        total = rows.aggregate(tried=_TRIED, kept=_KEPT, lost=_LOST)
        export = round_.export
        found.append(
            RoundOut(
                id=str(round_.pk),
                chain=str(round_.chain),
                number=round_.number,
                operator=round_.operator,
                run=str(round_.rollout_id),
                export=None if export is None else str(export.pk),
                **asdict(progress_of(round_)),
                rate=MeasuredOut(**total),
                by_axis=_by_axis(rows),
                scenarios_solved=len(solved),
                new_scenarios_solved=len(solved - before),
                rows=export.rows if export and export.ready else 0,
                created_at=round_.created_at,
            )
        )
        before |= solved
    return found


def _by_axis(rows: TrajectoryQuerySet) -> list[AxisRateOut]:
    axis, value = "scenario__axis_rows__axis", "scenario__axis_rows__value"
    counted = rows.exclude(**{axis: None}).values_list(axis, value).annotate(tried=_TRIED, kept=_KEPT, lost=_LOST)
    return [
        AxisRateOut(axis=name, value=of, tried=tried, kept=kept, lost=lost)
        for name, of, tried, kept, lost in sorted(counted)
    ]
