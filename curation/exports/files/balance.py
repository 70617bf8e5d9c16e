"""Terminal balance of an export: how its trajectories end. A model that sees one ending too often learns to end so
without looking."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from curation.scenarios.models import Terminal
from curation.trajectories.rollout.balance import BLOCKED, EMPTY_QUEUE, TerminalBalance


@dataclass(slots=True)
class Endings:
    """Counts of exported trajectories, each once in however many rows it stands."""

    terminals: Counter[str] = field(default_factory=Counter)
    tasks: Counter[str] = field(default_factory=Counter)

    def add(self, terminal: str, task: str) -> None:
        self.terminals[terminal] += 1
        self.tasks[task] += 1

    def balance(self) -> TerminalBalance | None:
        """None where no trajectory is exported: then there is nothing to balance."""
        total = self.terminals.total()
        if not total:
            return None
        return TerminalBalance(
            kept=total,
            exit=self.terminals[Terminal.EXIT] / total,
            panic=self.terminals[Terminal.PANIC] / total,
            empty_queue=self.tasks[EMPTY_QUEUE] / total,
            blocked=self.tasks[BLOCKED] / total,
        )


def ending_shares(balance: Mapping[str, object]) -> list[tuple[str, float]]:
    """The shares of a balance as it is stored, each with its name, in the order in which they are shown."""
    names = {"exit": "exit", "panic": "panic", "empty_queue": EMPTY_QUEUE, "blocked": BLOCKED}
    return [(name, float(str(balance[key]))) for key, name in names.items()]
