"""The decisions that a model is fitted on."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from django.db.models import Case, Count, IntegerField, Q, Value, When
from pydantic import Field

from curation.projects.models import Project
from curation.review.models import DECIDING, Action, Decision, DecisionQuerySet, Pick
from curation.web.problems import Invalid
from curation.web.schemas import StrictModel

FEWEST, MOST = 30, 20_000
_APPROVED = Q(action=Action.APPROVE, revision=None) & ~Q(pick=Pick.KING)
# 1 for an approval of the answer as it was recorded.
_ANSWER = Case(When(_APPROVED, then=Value(1)), default=Value(0), output_field=IntegerField())


class PredictParams(StrictModel):
    decisions: Literal["single", "all"] = Field(
        "single",
        description="`single`: those made one by one; `all`: also bulk decisions, which follow a filter, and imports.",
    )
    seed: int = Field(0, ge=0, le=2**31 - 1, description="The same decisions and seed fit the same model.")


class DecidedSample(NamedTuple):
    """`approved`: the sample's own answer was approved as it was recorded. `group` names the task."""

    sample: int
    version: int
    approved: bool
    group: str


class DecisionCounts(NamedTuple):
    approved: int
    others: int

    def refusal(self) -> str:
        """Return why these are too few decisions, as a sentence; "" if they are enough."""
        if min(self) >= FEWEST:
            return ""
        return (
            f"A model needs at least {FEWEST} decisions that approve the answer as it was recorded and {FEWEST} that "
            f"reject or change it. There are {self.approved:,} and {self.others:,}."
        )


def counts_of(project: Project, params: PredictParams) -> DecisionCounts:
    found = dict(
        _rows(project, params).annotate(answer=_ANSWER).order_by().values_list("answer").annotate(n=Count("pk"))
    )
    return DecisionCounts(found.get(1, 0), found.get(0, 0))


def require_enough(project: Project, params: PredictParams) -> None:
    """Raise `Invalid` with the numbers if there are too few decisions."""
    if refusal := counts_of(project, params).refusal():
        raise Invalid(refusal, code="too_few_decisions")


def decided_samples(project: Project, params: PredictParams) -> Sequence[DecidedSample]:
    """Return the newest decisions that count, at most `MOST`, each of another sample."""
    columns = ("sample_id", "sample__version", "answer", "sample__instance_id", "sample__repo")
    rows = _rows(project, params).annotate(answer=_ANSWER).order_by("-id").values_list(*columns)[:MOST]
    return [
        DecidedSample(sample, version, bool(answer), instance or repo or f"sample {sample}")
        for sample, version, answer, instance, repo in rows
    ]


def _rows(project: Project, params: PredictParams) -> DecisionQuerySet:
    """The decisions that stand, but for those on samples that an audit drew, which tests the prediction, and those
    that a guarantee made, at which nobody looked."""
    rows = Decision.objects.of(project).standing(*DECIDING).filter(sample__draws=None, guarantee=None)
    return rows if params.decisions == "all" else rows.filter(batch="")
