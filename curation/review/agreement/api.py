from django.http import HttpRequest
from ninja import Query, Router
from pydantic import Field

from curation.projects.access import enter
from curation.projects.models import Scope
from curation.review.agreement.disputes import DisputeList
from curation.review.agreement.figures import figures_of
from curation.review.schemas import DecisionOut
from curation.web.schemas import Ends, Id, Out, Page, answer


class DisputeOut(Out):
    sample: Id = Field(examples=["4711"])
    version: int = Field(validation_alias="sample.version", examples=[1])
    may_keep: bool = Field(description="You are none of those who disagree, and may adjudicate.", examples=[True])
    decisions: list[DecisionOut] = Field(description="The last one of each person.")


class FigureOut(Out):
    """`value` is null where `too_few` samples were decided by two, or only one value occurs."""

    of: str = Field(description="all, pair, reviewer or bucket", examples=["pair"])
    names: list[str] = Field(examples=[["ada", "ben"]])
    dimension: str = Field(description="outcome, kept (answer) or both", examples=["outcome"])
    measure: str = Field(description="kappa (Cohen) or alpha (Krippendorff)", examples=["kappa"])
    n: int = Field(validation_alias="agreement.n", examples=[42])
    same: int = Field(validation_alias="agreement.same", examples=[36])
    value: float | None = Field(validation_alias="agreement.value", examples=[0.71])
    interval: Ends | None = Field(validation_alias="agreement.interval", description="95 %", examples=[[0.52, 0.9]])
    too_few: bool = Field(validation_alias="agreement.too_few", examples=[False])
    query: str = Field(
        description="The list of its samples; empty for `kept`.", examples=["decided_by=ada&decided_by=ben"]
    )


router = Router(tags=["review"])


@router.get("/projects/{slug}/disputes", response=Page[DisputeOut], summary="Samples to adjudicate")
def list_disputes(request: HttpRequest, slug: str, params: Query[DisputeList]) -> dict[str, object]:
    """Needs the scope `run`, since reviewers do not see each other's decisions before a sample is settled. A decision
    with `keep` (`POST /samples/{id}/decisions`) adjudicates."""
    page, disputes = params.page_of(enter(request, slug, Scope.RUN))
    return page.response(lambda sample: disputes[sample.pk])


@router.get(
    "/projects/{slug}/agreement", response=answer("AgreementOut", data=list[FigureOut]), summary="How far people agree"
)
def get_agreement(request: HttpRequest, slug: str) -> dict[str, object]:
    """Over the samples that several people decided independently (`settings.review.overlap`). Needs the scope `run`."""
    access = enter(request, slug, Scope.RUN)
    return {"data": figures_of(access.project)}
