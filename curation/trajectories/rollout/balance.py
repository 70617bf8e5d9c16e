"""Terminal balance: the share of kept trajectories that end in `exit` and in `panic`, and the figures of a rollout run.

Too many panics teach a model to give up, too few teach it never to stop.
"""

from dataclasses import asdict

from django.db.models import Count, Exists, OuterRef, Q
from pydantic import Field

from curation.llm.client.tokens import COMPLETION, LOGPROBS
from curation.projects.settings.document import Balance as Band
from curation.runs.kinds import Json
from curation.runs.models import Item, Run
from curation.scenarios.models import ScenarioAxis
from curation.trajectories.models import Trajectory, TrajectoryQuerySet
from curation.web.schemas import out
from curation.web.text.figures import counted, percent

# Tasks with nothing to do. If most kept trajectories were of these, leaving at once would be learned as the answer.
EMPTY_QUEUE, BLOCKED = "empty-queue", "blocked"


@out
class BalanceOut:
    """Kept trajectories with a terminal and their shares (0 to 1) by terminal and by task; null without any.

    Imported runs and episodes on servers have no terminal.
    """

    kept: int = Field(examples=[20])
    exit: float | None = Field(examples=[0.85])
    panic: float | None = Field(examples=[0.15])
    empty_queue: float | None = Field(examples=[0.1])
    blocked: float | None = Field(examples=[0.15])

    @classmethod
    def of(cls, *, kept: int, **counts: int) -> "BalanceOut":
        return cls(kept=kept, **{name: count / kept if kept else None for name, count in counts.items()})

    def as_json(self) -> dict[str, object]:
        return {name: round(value, 4) if isinstance(value, float) else value for name, value in asdict(self).items()}

    def warnings(self, band: Band) -> list[str]:
        """Return a warning if the share of panics is outside the project's band."""
        if self.panic is None or band.panic_low <= self.panic <= band.panic_high:
            return []
        side = "fewer" if self.panic < band.panic_low else "more"
        shares = f"{percent(self.panic)} of {counted(self.kept, 'kept trajectory')} end in panic"
        limits = f"{percent(band.panic_low)} to {percent(band.panic_high)}"
        return [f"{shares}, {side} than the project's band of {limits}."]


def terminal_balance(rows: TrajectoryQuerySet) -> BalanceOut:
    """One query over the kept trajectories among `rows` that have a terminal."""

    def of_task(task: str) -> Exists:
        return Exists(ScenarioAxis.objects.filter(scenario=OuterRef("scenario"), axis="task", value=task))

    counted = (
        rows.kept()
        .exclude(terminal="")
        .order_by()
        .aggregate(
            kept=Count("id"),
            exit=Count("id", filter=Q(terminal="exit")),
            panic=Count("id", filter=Q(terminal="panic")),
            empty_queue=Count("id", filter=Q(of_task(EMPTY_QUEUE))),
            blocked=Count("id", filter=Q(of_task(BLOCKED))),
        )
    )
    return BalanceOut.of(**counted)


def rollout_figures(run: Run) -> Json:
    """The result of a rollout run: trajectories by outcome, and the balance of those kept."""
    rows = Trajectory.objects.of(run.project).filter(run=run)
    outcomes = rows.outcome_counts()
    balance = terminal_balance(rows)
    return {
        "trajectories": sum(outcomes.values()),
        "kept": balance.kept,
        "outcomes": outcomes,
        "balance": balance.as_json(),
        "warnings": balance.warnings(run.settings.balance),
        **({"tokens": _tokens(run)} if run.params.get("token_ids") else {}),
    }


def _tokens(run: Run) -> dict[str, int]:
    """Count the replies, and those whose ids and log-probabilities of tokens are kept: an endpoint may not give them,
    and a reply that was no command is no step."""
    results = list(Item.objects.filter(run=run).values_list("result", flat=True))
    return {name: sum(result.get(name, 0) for result in results) for name in ("replies", COMPLETION, LOGPROBS)}
