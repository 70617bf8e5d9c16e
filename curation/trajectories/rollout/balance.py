"""Terminal balance: how kept trajectories end. Too many panics teach giving up, too few teach never to stop."""

from dataclasses import asdict, dataclass

from django.db.models import Count, Exists, OuterRef, Q

from curation.projects.settings.document import Balance as Band
from curation.scenarios.models import ScenarioAxis
from curation.trajectories.models import TrajectoryQuerySet

# Tasks in which there is nothing to do: leaving at once must never be the easy answer to all.
EMPTY_QUEUE, BLOCKED = "empty-queue", "blocked"


@dataclass(frozen=True, slots=True)
class TerminalBalance:
    """Kept trajectories (`kept`) and the shares of them (0–1) by terminal and by task; shares are 0 where none is."""

    kept: int
    exit: float
    panic: float
    empty_queue: float
    blocked: float

    def as_json(self) -> dict[str, object]:
        return {name: round(value, 4) if isinstance(value, float) else value for name, value in asdict(self).items()}

    def warnings(self, band: Band) -> list[str]:
        """What lies outside the project's band; nothing without a kept trajectory."""
        if not self.kept or band.panic_low <= self.panic <= band.panic_high:
            return []
        side = "fewer" if self.panic < band.panic_low else "more"
        shares = f"{self.panic:.0%} of {self.kept} kept trajectories end in panic"
        return [f"{shares}, {side} than the project's band of {band.panic_low:.0%} to {band.panic_high:.0%}."]


def terminal_balance(rows: TrajectoryQuerySet) -> TerminalBalance:
    """The balance of the kept ones among `rows`, in one query."""

    def of_task(task: str) -> Exists:
        return Exists(ScenarioAxis.objects.filter(scenario=OuterRef("scenario"), axis="task", value=task))

    counted = (
        rows.kept()
        .order_by()
        .aggregate(
            kept=Count("id"),
            exit=Count("id", filter=Q(terminal="exit")),
            panic=Count("id", filter=Q(terminal="panic")),
            empty_queue=Count("id", filter=Q(of_task(EMPTY_QUEUE))),
            blocked=Count("id", filter=Q(of_task(BLOCKED))),
        )
    )
    kept = counted.pop("kept")
    shares = {name: number / kept if kept else 0.0 for name, number in counted.items()}
    return TerminalBalance(kept=kept, **shares)
