"""What the pages of rollout, replay and pairs runs say of their results, while they work and afterwards."""

from dataclasses import dataclass

from django.db.models import Count
from django.urls import reverse

from curation.runs.models import Run
from curation.trajectories.models import Outcome, Pair, Replay, Trajectory
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
    """Kept trajectories of one sort: a label, and the percent of all that are kept."""

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
    """Context of `ROLLOUT`: outcomes with links, how the kept ones end, what lies outside the project's band."""
    rows = Trajectory.objects.of(run.project).filter(run=run)
    counts = dict(rows.order_by().values_list("outcome").annotate(n=Count("id")))
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
                kept=outcome in (Outcome.SOLVED, Outcome.CORRECT_PANIC),
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
    """Context of `REPLAY`: how many agree, and which, those first that do not."""
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
    """Context of `PAIRS`: how many pairs the run wrote or found, and why others are none."""
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
