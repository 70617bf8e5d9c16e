"""The overview of a project, its charts, and the page of components."""

from dataclasses import dataclass

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from curation.dashboard.charts import review_pace, score_histogram
from curation.dashboard.stats import Stats, project_stats
from curation.dashboard.system import system_state
from curation.projects.access import Access, project_page
from curation.projects.models import Project, Scope
from curation.runs.models import Run
from curation.samples.models import Bucket, Status


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the funnel; `share` is of the first step, 0–100."""

    name: str
    count: int
    share: float


@dataclass(frozen=True, slots=True)
class Tally:
    """A count with its word, tone and the list it opens."""

    label: str
    tone: str
    count: int
    url: str


@require_GET
@project_page(Scope.READ)
def overview(request: HttpRequest, access: Access) -> HttpResponse:
    stats = project_stats(access.project)
    runs = Run.objects.of(access.project).exclude(kind="test").select_related("created_by").order_by("-id")[:8]
    context = {
        "stats": stats,
        "funnel": _funnel(stats),
        "buckets": _tallies(access.project, "bucket", Bucket, stats.buckets),
        "statuses": _tallies(access.project, "status", Status, stats.statuses),
        "left": stats.statuses[Status.PENDING],
        "runs": runs,
        "api_path": f"/api/v1/projects/{access.project.slug}/stats",
    }
    return render(request, "dashboard/overview.html", context)


@require_GET
@project_page(Scope.READ)
def score_chart(request: HttpRequest, access: Access) -> HttpResponse:
    edges = access.project.settings.thresholds
    return JsonResponse(score_histogram(project_stats(access.project), edges))


@require_GET
@project_page(Scope.READ)
def pace_chart(request: HttpRequest, access: Access) -> HttpResponse:
    return JsonResponse(review_pace(project_stats(access.project)))


@require_GET
@project_page(Scope.READ)
def system(request: HttpRequest, access: Access) -> HttpResponse:
    context = {"system": system_state(access.project), "api_path": "/api/v1/ready"}
    return render(request, "dashboard/system.html", context)


@require_GET
@login_required
def components(request: HttpRequest) -> HttpResponse:
    return render(request, "dashboard/components.html")


def _funnel(stats: Stats) -> list[Step]:
    most = max(stats.funnel.values(), default=0) or 1
    return [Step(name, count, 100 * count / most) for name, count in stats.funnel.items()]


def _tallies(project: Project, field: str, choices: type[Bucket] | type[Status], counts: dict[str, int]) -> list[Tally]:
    url = reverse("sample-list", args=[project.slug])
    return [
        Tally(str(choice.label), choice.tone, counts[choice.value], f"{url}?{field}={choice.value}")
        for choice in choices
    ]
