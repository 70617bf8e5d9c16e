"""Caps: at most so many rows of one value, such as of one repository or task, the best-scored first."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Candidate(NamedTuple):
    """A row by its sample, and its value of each capped field; an empty value is not capped."""

    sample_id: int
    score: float
    values: tuple[str, ...]


def over_cap(rows: Iterable[Candidate], caps: Mapping[str, int]) -> dict[int, str]:
    """Return the samples that are beyond a cap, each with the first field whose cap it is. `Candidate.values` are in
    the order of `caps`."""
    if not caps:
        return {}
    taken = [Counter[str]() for _ in caps]
    over: dict[int, str] = {}
    for row in sorted(rows, key=lambda row: (-row.score, row.sample_id)):
        full = next(
            (
                name
                for (name, most), count, value in zip(caps.items(), taken, row.values, strict=True)
                if value and count[value] >= most
            ),
            None,
        )
        if full is not None:
            over[row.sample_id] = full
            continue
        for count, value in zip(taken, row.values, strict=True):
            count[value] += 1
    return over
