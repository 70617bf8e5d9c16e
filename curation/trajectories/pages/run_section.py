"""The sections with results on the pages of rollout, replay and pairs runs."""

from dataclasses import dataclass

from django.db.models import Count
from django.urls import reverse

from curation.runs.models import Run
from curation.trajectories.models import KEPT, Outcome, Pair, Replay, Trajectory
from curation.trajectories.pairs.stage import pair_figures
from curation.trajectories.rollout.balance import TerminalBalance, terminal_balance

SHOWN = 20


@dataclass(frozen=True, slots=True)
class OutcomeRow:
    """`share` of the run's trajectories, in percent."""

    outcome: Outcome
    count: int
    share: int
    kept: bool
    url: str


@dataclass(frozen=True, slots=True)
class Share:
    """A part of the kept trajectories, in percent."""

    label: str
    percent: int
    note: str


@dataclass(frozen=True, slots=True)
class ReplayRow:
    url: str
    scenario: str
    agrees: bool
    differences: int


def rollout_section(run: Run) -> dict[str, object]:
    """Outcomes with links, and the balance of the kept trajectories."""
    rows = Trajectory.objects.of(run.project).filter(run=run)
    counts = rows.outcome_counts()
    total = sum(counts.values())
    url = f"{reverse('trajectory-list', args=[run.project.slug])}?run={run.pk}"
    balance = terminal_balance(rows)
    return {
        "total": total,
        "outcomes": [
            OutcomeRow(
                outcome=outcome,
                count=counts[outcome.value],
                share=round(100 * counts[outcome.value] / total),
                kept=outcome in KEPT,
                url=f"{url}&outcome={outcome.value}",
            )
            for outcome in Outcome
            if outcome.value in counts
        ],
        "balance": balance,
        "shares": _shares(balance),
        "warnings": balance.warnings(run.settings.balance),
        "trajectories_url": url,
        "samples_url": f"{reverse('sample-list', args=[run.project.slug])}?run={run.pk}",
    }


def replay_section(run: Run) -> dict[str, object]:
    """How many replays agree, and the newest of them, those that differ first."""
    rows = Replay.objects.filter(run=run)
    counts = dict(rows.order_by().values_list("agrees").annotate(n=Count("id")))
    shown = rows.select_related("trajectory__scenario").order_by("agrees", "-id")[:SHOWN]
    return {
        "agree": counts.get(True, 0),
        "differ": counts.get(False, 0),
        "rows": [
            ReplayRow(
                url=f"{reverse('trajectory-page', args=[run.project.slug, row.trajectory_id])}#replay",
                scenario=row.trajectory.scenario_name,
                agrees=row.agrees,
                differences=len(row.differences),
            )
            for row in shown
        ],
        "total": sum(counts.values()),
    }


def pairs_section(run: Run) -> dict[str, object]:
    """New pairs, those that existed, and why others were skipped."""
    figures = pair_figures(run)
    return {
        "pairs": figures["pairs"],
        "there_already": figures["there_already"],
        "left_out": sorted(figures["left_out"].items()),
        "scenarios": Pair.objects.filter(run=run).order_by().values("scenario").distinct().count(),
        "pairs_url": f"{reverse('pair-list', args=[run.project.slug])}?run={run.pk}",
    }


def _shares(balance: TerminalBalance) -> list[Share]:
    return [
        Share("Exit", round(100 * balance.exit), "end in exit"),
        Share("Panic", round(100 * balance.panic), "end in panic"),
        Share("Empty queue", round(100 * balance.empty_queue), "had nothing to do"),
        Share("Blocked", round(100 * balance.blocked), "could not do it"),
    ]
