"""The numbers by which samples are ordered: scores by name, the higher the likelier to be approved, and the priority,
the smallest of which is reviewed first.
"""

from typing import Protocol

from django.db.models import F, Value
from django.db.models.expressions import Combinable
from django.db.models.fields.json import KeyTransform

from curation.web.problems import FieldError, Invalid

PREDICTED = "predicted"
# Name → column of the sample, or a lookup from it.
COLUMNS = {"score": "score", "reward": "trajectory__reward", PREDICTED: "predicted"}
# All samples are alike: there is one threshold, below all of them.
NONE = "none"
REWARD = "reward."
NO_MODEL = "No model of decisions was fitted, so no sample has a predicted approval. Fit one first, or use `score`."


def score_of(name: str) -> Combinable:
    """Return the score of that name as an expression on samples; its values may be null or no number. Raises `Invalid`
    for another name."""
    if name in COLUMNS:
        return F(COLUMNS[name])
    if name == NONE:
        return Value(0.0)
    if name.startswith(REWARD) and name != REWARD:
        return KeyTransform(name.removeprefix(REWARD), "trajectory__rewards")
    known = f"{', '.join([*COLUMNS, NONE])} or {REWARD}<name>"
    raise Invalid(f"There is no score {name[:60]!r}; use {known}.", errors=[FieldError("score", f"is {known}")])


FLIP_BONUS = 10.0
HELD_BONUS = 15.0
SPREAD_WEIGHT = 0.1
# Parsed samples have 100 or less, so unparsed ones come last.
UNPARSED_PRIORITY = 1000.0
# Trajectories have no score. Doubtful ones come before all duels, the others among duels away from an edge.
DOUBT = 20.0
KEPT_PRIORITY, REJECTED_PRIORITY = 20.0, 40.0


class Edges(Protocol):
    """The lower edges of the buckets `final` and `refined`, in points of the score (0–100)."""

    @property
    def final(self) -> float: ...

    @property
    def refined(self) -> float: ...


def priority_of(*, score: float | None, thresholds: Edges, flipped: bool, spread: float, held: bool) -> float:
    """The distance to the nearest bucket edge, less bonuses for doubt. The smallest value is reviewed first.

    `score` and `spread` (the difference between the best and the worst judge) are 0 to 100.

    Near an edge a small error of the panel changes the bucket. The error is larger if a judge changed its verdict with
    the order of the answers (10 points) or if judges disagree (a tenth of their spread). A flag of a leak or
    an injection (15 points) keeps a good answer out of `final` until a person looks. A duel without a score comes last.
    """
    if score is None:
        return UNPARSED_PRIORITY
    distance = min(abs(score - thresholds.final), abs(score - thresholds.refined))
    return distance - FLIP_BONUS * flipped - SPREAD_WEIGHT * spread - HELD_BONUS * held


def trajectory_priority(*, keep: bool, machine: bool, looping: bool, passed: bool, differs: bool) -> float:
    """The smallest value is reviewed first, on the scale of `priority_of`.

    The checker is doubtful if a kept rollout looped, if the state was right but the rollout is not kept (a wrong or
    missing terminal), or if a replay had another result (`differs`). Each doubt lowers the value by `DOUBT`. Then come
    kept trajectories, since these are exported, then rejected ones. Failures of the machine come last.
    """
    if machine:
        return UNPARSED_PRIORITY
    doubts = (keep and looping) + (passed and not keep) + differs
    if doubts:
        return -DOUBT * doubts
    return KEPT_PRIORITY if keep else REJECTED_PRIORITY
