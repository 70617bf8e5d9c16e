"""The page of thresholds, and the part of it that follows the edges."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers

from curation.projects.access import Access, project_page
from curation.projects.models import Scope
from curation.review.thresholds.charts import approval_chart
from curation.review.thresholds.pages import Cells, ThresholdsQuery, change_view, precision_words, scores_view
from curation.samples.blind import refuse_undecided
from curation.web.lists.pages import Tab
from curation.web.problems import Problem


@project_page(Scope.READ, "GET", refuses=refuse_undecided)
def threshold_page(request: HttpRequest, access: Access) -> HttpResponse:
    """Show the effect of the edges in the URL; nothing is saved."""
    project = access.project
    refuse_undecided(access, request.GET)
    is_part = "HX-Request" in request.headers and "HX-History-Restore-Request" not in request.headers
    query, problem, change, cells = ThresholdsQuery(), None, None, None
    try:
        query = ThresholdsQuery.from_query(request.GET)
        cells = Cells.read(project, query, whole=not is_part)
        change = change_view(project, query, cells)
    except Problem as refused:
        problem = refused
    context: dict[str, object] = {
        "change": change,
        "words": None if change is None else (precision_words(change.saved), precision_words(change.tried)),
        "problem": problem,
        "may_change": access.may(Scope.ADMIN),
        "blind": project.settings.review.blind,
        "query": query,
    }
    status = 200 if problem is None else 422
    if is_part:
        response = render(request, "review/thresholds/_change.html", context, status=status)
        response["HX-Replace-Url"] = f"{request.path}?{request.GET.urlencode()}"
    else:
        scores = scores_view(project, cells or Cells.read(project, query, whole=True))
        saved = project.settings.thresholds
        context |= {
            "scores": scores,
            "uncounted": scores.settled - scores.counted,
            "chart": approval_chart(scores.bins),
            "edges": [
                (name, label, request.GET.get(name) or f"{getattr(saved, name):g}")
                for name, label in (("refined", "Refined from"), ("final", "Final from"))
            ],
            "tabs": [
                Tab(label, f"?decisions={word}", query.decisions == word)
                for word, label in (("single", "Decided one by one"), ("all", "All decisions"))
            ],
            "api_path": f"/api/v1/projects/{project.slug}/thresholds",
        }
        response = render(request, "review/thresholds/page.html", context, status=status)
    patch_vary_headers(response, ["HX-Request"])
    return response
