"""Pages of duels: the list and one duel."""

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from curation.duels.models import Duel
from curation.duels.pages.api import DuelListParams
from curation.duels.pages.pages import duel_view
from curation.projects.access import Access, project_page
from curation.projects.models import Scope
from curation.runs.models import Run
from curation.samples.models import Bucket
from curation.web.ids import find
from curation.web.lists.keyset import paginate
from curation.web.lists.pages import read_params


@dataclass(frozen=True, slots=True)
class Tab:
    label: str
    url: str
    current: bool


@require_GET
@project_page(Scope.READ)
def duel_list(request: HttpRequest, access: Access) -> HttpResponse:
    params = read_params(DuelListParams, request)
    duels = params.apply(Duel.objects.of(access.project))
    run = find(Run.objects.of(access.project), params.run, "run") if params.run else None
    if run is not None:
        duels = duels.filter(run=run)
    rows = duels.select_related("prompt", "challenger")
    page = paginate(rows, sort=params.order(), cursor=params.cursor, limit=params.limit)
    context = {
        "duels": page.rows,
        "tabs": _tabs(request, ",".join(params.bucket)),
        "run": run,
        "every_run_url": _url(request, run=None),
        "newer_url": _url(request) if params.cursor else None,
        "older_url": _url(request, cursor=page.next_cursor) if page.next_cursor else None,
        "api_path": f"/api/v1/projects/{access.project.slug}/duels",
    }
    return render(request, "duels/list.html", context)


def _tabs(request: HttpRequest, bucket: str) -> list[Tab]:
    """Return one tab per bucket. A tab keeps the other filters of the list."""
    chosen = [Tab(choice.label, _url(request, bucket=choice.value), choice.value == bucket) for choice in Bucket]
    return [Tab("All", _url(request, bucket=None), not bucket), *chosen]


def _url(request: HttpRequest, **changes: str | None) -> str:
    """Return the list's URL with changed parameters, at the first page unless these name a cursor."""
    query = request.GET.copy()
    for name, value in {"cursor": None, **changes}.items():
        if value is None:
            query.pop(name, None)
        else:
            query[name] = value
    return f"{request.path}?{query.urlencode()}" if query else request.path


@require_GET
@project_page(Scope.READ)
def duel_page(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    duel = find(Duel.objects.of(access.project).with_texts(), pk, "duel")
    context = {
        "duel": duel,
        "view": duel_view(duel),
        "sample_url": reverse("sample-page", args=[access.project.slug, duel.sample_id]) if duel.sample_id else None,
        "api_path": f"/api/v1/duels/{duel.pk}",
    }
    return render(request, "duels/page.html", context)
