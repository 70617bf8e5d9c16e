"""Choose the combinations of axis values to write next: those with the fewest scenarios in the heatmap."""

import math
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from curation.scenarios.taxonomy.axes import Taxonomy

Combination = dict[str, str]
Pins = Mapping[str, Sequence[str]]
# In a large space, the least covered of this many random combinations is good enough.
CANDIDATES = 300


def pick_combinations(
    *, taxonomy: Taxonomy, pins: Pins, existing: Iterable[Mapping[str, object]], count: int, seed: str
) -> list[Combination]:
    """Return `count` combinations over all axes, the least covered first; `pins` limits an axis to some of its values.

    `existing` are the axes of the existing scenarios. A combination's coverage is the number of scenarios that have
    exactly it, then the number in its heatmap cells over all pairs of axes. Each pick counts for the next one. The
    same arguments return the same combinations.
    """
    values = {name: list(pins.get(name) or axis.values) for name, axis in taxonomy.axes.items()}
    covered = _Covered(existing)
    dice = random.Random(seed)  # noqa: S311 - repeatable, not secret
    size = math.prod(len(words) for words in values.values())
    picked = []
    for _ in range(count):
        candidates = [_nth(values, number) for number in dice.sample(range(size), min(size, CANDIDATES))]
        best = min(candidates, key=covered.of)
        covered.add(best)
        picked.append(best)
    return picked


class _Covered:
    """Counts of whole combinations and of pairs of values."""

    def __init__(self, existing: Iterable[Mapping[str, object]]) -> None:
        self._whole: Counter[tuple[tuple[str, str], ...]] = Counter()
        self._pairs: Counter[tuple[tuple[str, str], tuple[str, str]]] = Counter()
        for axes in existing:
            self.add({name: str(value) for name, value in axes.items()})

    def add(self, axes: Combination) -> None:
        words = tuple(sorted(axes.items()))
        self._whole[words] += 1
        self._pairs.update(combinations(words, 2))

    def of(self, axes: Combination) -> tuple[int, int]:
        words = tuple(sorted(axes.items()))
        return self._whole[words], sum(self._pairs[pair] for pair in combinations(words, 2))


def _nth(values: Mapping[str, Sequence[str]], number: int) -> Combination:
    """The combination with this number, whose digits are positions in the values."""
    combination = {}
    for name, words in values.items():
        number, at = divmod(number, len(words))
        combination[name] = words[at]
    return combination
