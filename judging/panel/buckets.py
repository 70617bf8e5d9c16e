"""The bucket of a duel: decided by its score, the project's thresholds and its flags."""

from collections.abc import Collection
from dataclasses import dataclass

# A duel with one of these flags is never `final`: a person has to look first.
HOLDING_FLAGS = frozenset({"leak", "leak_reader", "leak_unread", "injection", "infra"})


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Lower edges of the buckets `final` and `refined`, in points from 0 to 100."""

    final: float = 80.0
    refined: float = 66.0

    def __post_init__(self) -> None:
        if not 0 <= self.refined <= self.final <= 100:
            raise ValueError(f"thresholds need 0 <= refined <= final <= 100, not {self.refined} and {self.final}")


def bucket_for(score: float | None, *, flags: Collection[str], thresholds: Thresholds) -> str:
    """Name the bucket: `final`, `refined`, `defeat` or `unparsed`. A flag that holds turns final into refined."""
    if score is None:
        return "unparsed"
    if score >= thresholds.final:
        return "refined" if HOLDING_FLAGS.intersection(flags) else "final"
    return "refined" if score >= thresholds.refined else "defeat"
