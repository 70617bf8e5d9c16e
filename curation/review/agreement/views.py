from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from ninja import Query, Router
from pydantic import Field

from curation.projects.access import Access, enter, project_page
from curation.projects.models import Scope
from curation.review.agreement.disputes import DisputeList
from curation.review.agreement.figures import DIMENSIONS, FigureOut, figures_of
from curation.review.decisions.decide import decide
from curation.review.schemas import DecisionOut
from curation.web.ids import number
from curation.web.lists.pages import list_context
from curation.web.schemas import Id, Out, Page, answer


@project_page(Scope.RUN, "GET")
def dispute_list(request: HttpRequest, access: Access) -> HttpResponse:
    params = DisputeList.from_query(request.GET)
    page, disputes = params.page_of(access)
    context = list_context(request, params, page, f"/api/v1/projects/{access.project.slug}/disputes")
    return render(request, "review/agreement/disputes.html", context | {"disputes": list(disputes.values())})


@project_page(Scope.RUN, "POST")
def sample_adjudicate(request: HttpRequest, access: Access, pk: int) -> HttpResponse:
    """Settle a disputed sample with one of its decisions."""
    keep, action = number(request.POST.get("keep", "")) or 0, request.POST.get("action", "")
    decision = decide(access=access, sample_id=pk, action=action, keep=keep)
    status = decision.sample.get_status_display().lower()
    messages.success(request, f"Sample {pk}: {status}, as the kept decision says. Its page undoes that.")
    return HttpResponseRedirect(reverse("dispute-list", args=[access.project.slug]))


@project_page(Scope.RUN, "GET")
def agreement_page(request: HttpRequest, access: Access) -> HttpResponse:
    figures = figures_of(access.project)
    tables = [
        (name, words, [figure for figure in figures if figure.dimension == name]) for name, words in DIMENSIONS.items()
    ]
    context = {
        "tables": tables,
        "overlap": access.project.settings.review.overlap,
        "counted": max(figure.n for figure in figures),
        "api_path": f"/api/v1/projects/{access.project.slug}/agreement",
    }
    return render(request, "review/agreement/page.html", context)


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
