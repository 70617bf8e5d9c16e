"""What runs of rollouts and replays say at their end."""

from django.db.models import Count

from curation.runs.kinds import Json
from curation.runs.models import Item, ItemState, Run
from curation.trajectories.models import Trajectory
from curation.trajectories.rollout.balance import terminal_balance


def rollout_figures(run: Run) -> Json:
    """Trajectories by outcome, how many are kept, how those end, and what lies outside the project's band."""
    rows = Trajectory.objects.of(run.project).filter(run=run)
    outcomes = dict(rows.order_by().values_list("outcome").annotate(n=Count("id")))
    balance = terminal_balance(rows)
    return {
        "trajectories": sum(outcomes.values()),
        "kept": balance.kept,
        "outcomes": outcomes,
        "balance": balance.as_json(),
        "warnings": balance.warnings(run.settings.balance),
    }


def replay_figures(run: Run) -> Json:
    """Replays by whether they agree, and why others were not made."""
    rows = Item.objects.filter(run=run, stage="replay").order_by()
    done = dict(rows.filter(state=ItemState.DONE).values_list("result__agrees").annotate(n=Count("id")))
    skipped = rows.filter(state=ItemState.SKIPPED).values_list("reason").annotate(n=Count("id"))
    return {"agree": done.get(True, 0), "differ": done.get(False, 0), "skipped": dict(skipped)}
