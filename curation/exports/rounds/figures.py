"""The results of each round of a chain: its kept rate, in total, per task and per axis, and its additions."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count, Q

from curation.exports.models import Round, RoundQuerySet
from curation.exports.rounds.progress import RoundProgress, progress_of
from curation.projects.access import Access
from curation.samples.blind import without_pending
from curation.scenarios.models import MACHINE_OUTCOMES
from curation.scenarios.pages.measured import Measured
from curation.trajectories.models import Trajectory, TrajectoryQuerySet

_TRIED = Count("id", filter=~Q(outcome__in=MACHINE_OUTCOMES))
_KEPT = Count("id", filter=Q(keep=True))
_LOST = Count("id", filter=Q(outcome__in=MACHINE_OUTCOMES))


@dataclass(frozen=True, slots=True)
class RoundFigures:
    """`by_axis`: (axis, value) → its rate. `solved` counts scenarios with a kept trajectory, `new` those that no
    earlier round of the chain solved, `rows` the rows of the export."""

    round: Round
    progress: RoundProgress
    rate: Measured
    by_axis: dict[tuple[str, str], Measured]
    solved: int
    new: int
    rows: int


def rounds_shown(access: Access, rows: RoundQuerySet) -> RoundQuerySet:
    """The figures of a round count how its trajectories ended."""
    return without_pending(access, rows, "rollout__trajectories__sample")


def figures_of(chain: Sequence[Round]) -> list[RoundFigures]:
    """The figures of a chain's rounds, in their order. Rollouts that the machine ended count as lost."""
    found = []
    before: set[int] = set()
    for round_ in chain:
        rows = Trajectory.objects.filter(run=round_.rollout_id).order_by()
        solved = set(rows.filter(keep=True).values_list("scenario", flat=True))
        total = rows.aggregate(tried=_TRIED, kept=_KEPT, lost=_LOST)
        export = round_.export
        found.append(
            RoundFigures(
                round=round_,
                progress=progress_of(round_),
                rate=Measured(**total),
                by_axis=_by_axis(rows),
                solved=len(solved),
                new=len(solved - before),
                rows=sum(file.rows for file in export.files.exclude(format="")) if export and export.ready else 0,
            )
        )
        before |= solved
    return found


def _by_axis(rows: TrajectoryQuerySet) -> dict[tuple[str, str], Measured]:
    named = rows.values("scenario__axis_rows__axis", "scenario__axis_rows__value")
    counted = named.annotate(tried=_TRIED, kept=_KEPT, lost=_LOST).values_list(
        "scenario__axis_rows__axis", "scenario__axis_rows__value", "tried", "kept", "lost"
    )
    return {(axis, value): Measured(*counts) for axis, value, *counts in counted if axis is not None}
