"""The sections with results on the pages of rollout, replay, pairs and Harbor runs."""

from decimal import Decimal

from django.db.models import Count
from django.urls import reverse
from django.utils.safestring import SafeString

from curation.runs.models import Item, Run
from curation.trajectories.harbor.stage import JOB, AgentFigures, HarborStage
from curation.trajectories.imported.save import main_reward
from curation.trajectories.models import KEPT, Outcome, Pair, Replay, StepAdvantage, StepValue, Trajectory
from curation.trajectories.pairs import pair_figures
from curation.trajectories.probe.values import VERDICT_TONES, probe_figures
from curation.trajectories.rollout.balance import BalanceOut, terminal_balance
from curation.trajectories.shell import action_of
from curation.web.text.figures import percent
from curation.web.text.transcript import summary_line
from judging.statistics.rates import Interval
from judging.statistics.values import ActionVerdict

SHOWN = 20


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
            {
                "outcome": outcome,
                "count": counts[outcome.value],
                "share": round(100 * counts[outcome.value] / total),
                "kept": outcome in KEPT,
                "url": f"{url}&outcome={outcome.value}",
            }
            for outcome in Outcome
            if outcome.value in counts
        ],
        "balance": balance,
        "shares": _shares(balance),
        "warnings": balance.warnings(run.settings.balance),
        "tokens": run.result.get("tokens"),
        "trajectories_url": url,
        "samples_url": f"{reverse('sample-list', args=[run.project.slug])}?run={run.pk}",
    }


def replay_section(run: Run) -> dict[str, object]:
    """How many replays agree, the newest of them, those that differ first, and why others were skipped."""
    rows = Replay.objects.filter(run=run)
    counts = dict(rows.order_by().values_list("agrees").annotate(n=Count("id")))
    shown = rows.select_related("trajectory__scenario").order_by("agrees", "-id")[:SHOWN]
    return {
        "agree": counts.get(True, 0),
        "differ": counts.get(False, 0),
        "skipped": run.result.get("skipped", {}),
        "rows": [
            {
                "url": f"{reverse('trajectory-page', args=[run.project.slug, row.trajectory_id])}#replay",
                "scenario": row.trajectory.scenario_name,
                "agrees": row.agrees,
                "differences": len(row.differences),
            }
            for row in shown
        ],
        "total": sum(counts.values()),
    }


def probe_section(run: Run) -> dict[str, object]:
    """The comparisons by verdict, and the clearest of them."""
    rows = StepAdvantage.objects.filter(value__run=run)
    ranked = rows.select_related("value__trajectory__scenario", "value__trajectory__text", "against__trajectory__text")
    return {
        "figures": probe_figures(run),
        "rows": [_comparison(run, row) for row in ranked.order_by("-low", "-difference", "id")[:SHOWN]],
        "rounds": run.params["rounds"],
    }


def _comparison(run: Run, row: StepAdvantage) -> dict[str, object]:
    """A step, and another action in its state or the state before it. `advantage` is in percentage points, with its
    95 % interval."""
    value, against = row.value, row.against
    page = reverse("trajectory-page", args=[run.project.slug, value.trajectory_id])
    is_before = value.trajectory_id == against.trajectory_id
    return {
        "row": row,
        "url": f"{page}?step={value.at}#step-{value.at}",
        "scenario": value.trajectory.scenario_name,
        "action": _action_at(value),
        "other": "the state before it" if is_before else _action_at(against),
        "tone": VERDICT_TONES[ActionVerdict(row.verdict)],
        "advantage": Interval(row.low, row.high).around(row.difference),
    }


def _action_at(value: StepValue) -> SafeString:
    return summary_line(action_of(value.trajectory.text.steps[value.at]))


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


def _shares(balance: BalanceOut) -> list[dict[str, object]]:
    return [
        {"label": "Exit", "share": percent(balance.exit), "note": "end in exit"},
        {"label": "Panic", "share": percent(balance.panic), "note": "end in panic"},
        {"label": "Empty queue", "share": percent(balance.empty_queue), "note": "had nothing to do"},
        {"label": "Blocked", "share": percent(balance.blocked), "note": "could not do it"},
    ]


def harbor_section(run: Run) -> dict[str, object]:
    items = Item.objects.filter(run=run, stage=HarborStage.name).exclude(key=JOB).order_by("-id")
    return {
        "total": run.result.get("trials"),
        "agents": [AgentFigures.model_validate(row) for row in run.result.get("agents", [])],
        "trials": [_trial(run, item) for item in items[:SHOWN]],
        "trajectories_url": f"{reverse('trajectory-list', args=[run.project.slug])}?run={run.pk}",
        "agents_url": f"{reverse('trajectory-agents', args=[run.project.slug])}?run={run.pk}",
        "items_url": f"{reverse('run-items', args=[run.project.slug, run.pk])}?stage={HarborStage.name}",
    }


def _trial(run: Run, item: Item) -> dict[str, object]:
    made = item.result["trajectories"]
    cost = item.result["cost"]
    return {
        "name": item.key,
        "task": item.data["task"],
        "agent": item.data["agent"],
        "model": item.data["model"],
        "reward": main_reward(item.result["rewards"]),
        "cost": None if cost is None else Decimal(cost),
        "exception": item.result["exception"],
        "url": reverse("trajectory-page", args=[run.project.slug, made[0]]) if made else "",
    }
