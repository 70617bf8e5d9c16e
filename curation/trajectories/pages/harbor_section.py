"""The section of a run of kind `harbor`: each agent with each model, and the newest trials."""

from dataclasses import dataclass
from decimal import Decimal

from django.urls import reverse

from curation.runs.models import Item, Run
from curation.trajectories.harbor.stage import JOB, AgentFigures, HarborStage
from curation.trajectories.imported.save import main_reward

SHOWN = 20


@dataclass(frozen=True, slots=True)
class TrialRow:
    """`url` is that of its trajectory, if it has one."""

    name: str
    task: str
    agent: str
    model: str
    reward: float | None
    cost: Decimal | None
    exception: str
    url: str


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


def _trial(run: Run, item: Item) -> TrialRow:
    made = item.result["trajectories"]
    cost = item.result["cost"]
    return TrialRow(
        name=item.key,
        task=item.data["task"],
        agent=item.data["agent"],
        model=item.data["model"],
        reward=main_reward(item.result["rewards"]),
        cost=None if cost is None else Decimal(cost),
        exception=item.result["exception"],
        url=reverse("trajectory-page", args=[run.project.slug, made[0]]) if made else "",
    )
