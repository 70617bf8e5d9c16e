"""Which combinations of axes are written next: where the fewest scenarios stand, cell by cell of the heatmap."""

import math
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from curation.scenarios.taxonomy.axes import Taxonomy

Combination = dict[str, str]
Pins = Mapping[str, Sequence[str]]
# Of a large space so many are looked at for each pick: the least covered of them is as good as the least of all.
LOOKED_AT = 300


def pick_combinations(
    *, taxonomy: Taxonomy, pins: Pins, there: Iterable[Mapping[str, object]], count: int, seed: str
) -> list[Combination]:
    """`count` combinations over all axes, the least covered first; `pins` narrows an axis to some of its values.

    `there` are the axes of the scenarios that exist. A combination's coverage is how many scenarios have just it, then
    how many stand in the heatmap cells that it would fill, over all pairs of axes. Each pick counts for the next one.
    The same arguments give the same combinations.
    """
    values = {name: list(pins.get(name) or axis.values) for name, axis in taxonomy.axes.items()}
    covered = _Covered(there)
    dice = random.Random(seed)  # noqa: S311 - repeatable, not secret
    size = math.prod(len(words) for words in values.values())
    picked = []
    for _ in range(count):
        candidates = [_nth(values, number) for number in dice.sample(range(size), min(size, LOOKED_AT))]
        best = min(candidates, key=covered.of)
        covered.add(best)
        picked.append(best)
    return picked


class _Covered:
    """Counts of whole combinations and of pairs of values."""

    def __init__(self, there: Iterable[Mapping[str, object]]) -> None:
        self._whole: Counter[tuple[tuple[str, str], ...]] = Counter()
        self._pairs: Counter[tuple[tuple[str, str], tuple[str, str]]] = Counter()
        for axes in there:
            self.add({name: str(value) for name, value in axes.items()})

    def add(self, axes: Combination) -> None:
        words = tuple(sorted(axes.items()))
        self._whole[words] += 1
        self._pairs.update(combinations(words, 2))

    def of(self, axes: Combination) -> tuple[int, int]:
        words = tuple(sorted(axes.items()))
        return self._whole[words], sum(self._pairs[pair] for pair in combinations(words, 2))


def _nth(values: Mapping[str, Sequence[str]], number: int) -> Combination:
    """The combination of this number, counted through like the digits of a number."""
    combination = {}
    for name, words in values.items():
        number, at = divmod(number, len(words))
        combination[name] = words[at]
    return combination
