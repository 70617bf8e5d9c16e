"""Two versions of a judge's instructions on duels whose outcome is known."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from judging.statistics.judges.controls import Kappa, cohens_kappa
from judging.statistics.paired import MeanDifference, difference
from judging.statistics.rates import Interval, clustered_wilson


@dataclass(frozen=True, slots=True)
class TrialReading:
    """A duel of a `task` with its known outcome: 1 for the challenger, -1 for its opponent, 0 for neither. `before` and
    `after` are the judge's preferences under both texts; None where its replies did not parse."""

    task: str
    expected: int
    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True)
class Rightness:
    """`right` of the `n` duels that parsed have the known outcome. The 95 % interval of the share takes the duels of
    one task together; that of κ takes each duel alone."""

    n: int
    right: int
    accuracy: float | None
    interval: Interval
    kappa: Kappa


@dataclass(frozen=True, slots=True)
class InstructionsTrial:
    """Both texts on the same duels: those that parsed under both, of `known` ones. `change` is the difference of their
    accuracy; None without a duel."""

    known: int
    before: Rightness
    after: Rightness
    change: MeanDifference | None


def trial(readings: Sequence[TrialReading]) -> InstructionsTrial:
    """Compare both texts. A duel that did not parse under one of them is missing from both, never an error."""
    known = [one for one in readings if one.before is not None and one.after is not None]
    tasks, expected = [one.task for one in known], [one.expected for one in known]
    before = _rightness(tasks, expected, [one.before for one in known])
    after = _rightness(tasks, expected, [one.after for one in known])
    if not known:
        return InstructionsTrial(len(readings), before, after, None)
    right = [float(one.before == one.expected) for one in known], [float(one.after == one.expected) for one in known]
    return InstructionsTrial(len(readings), before, after, difference(*right, tasks, largest=1.0))


def _rightness(tasks: Sequence[str], expected: Sequence[int], said: Sequence[int | None]) -> Rightness:
    by_task: dict[str, list[bool]] = defaultdict(list)
    for task, outcome, preferred in zip(tasks, expected, said, strict=True):
        by_task[task].append(outcome == preferred)
    right = sum(map(sum, by_task.values()))
    interval = clustered_wilson([(sum(hits), len(hits)) for hits in by_task.values()])
    return Rightness(len(said), right, right / len(said) if said else None, interval, cohens_kappa(said, expected))
