from django.http import HttpRequest
from ninja import Query, Router
from pydantic import Field

from curation.projects.access import enter
from curation.projects.models import Scope
from curation.review.agreement.disputes import DisputeList
from curation.review.agreement.figures import FigureOut, figures_of
from curation.review.schemas import DecisionOut
from curation.web.schemas import Id, Out, Page, answer


class DisputeOut(Out):
    sample: Id = Field(examples=["4711"])
    version: int = Field(validation_alias="sample.version", examples=[1])
    may_keep: bool = Field(description="You are none of those who disagree, and may adjudicate.", examples=[True])
    decisions: list[DecisionOut] = Field(description="The last one of each person.")


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
