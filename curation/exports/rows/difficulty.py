"""The measured difficulty of scenarios and tasks: the share of their rollouts that solved them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db.models import Count, F, Q

from curation.exports.formats.row import Solved
from curation.exports.rows.queries import conversation_of
from curation.trajectories.models import NEVER_NEGATIVE, Trajectory
from curation.web.lists.id_list import IdList


def solve_rates(project: int, sample_ids: Sequence[int], *, before: datetime) -> dict[str, Solved]:
    """Return the rates of the groups of some samples, over all rollouts that ended before. Those of an earlier bundle
    of a scenario, and those that the machine ended, say nothing; imported runs count with a reward, solved from 1."""
    own = Trajectory.objects.filter(sample__in=IdList(sample_ids))
    ended = Trajectory.objects.filter(project=project, created_at__lt=before).exclude(outcome__in=NEVER_NEGATIVE)
    played = ended.filter(
        scenario__in=own.filter(scenario__isnull=False).values("scenario"), bundle_sha256=F("scenario__bundle_sha256")
    )
    imported = ended.filter(scenario=None, task__in=own.filter(scenario=None).exclude(task="").values("task"))
    solved = {"played": Count("pk"), "right": Count("pk", filter=Q(keep=True))}
    rewarded = {"played": Count("reward"), "right": Count("pk", filter=Q(reward__gte=1))}
    rows: list[Any] = [
        *played.order_by().values("scenario_id", "task").annotate(**solved),
        *imported.filter(environment="").order_by().values("scenario_id", "task").annotate(**rewarded),
        *imported.exclude(environment="").order_by().values("scenario_id", "task").annotate(**solved),
    ]
    found: dict[str, Solved] = {}
    for row in rows:
        name = conversation_of(row["scenario_id"], row["task"])
        earlier = found.get(name, Solved(0, 0))
        found[name] = Solved(earlier.right + row["right"], earlier.rollouts + row["played"])
    return {name: one for name, one in found.items() if one.rollouts}
