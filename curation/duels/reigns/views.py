"""The page of the line of kings, and its actions."""

from django import forms
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse

from curation.duels.reigns.crown import crown, end_reign
from curation.duels.reigns.models import Reign
from curation.duels.reigns.pages import reign_views
from curation.duels.reigns.schemas import ReignList
from curation.projects.access import Access, project_page
from curation.projects.models import Scope
from curation.runs.models import Run
from curation.web.forms import ProblemForm
from curation.web.ids import find
from curation.web.lists.pages import list_context


class EndForm(ProblemForm):
    reason = forms.CharField(error_messages={"required": "Say why the reign ends."})


@project_page(Scope.READ, "GET")
def reign_list(request: HttpRequest, access: Access) -> HttpResponse:
    return _page(request, access)


def _page(request: HttpRequest, access: Access, *, ending: tuple[Reign, ProblemForm] | None = None) -> HttpResponse:
    """`ending` is a reign that was not ended, and the form that says why."""
    reign, form = ending or (None, None)
    params = ReignList.from_query(request.GET)
    rows = Reign.objects.filter(project=access.project).select_related("run", "crowned_by", "ended_by")
    page = params.page(rows)
    context = {
        **list_context(
            request,
            params,
            page,
            f"/api/v1/projects/{access.project.slug}/reigns",
            path=reverse("reign-list", args=[access.project.slug]),
        ),
        "reigns": reign_views(access.project, page.rows),
        "may_end": access.may(Scope.ADMIN),
        "ending": reign,
        "form": form,
    }
    return render(request, "duels/reigns/list.html", context, status=form.status if form else 200)


@project_page(Scope.RUN, "POST")
def reign_crown(request: HttpRequest, access: Access) -> HttpResponse:
    run = find(Run.objects.of(access.project).select_related("project"), request.POST.get("run", ""), "run")
    crown(access=access, run=run, challenger=request.POST.get("challenger", ""))
    return HttpResponseRedirect(reverse("reign-list", args=[access.project.slug]))


@project_page(Scope.ADMIN, "POST")
def reign_end(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    reign = find(Reign.objects.filter(project=access.project), pk, "reign")
    form = EndForm(request.POST)
    if form.is_valid():
        with form.shows_problem():
            end_reign(access=access, reign=reign, reason=form.cleaned_data["reason"])
            return HttpResponseRedirect(reverse("reign-list", args=[access.project.slug]))
    return _page(request, access, ending=(reign, form))
