"""Facts of samples as the columns of a table."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# By name, a number or a word. A fact that a sample does not have is missing.
Fact = float | str
Facts = Mapping[str, Fact]
# A fact of fewer samples teaches nothing; more columns than these are left out, the rarest first.
FEWEST, MOST_COLUMNS = 10, 120
MISSING = ""
Table = NDArray[np.object_]


@dataclass(frozen=True, slots=True)
class FactColumns:
    """The facts that a model reads, in the order of its table: those with numbers, then those with words.

    `typical` is the value of each that stands for "nothing special": the median, or the commonest word.
    """

    numbers: tuple[str, ...]
    words: tuple[str, ...]
    typical: tuple[Fact, ...]

    @classmethod
    def of(cls, rows: Sequence[Facts]) -> "FactColumns":
        """Choose the columns. A fact with a word anywhere is one of words."""
        known = Counter(name for row in rows for name in row)
        chosen = [name for name, n in known.most_common(MOST_COLUMNS) if n >= FEWEST]
        worded = {name for row in rows for name, value in row.items() if isinstance(value, str)}
        numbers = tuple(sorted(name for name in chosen if name not in worded))
        words = tuple(sorted(name for name in chosen if name in worded))
        medians = [float(np.median([float(row[name]) for row in rows if name in row])) for name in numbers]
        common = [Counter(str(row.get(name, MISSING)) for row in rows).most_common(1)[0][0] for name in words]
        return cls(numbers, words, (*medians, *common))

    @property
    def names(self) -> tuple[str, ...]:
        return self.numbers + self.words

    def table(self, rows: Sequence[Facts]) -> Table:
        """Return the rows, of shape (rows, columns). A missing number is NaN, a missing word `MISSING`; so is a word
        that stands where the model knows numbers."""
        table = np.empty((len(rows), len(self.names)), dtype=object)
        for place, name in enumerate(self.numbers):
            table[:, place] = [value if isinstance(value := row.get(name), int | float) else np.nan for row in rows]
        for place, name in enumerate(self.words, start=len(self.numbers)):
            table[:, place] = [str(row.get(name, MISSING)) for row in rows]
        return table
