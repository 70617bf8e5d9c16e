"""Models of decisions, predictions of samples, and decisions to look at again: their REST calls."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, ClassVar

from django.db.models import F, QuerySet
from django.http import HttpRequest
from ninja import Router
from pydantic import BeforeValidator, Field

from curation.predictions.models import ApprovalModel, Prediction
from curation.projects.access import Access
from curation.projects.models import Project, Scope
from curation.projects.resource import Resource
from curation.samples.blind import refuse_pending, unblind, without_pending
from curation.samples.list.api import enter_sample
from curation.samples.models import Sample
from curation.web.lists.filters import ListParams
from curation.web.problems import NotFound
from curation.web.schemas import Id, Out, Username
from judging.statistics.rates import wilson


class CalibrationOut(Out):
    """Decisions with about the same predicted approval, `predicted` on average; `share` of them approve."""

    predicted: float
    approved: int
    n: int

    @property
    def share(self) -> float:
        return self.approved / self.n

    @property
    def interval(self) -> tuple[float, float]:
        found = wilson(self.approved, self.n)
        return found.low, found.high


class ImportanceOut(Out):
    """`change` is the mean absolute change of the log-odds by the fact, which `n` of the decisions have."""

    fact: str
    change: float
    n: int


class FiguresOut(Out):
    """By decisions that the model was not fitted on, in cross-validation by task."""

    losses: dict[str, float] = Field(description="Log loss of each candidate; the lowest was chosen.")
    auc: float = Field(description="Probability that an approved sample is placed above one that is not.")
    brier: float = Field(description="Mean squared error of the probability.")
    scored: int = Field(description="Decisions on samples with a score.")
    score_auc: float | None = Field(description="AUC of the score alone, on those.")
    auc_where_scored: float | None = Field(description="AUC of the model, on those.")
    calibration: list[CalibrationOut]
    importance: list[ImportanceOut]
    doubtful: int = Field(description="Decisions to look at again.")


class ApprovalModelOut(Out):
    """`figures` are null until the run has ended."""

    id: Id
    run: Id
    version: int
    seed: int
    method: str
    decisions: int
    approved: int
    ready: bool
    figures: Annotated[FiguresOut | None, BeforeValidator(lambda given: given or None)]
    created_at: datetime


class ApprovalModels(Resource[ApprovalModel]):
    model, noun, plural, tag = ApprovalModel, "approval_model", "approval_models", "review"
    path, row_path = "/approval-models", "/projects/{slug}/approval-models/{model_id}"
    calls, out = ("list", "get"), ApprovalModelOut
    about = {"list": "Newest first. A run of kind `predict` makes one, and predicts every pending sample."}

    def rows(self, access: Access) -> QuerySet[ApprovalModel]:
        refuse_pending(access, Sample.objects.of(access.project), "the model of decisions")
        return ApprovalModel.objects.filter(project=access.project).select_related("run")


class ReasonOut(Out):
    """`value` is null for a fact that the sample does not have. `change` of the log-odds of an approval against the
    same sample with the usual value."""

    fact: str
    value: float | str | None
    change: float


def _reasons(given: Any) -> list[ReasonOut]:
    return [ReasonOut(fact=fact, value=value, change=change) for fact, value, change in given]


class PredictionOut(Out):
    """`reasons` are the strongest first. `approved` is the decision that the model was fitted on, else null; the
    probability is then by decisions on other tasks alone."""

    sample: Id
    probability: float
    reasons: Annotated[list[ReasonOut], BeforeValidator(_reasons)]
    approved: bool | None
    model: Id


class LabelErrorOut(PredictionOut):
    """`doubt` is the rank, 1 for the decision that the model finds least likely."""

    doubt: int
    decided_by: Username | None = Field(validation_alias="sample.decided_by", description="Who decided last.")
    decided_at: datetime | None = Field(validation_alias="sample.decided_at")


class LabelErrorList(ListParams):
    sorts: ClassVar = ("doubt", "-doubt")


class LabelErrors(Resource[Prediction]):
    model, noun, plural, words, tag = Prediction, "label_error", "label_errors", "likely label error", "review"
    path, row_path = "/label-errors", ""
    calls, out, params = ("list",), LabelErrorOut, LabelErrorList
    about = {
        "list": "Decisions that the newest model finds wrong, by confident learning on probabilities from other tasks. "
        "One that was changed or confirmed since is left out."
    }

    def rows(self, access: Access) -> QuerySet[Prediction]:
        rows = doubtful(access.project).select_related("sample__decided_by", "model")
        return without_pending(access, rows, "sample")


def newest_model(project: Project) -> ApprovalModel | None:
    return ApprovalModel.objects.filter(project=project, ready=True).order_by("-version").first()


def doubtful(project: Project) -> QuerySet[Prediction]:
    """The decisions to look at again that nobody has touched since the newest model was fitted."""
    rows = Prediction.objects.filter(model=newest_model(project), doubt__isnull=False)
    return rows.filter(version=F("sample__version"))


approval_models, label_errors = ApprovalModels(), LabelErrors()
router = Router(tags=["review"])
router.add_router("", approval_models.router())
router.add_router("", label_errors.router())


@router.get("/samples/{sample_id}/prediction", response=PredictionOut, summary="The predicted approval of a sample")
def get_prediction(request: HttpRequest, sample_id: str) -> Prediction:
    """With the facts that move it most. While you review blind, it opens when the sample is decided."""
    access, sample = enter_sample(request, sample_id, Scope.READ)
    unblind(access, sample)
    found = Prediction.objects.filter(sample=sample).first()
    if found is None:
        raise NotFound(f"Sample {sample.pk} has no prediction. A run of kind `predict` makes them.")
    return found


def reasons_of(prediction: Prediction) -> Sequence[ReasonOut]:
    return _reasons(prediction.reasons)
