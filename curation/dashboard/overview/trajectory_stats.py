"""The figures of scenarios and trajectories: how far the gate and the rollouts have come, and how episodes end."""

from dataclasses import dataclass

from django.db.models import Count

from curation.projects.models import Project
from curation.scenarios.models import Scenario, ScenarioAxis, Status
from curation.trajectories.models import KEPT, Outcome, Trajectory
from curation.trajectories.rollout.balance import BLOCKED, EMPTY_QUEUE, TerminalBalance


@dataclass(frozen=True, slots=True)
class TrajectoryStats:
    """`scenarios` by status, `outcomes` of all trajectories, `balance` of the kept ones."""

    scenarios: dict[str, int]
    outcomes: dict[str, int]
    balance: TerminalBalance


def trajectory_stats(project: Project) -> TrajectoryStats:
    """Counted by index: statuses, outcomes, and the few scenarios in which there was nothing to do or no way on."""
    statuses = dict(Scenario.objects.of(project).order_by().values_list("status").annotate(n=Count("id")))
    outcomes = dict(Trajectory.objects.of(project).order_by().values_list("outcome").annotate(n=Count("id")))
    return TrajectoryStats(
        scenarios={status: statuses.get(status, 0) for status in Status.values},
        outcomes={outcome: outcomes.get(outcome, 0) for outcome in Outcome.values},
        balance=_balance(project, outcomes),
    )


def _balance(project: Project, outcomes: dict[str, int]) -> TerminalBalance:
    """A kept episode ended as its scenario wants it, so its outcome tells its terminal and no row is read for it."""
    kept = sum(outcomes.get(outcome, 0) for outcome in KEPT)
    rows = ScenarioAxis.objects.filter(scenario__project=project, axis="task", value__in=(EMPTY_QUEUE, BLOCKED))
    of_kept = rows.filter(scenario__trajectories__keep=True).order_by().values_list("value")
    tasks = dict(of_kept.annotate(n=Count("scenario__trajectories")))
    return TerminalBalance(
        kept=kept,
        exit=outcomes.get(Outcome.SOLVED, 0) / max(kept, 1),
        panic=outcomes.get(Outcome.CORRECT_PANIC, 0) / max(kept, 1),
        empty_queue=tasks.get(EMPTY_QUEUE, 0) / max(kept, 1),
        blocked=tasks.get(BLOCKED, 0) / max(kept, 1),
    )
