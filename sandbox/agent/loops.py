"""Whether an agent looped, computed from its commands."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

LONG_RUN = 3
HALF, ENOUGH = 0.5, 4


@dataclass(frozen=True, slots=True)
class LoopFacts:
    """`repeated_share` (0–1) of the commands repeat earlier ones; `longest_repeat` is the longest run of equal ones."""

    commands: int
    repeated_share: float
    longest_repeat: int

    @property
    def looping(self) -> bool:
        """Three equal commands in a row, or at least four commands of which half are repeats."""
        return self.longest_repeat >= LONG_RUN or (self.commands >= ENOUGH and self.repeated_share >= HALF)


def loop_facts(commands: Sequence[str] | Sequence[bytes]) -> LoopFacts:
    """`commands` are without the terminal and compared as they are written."""
    total = len(commands)
    repeated = (total - len(set(commands))) / total if total else 0.0
    longest = max((len(list(run)) for _, run in groupby(commands)), default=0)
    return LoopFacts(total, repeated, longest)
