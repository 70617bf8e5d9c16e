"""The cost of a run's calls by stage and model. The sum is the run's cost."""

from dataclasses import dataclass, field
from decimal import Decimal

from django.db.models import Count, Q, Sum

from curation.runs.calls.targets import run_instructions
from curation.runs.kinds import Json
from curation.runs.models import Call, CallStatus, Run
from curation.web.text.figures import exact_money

# The precision of stored costs; SQLite's sums have more, meaningless digits.
STAGES = ("king", "challenger", "judge")


@dataclass(slots=True)
class StageUsage:
    """All calls of one model in one stage, retried and unanswered ones included. `cost` is the known part."""

    stage: str
    model: str
    calls: int = 0
    tokens: int = 0
    cost: Decimal = field(default_factory=Decimal)
    unknown: int = 0

    def as_json(self) -> Json:
        known = exact_money(self.cost)
        return {
            "stage": self.stage,
            "model": self.model,
            "calls": self.calls,
            "tokens": self.tokens,
            "cost": None if self.unknown else known,
            "cost_known": known,
            "cost_unknown_calls": self.unknown,
        }


def usage_of(run: Run) -> list[StageUsage]:
    """Return the usage of each stage and model, in the order of the stages."""
    # A stage that was planned again has other items: its earlier calls are known by their instructions.
    stages = {run_instructions(run, name).sha256: name for name in STAGES}
    ended = Call.objects.filter(run=run).exclude(status=CallStatus.SENT).order_by()
    found: dict[tuple[str, str], StageUsage] = {}
    for row in ended.values("item__stage", "instructions_hash", "endpoint_name").annotate(
        n=Count("id"),
        tokens_of_prompts=Sum("tokens_in"),
        tokens_of_answers=Sum("tokens_out"),
        known=Sum("cost"),
        unknown=Count("id", filter=Q(cost=None)),
    ):
        stage = row["item__stage"] or stages.get(row["instructions_hash"], "")
        usage = found.setdefault((stage, row["endpoint_name"]), StageUsage(stage, row["endpoint_name"]))
        usage.calls += row["n"]
        usage.tokens += (row["tokens_of_prompts"] or 0) + (row["tokens_of_answers"] or 0)
        usage.cost += row["known"] or Decimal(0)
        usage.unknown += row["unknown"]
    order = {name: number for number, name in enumerate(STAGES)}
    return sorted(found.values(), key=lambda usage: (order.get(usage.stage, len(STAGES)), usage.model))
