"""Two judges that are wrong together on control duels more often than their accuracies and the others explain."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from judging.statistics.distributions import hypergeometric
from judging.statistics.paired_tests import Floats, holm

LEVEL = 0.05
# Fewer common errors are said of nobody, however unlikely.
FEW_ERRORS = 3


@dataclass(frozen=True, slots=True)
class JointErrors:
    """Two judges, wrong together in `both` of `duels` control duels where `expected` are; `p` is corrected for all
    pairs."""

    judges: tuple[str, str]
    both: int
    duels: int
    expected: float
    p: float


def pairs_of(outcomes: Sequence[tuple[str, Mapping[str, bool]]], panel: Sequence[str]) -> tuple[JointErrors, ...]:
    """Return the pairs that are wrong together too often.

    `outcomes` are the kind of each control duel, and whether each judge that parsed it is right. The outcome is known,
    so two judges that read on their own are wrong independently, given how hard the duel is: its kind, and how many of
    the other judges are wrong too. Within each such group the number of common errors is hypergeometric (R. A. Fisher,
    1935; the groups added up as by N. Mantel and W. Haenszel, 1959, but exactly). Holm's correction is over all pairs.
    """
    found = [_pair(outcomes, two, [judge for judge in panel if judge not in two]) for two in combinations(panel, 2)]
    ps = holm([pair.p for pair in found])
    corrected = [
        JointErrors(pair.judges, pair.both, pair.duels, pair.expected, p) for pair, p in zip(found, ps, strict=True)
    ]
    return tuple(pair for pair in corrected if pair.p < LEVEL and pair.both >= FEW_ERRORS)


def _pair(outcomes: Sequence[tuple[str, Mapping[str, bool]]], two: tuple[str, str], rest: Sequence[str]) -> JointErrors:
    one, other = two
    groups: dict[tuple[str, int], Counter[tuple[bool, bool]]] = {}
    for kind, right in outcomes:
        if one in right and other in right:
            group = kind, sum(not right[judge] for judge in rest if judge in right)
            groups.setdefault(group, Counter())[right[one], right[other]] += 1
    chances: Floats = np.ones(1)
    both, duels, expected = 0, 0, 0.0
    for seen in groups.values():
        count = seen.total()
        wrong = seen[False, False] + seen[False, True], seen[False, False] + seen[True, False]
        both, duels, expected = both + seen[False, False], duels + count, expected + wrong[0] * wrong[1] / count
        chances = np.convolve(chances, [hypergeometric(k, count, *wrong) for k in range(min(wrong) + 1)])
    return JointErrors(two, both, duels, expected, min(1.0, float(chances[both:].sum())))
