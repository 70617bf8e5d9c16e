"""The order of the queue: what is closest to a bucket edge, what the judges were least sure of, and trajectories whose
facts contradict each other come first."""

from typing import Protocol

FLIP_BONUS = 10.0
LEAK_BONUS = 15.0
SPREAD_WEIGHT = 0.1
# Parsed samples lie at 100 or below, so an unparsed one comes after every other.
UNPARSED_PRIORITY = 1000.0
# Trajectories have no score. Doubtful ones come before every duel, the others among the duels that lie off an edge.
DOUBT = 20.0
KEPT_PRIORITY, REJECTED_PRIORITY = 20.0, 40.0


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


def trajectory_priority(*, keep: bool, machine: bool, looping: bool, passed: bool, differs: bool) -> float:
    """Less is reviewed sooner, on the scale of `priority_of`.

    What the checker says can be trusted where the other facts agree with it. It cannot where a kept rollout went round
    in circles, where the state was right and yet the rollout is not kept (the wrong terminal, or none), or where a
    replay came to something else (`differs`): each such doubt brings it forward by `DOUBT`. Then come kept
    trajectories, since they are what is exported, then rejected ones. A failure of the machine tells nothing: last.
    """
    if machine:
        return UNPARSED_PRIORITY
    doubts = (keep and looping) + (passed and not keep) + differs
    if doubts:
        return -DOUBT * doubts
    return KEPT_PRIORITY if keep else REJECTED_PRIORITY
