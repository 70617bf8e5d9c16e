"""The list of suggestions, and the button that judges a revision again."""

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from curation.projects.access import Access, project_page
from curation.projects.models import Scope
from curation.review.models import Revision, Suggestion
from curation.review.refine.schemas import SuggestionList
from curation.runs.launch import launch
from curation.web.ids import find
from curation.web.lists.pages import list_context, tabs


@require_GET
@project_page(Scope.RUN)
def suggestion_list(request: HttpRequest, access: Access) -> HttpResponse:
    params = SuggestionList.from_query(request.GET)
    rows = Suggestion.objects.filter(sample__project=access.project).prefetch_related("text_scores")
    page = params.page(params.narrow(rows))
    context = {
        **list_context(request, params, page, f"/api/v1/projects/{access.project.slug}/suggestions"),
        "tabs": tabs(request.path, params, "outcome", Suggestion.Outcome.choices),
    }
    return render(request, "review/refine/list.html", context)


@require_POST
@project_page(Scope.REVIEW)
def revision_rejudge(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    revision = find(Revision.objects.filter(sample__project=access.project), pk, "revision")
    params = {"revision": str(revision.pk)}
    run = launch(project=access.project, kind="rejudge", params=params, user=access.user)
    return HttpResponseRedirect(reverse("run-page", args=[access.project.slug, run.pk]))
