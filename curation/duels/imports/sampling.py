"""Sampling: a number of turns from random offset windows over the whole source, the same for the same seed.

The source is cut into blocks of `window_size` rows that begin at a random phase. It is divided into `windows` parts
of equal length, and one random block of each is read first, each for its share of `count`. What these windows lack
comes from further random blocks, and last from what is left in the first windows; so the count is exact whenever the
source has that many turns.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Plan:
    """`count` turns from a source of `total` rows."""

    total: int
    count: int
    windows: int
    window_size: int
    seed: int

    def first_blocks(self) -> list[int]:
        """One block of each part of the source, in order; as many as `windows`, turns and blocks allow."""
        blocks = self._blocks()
        parts = min(self.windows, self.count, blocks)
        dice = random.Random(f"{self.seed}:blocks")  # noqa: S311 - repeatable, not secret
        return [dice.randrange(part * blocks // parts, (part + 1) * blocks // parts) for part in range(parts)]

    def shares(self) -> list[int]:
        """How many turns each first window is read for; they add up to `count`."""
        parts = len(self.first_blocks())
        share, more = divmod(self.count, parts) if parts else (0, 0)
        dice = random.Random(f"{self.seed}:shares")  # noqa: S311
        lucky = set(dice.sample(range(parts), more))
        return [share + (part in lucky) for part in range(parts)]

    def further_blocks(self) -> Iterator[int]:
        """All other blocks in random order."""
        first = set(self.first_blocks())
        dice = random.Random(f"{self.seed}:further")  # noqa: S311
        yield from (block for block in dice.sample(range(self._blocks()), self._blocks()) if block not in first)

    def span(self, block: int) -> tuple[int, int]:
        """(first offset, number of rows) of a block; the first and the last may be shorter."""
        start = max(0, self._phase() + (block - 1) * self.window_size)
        return start, min(self.total, self._phase() + block * self.window_size) - start

    def _phase(self) -> int:
        """Length of block 0, 1 … `window_size`."""
        return random.Random(f"{self.seed}:phase").randint(1, self.window_size)  # noqa: S311

    def _blocks(self) -> int:
        return 0 if self.total == 0 else 1 + max(0, -(-(self.total - self._phase()) // self.window_size))


def pick_turns(turns: list[int], *, most: int | None, seed: int, offset: int) -> list[int]:
    """Up to `most` of a row's turns, in order; all where `most` is None."""
    if most is None or len(turns) <= most:
        return turns
    return sorted(random.Random(f"{seed}:row:{offset}").sample(turns, most))  # noqa: S311


def order_in_block(turns: list[tuple[int, int]], *, seed: int, block: int) -> list[tuple[int, int]]:
    """The (offset, turn) pairs of a block in the order in which they are taken."""
    shuffled = list(turns)
    random.Random(f"{seed}:block:{block}").shuffle(shuffled)  # noqa: S311
    return shuffled
