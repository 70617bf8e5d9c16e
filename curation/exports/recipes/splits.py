"""Splits: rows are divided by groups, so that no group is in two splits. Near duplicates are no concern here: only one
of them leaves."""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

Level = Literal["repo", "instance_id"]
# From the coarsest.
LEVELS: tuple[Level, ...] = get_args(Level)
# A level is too coarse if the share of a split is further than this from the wanted one.
TOLERANCE = 0.1


class GroupKey(NamedTuple):
    """The keys by which a row can be grouped. A scenario's name is the `instance_id` of its trajectories;
    `conversation` is the row of the source, for rows that have neither."""

    repo: str
    instance_id: str
    conversation: str

    def at(self, level: Level) -> str:
        """Return the key at a level, or the next finer one that is not empty."""
        if level == "repo" and self.repo:
            return f"repo {self.repo}"
        return f"instance {self.instance_id}" if self.instance_id else f"row {self.conversation}"


@dataclass(frozen=True, slots=True)
class Splitting:
    """How rows are divided: by which level, into how many groups, and the share of rows that each split gets."""

    level: Level
    groups: int = 0
    shares: Mapping[str, float] = field(default_factory=dict)


def split_of(group: str, *, seed: int, shares: Mapping[str, float]) -> str:
    """Return the split of a group. A seeded hash of its name decides, so new rows never move existing ones.

    The hash, as a number in [0, 1), falls into one of the shares laid end to end; these sum to 1. With few or uneven
    groups the shares are met only roughly.
    """
    digest = hashlib.blake2b(f"{seed}\n{group}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    point = int.from_bytes(digest, "big") / 2**64
    edge = 0.0
    names = [name for name, share in shares.items() if share > 0]
    for name in names:
        edge += shares[name]
        if point < edge:
            return name
    return names[-1]


def choose_splitting(keys: Sequence[GroupKey], *, seed: int, wanted: Mapping[str, float]) -> Splitting:
    """Return the coarsest splitting whose shares are within `TOLERANCE` of the wanted ones and leave no split empty, or
    else the one that comes nearest."""
    best: tuple[float, Splitting] | None = None
    for level in LEVELS:
        found = splitting_at(level, keys, seed=seed, wanted=wanted)
        missed = max(abs(found.shares.get(name, 0.0) - share) for name, share in wanted.items())
        empty = any(share > 0 and not found.shares.get(name) for name, share in wanted.items())
        if missed <= TOLERANCE and not empty:
            return found
        if best is None or missed + empty < best[0]:
            best = missed + empty, found
    assert best is not None  # noqa: S101 - there are levels
    return best[1]


def splitting_at(level: Level, keys: Sequence[GroupKey], *, seed: int, wanted: Mapping[str, float]) -> Splitting:
    """Return how the rows are divided at one level."""
    sizes: Counter[str] = Counter()
    for key, size in Counter(keys).items():
        sizes[key.at(level)] += size
    rows: Counter[str] = Counter()
    for group, size in sizes.items():
        rows[split_of(group, seed=seed, shares=wanted)] += size
    return Splitting(level, len(sizes), {name: rows[name] / len(keys) for name in wanted} if keys else {})
