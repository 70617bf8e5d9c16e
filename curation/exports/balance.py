"""Terminal balance: how many of the exported trajectories leave by `exit` and by `panic`, and in how many there was
nothing to do or no way on. A model that sees one ending too often learns to end so without looking."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypedDict

from curation.projects.settings import Balance
from curation.scenarios.models import Terminal

WATCHED_TASKS = ("empty-queue", "blocked")


class Terminals(TypedDict):
    """The figures in counts, manifest and API; shares are of `trajectories`, 0 to 1."""

    trajectories: int
    terminals: dict[str, int]
    tasks: dict[str, int]
    shares: dict[str, float]
    warnings: list[str]


@dataclass(slots=True)
class Endings:
    """Counts of exported trajectories, each once in however many rows it stands."""

    terminals: Counter[str] = field(default_factory=Counter)
    tasks: Counter[str] = field(default_factory=Counter)

    def add(self, terminal: str, task: str) -> None:
        self.terminals[terminal] += 1
        self.tasks[task] += 1

    def figures(self, band: Balance) -> Terminals | None:
        """None where no trajectory is exported: then there is nothing to balance."""
        total = self.terminals.total()
        if not total:
            return None
        terminals = {name: self.terminals[name] for name in Terminal.values}
        tasks = {name: self.tasks[name] for name in WATCHED_TASKS}
        shares = {name: round(count / total, 4) for name, count in (terminals | tasks).items()}
        warnings = _warnings(terminals[Terminal.PANIC.value], total, band)
        return {
            "trajectories": total,
            "terminals": terminals,
            "tasks": tasks,
            "shares": shares,
            "warnings": warnings,
        }


def _warnings(panics: int, total: int, band: Balance) -> list[str]:
    if band.panic_low <= panics / total <= band.panic_high:
        return []
    which = "few" if panics / total < band.panic_low else "many"
    return [
        f"{panics:,} of {total:,} trajectories ({panics / total:.1%}) end in panic, which is too {which}: the project's"
        f" band is {band.panic_low:.1%} to {band.panic_high:.1%}."
    ]


def warnings_of(counts: Mapping[str, object]) -> list[str]:
    """The warnings in the stored counts of an export; none in those of an export that is under way."""
    figures = counts.get("terminals")
    return list(figures["warnings"]) if isinstance(figures, dict) else []
