"""The overview of a project, its charts, and the page of components."""

from dataclasses import dataclass

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from curation.dashboard.overview.charts import outcome_bars, review_pace, score_histogram
from curation.dashboard.overview.stats import Stats, project_stats
from curation.dashboard.system.pages import system_state
from curation.projects.access import Access, project_page
from curation.projects.models import Project, Scope
from curation.runs.models import Run
from curation.samples.models import Bucket, Status
from curation.scenarios.models import Status as Proven
from curation.trajectories.rollout.balance import BLOCKED, EMPTY_QUEUE

# The first step of each way to a sample, and the steps that are its alone.
SOURCES = {
    "prompts": ("prompts", "answered by king", "challenged", "duels", "parsed", "final or refined"),
    "scenarios": ("scenarios", "scenarios admitted", "trajectories", "trajectories kept"),
}


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


@dataclass(frozen=True, slots=True)
class Endings:
    """Terminals and watched tasks of the kept trajectories, the project's band in words, and what is out of it."""

    lines: list[Step]
    band: str
    warnings: list[str]


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
        "scenarios": _scenarios(access.project, stats),
        "endings": _endings(access.project, stats),
        "left": stats.statuses[Status.PENDING],
        "runs": runs,
        "api_path": f"/api/v1/projects/{access.project.slug}/stats",
    }
    return render(request, "dashboard/overview/page.html", context)


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
def outcome_chart(request: HttpRequest, access: Access) -> HttpResponse:
    url = reverse("trajectory-list", args=[access.project.slug])
    return JsonResponse(outcome_bars(project_stats(access.project), url))


@require_GET
@project_page(Scope.READ)
def system(request: HttpRequest, access: Access) -> HttpResponse:
    context = {"system": system_state(access.project), "api_path": "/api/v1/ready"}
    return render(request, "dashboard/system/page.html", context)


@require_GET
@login_required
def components(request: HttpRequest) -> HttpResponse:
    return render(request, "dashboard/components/page.html")


def _funnel(stats: Stats) -> list[Step]:
    """Steps of a source that the project does not use say nothing and are left out, unless it uses none."""
    unused = [source for source in SOURCES if not stats.funnel[source]]
    left_out = {step for source in unused for step in SOURCES[source] if len(unused) < len(SOURCES)}
    found = {name: count for name, count in stats.funnel.items() if name not in left_out}
    most = max(found.values(), default=0) or 1
    return [Step(name, count, 100 * count / most) for name, count in found.items()]


def _scenarios(project: Project, stats: Stats) -> list[Tally]:
    url = reverse("scenario-list", args=[project.slug])
    return [
        Tally(str(status.label), status.tone, stats.scenarios[status], f"{url}?status={status.value}")
        for status in Proven
        if stats.scenarios[status]
    ]


def _endings(project: Project, stats: Stats) -> Endings | None:
    balance, band = stats.balance, project.settings.balance
    if not balance.kept:
        return None
    shares = {"exit": balance.exit, "panic": balance.panic, EMPTY_QUEUE: balance.empty_queue, BLOCKED: balance.blocked}
    lines = [Step(name, round(share * balance.kept), 100 * share) for name, share in shares.items()]
    within = f"{band.panic_low:.0%} to {band.panic_high:.0%} may end in panic"
    return Endings(lines, within, balance.warnings(band))


def _tallies(project: Project, field: str, choices: type[Bucket] | type[Status], counts: dict[str, int]) -> list[Tally]:
    url = reverse("sample-list", args=[project.slug])
    return [
        Tally(str(choice.label), choice.tone, counts[choice.value], f"{url}?{field}={choice.value}")
        for choice in choices
    ]
