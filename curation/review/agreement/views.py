from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse

from curation.projects.access import Access, project_page
from curation.projects.models import Scope
from curation.review.agreement.disputes import DisputeList
from curation.review.agreement.figures import DIMENSIONS, figures_of
from curation.review.decisions.decide import decide
from curation.web.ids import number
from curation.web.lists.pages import list_context


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
