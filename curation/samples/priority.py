"""The order of the queue: what is closest to a bucket edge, and what the judges were least sure of, comes first."""

from typing import Protocol

FLIP_BONUS = 10.0
LEAK_BONUS = 15.0
SPREAD_WEIGHT = 0.1
# Parsed samples lie at 100 or below, so an unparsed one comes after every other.
UNPARSED_PRIORITY = 1000.0


class Edges(Protocol):
    """The lower edges of the buckets `final` and `refined`, in points of the score (0–100)."""

    @property
    def final(self) -> float: ...

    @property
    def refined(self) -> float: ...


def priority_of(*, score: float | None, thresholds: Edges, flipped: bool, spread: float, leak: bool) -> float:
    """Points from the nearest bucket edge, less what makes a look worth more; the smallest is reviewed first.

    `score` and `spread` (best judge's score less the worst's) run from 0 to 100.

    A person's decision changes most where a small error of the panel would have changed the bucket, hence the
    distance. A judge that changed its mind with the order of the answers (10 points) and judges that lie apart
    (a tenth of their spread) widen that error. A leak (15 points) is asked for sooner still: it keeps a good answer
    out of `final`, and only a person can clear it. A duel without a score tells nothing about an edge: it comes last.
    """
    if score is None:
        return UNPARSED_PRIORITY
    distance = min(abs(score - thresholds.final), abs(score - thresholds.refined))
    return distance - FLIP_BONUS * flipped - SPREAD_WEIGHT * spread - LEAK_BONUS * leak
