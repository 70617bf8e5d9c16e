"""Sampling: a number of turns from random windows over the whole source, the same for the same seed.

The source is cut into blocks of `window_size` rows, from a random phase on, and divided into `windows` parts of equal
length. First, one random block of each part is read for its share of `count`. Missing turns come from further random
blocks, and finally from the rest of the first blocks, so the count is exact if the source has that many turns.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SamplingPlan:
    """`count` turns from a source of `total` rows."""

    total: int
    count: int
    windows: int
    window_size: int
    seed: int

    def first_blocks(self) -> list[int]:
        """Return one block of each part of the source, in order; at most one per turn and per block."""
        blocks = self._blocks()
        parts = min(self.windows, self.count, blocks)
        dice = random.Random(f"{self.seed}:blocks")  # noqa: S311 - repeatable, not secret
        return [dice.randrange(part * blocks // parts, (part + 1) * blocks // parts) for part in range(parts)]

    def shares(self) -> list[int]:
        """Return the turns to take from each first block; their sum is `count`."""
        parts = len(self.first_blocks())
        share, rest = divmod(self.count, parts) if parts else (0, 0)
        dice = random.Random(f"{self.seed}:shares")  # noqa: S311
        larger = set(dice.sample(range(parts), rest))
        return [share + (part in larger) for part in range(parts)]

    def further_blocks(self) -> Iterator[int]:
        """Yield all other blocks in random order."""
        first = set(self.first_blocks())
        dice = random.Random(f"{self.seed}:further")  # noqa: S311
        yield from (block for block in dice.sample(range(self._blocks()), self._blocks()) if block not in first)

    def span(self, block: int) -> tuple[int, int]:
        """Return (first offset, number of rows) of a block. The first and the last block may be shorter."""
        start = max(0, self._phase() + (block - 1) * self.window_size)
        return start, min(self.total, self._phase() + block * self.window_size) - start

    def _phase(self) -> int:
        """Return the length of block 0, from 1 to `window_size`."""
        return random.Random(f"{self.seed}:phase").randint(1, self.window_size)  # noqa: S311

    def _blocks(self) -> int:
        return 0 if self.total == 0 else 1 + max(0, -(-(self.total - self._phase()) // self.window_size))


def pick_turns(turns: list[int], *, most: int | None, seed: int, offset: int) -> list[int]:
    """Return up to `most` of a row's turns in order, or all if `most` is None."""
    if most is None or len(turns) <= most:
        return turns
    return sorted(random.Random(f"{seed}:row:{offset}").sample(turns, most))  # noqa: S311


def order_in_block(turns: list[tuple[int, int]], *, seed: int, block: int) -> list[tuple[int, int]]:
    """Return the (offset, turn) pairs of a block in the order in which they are taken."""
    shuffled = list(turns)
    random.Random(f"{seed}:block:{block}").shuffle(shuffled)  # noqa: S311
    return shuffled
