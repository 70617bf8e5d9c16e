from django.http import HttpRequest
from ninja import Query, Router, Schema
from pydantic import Field

from curation.dashboard.overview.projects import figures_of
from curation.dashboard.overview.stats import Stats, project_stats
from curation.dashboard.system.api import router as health_router
from curation.projects.access import enter, principal_of
from curation.projects.models import Project, Scope
from curation.projects.pages.schemas import ProjectList
from curation.samples.blind import reviews_blind
from curation.web.problems import NotAllowed
from curation.web.schemas import Money, Out, Page

router = Router(tags=["dashboard"])
router.add_router("", health_router)


class BalanceOut(Schema):
    """Kept trajectories and their shares (0 to 1) by terminal and by task; 0 without any."""

    kept: int = Field(examples=[20])
    exit: float = Field(examples=[0.85])
    panic: float = Field(examples=[0.15])
    empty_queue: float = Field(examples=[0.1])
    blocked: float = Field(examples=[0.15])


class FunnelStepOut(Schema):
    name: str = Field(examples=["Approved"])
    count: int = Field(examples=[7])
    of: str | None = Field(examples=["Decided"], description="The earlier step that `rate` is a share of.")
    rate: float | None = Field(examples=[0.64], description="0 to 1; null where a step counts something else.")


class PipelineOut(Schema):
    """One way by which samples are made, as a funnel."""

    name: str = Field(examples=["Duels of single turns"])
    steps: list[FunnelStepOut]


class CallDayOut(Schema):
    """The calls of one endpoint that began on one day. `latency_ms` is the mean of its answered calls."""

    day: str = Field(examples=["2026-11-21"])
    model: str = Field(examples=["judge-a"])
    calls: int = Field(examples=[270])
    failed: int = Field(examples=[2])
    cost: str = Field(examples=["0.41"])
    cost_unknown_calls: int = Field(examples=[0])
    latency_ms: float | None = Field(examples=[840.5])


class StatsOut(Schema):
    """The overview's figures. `histogram` counts samples per 5 points of score; `at` is when they were counted."""

    funnel: dict[str, int] = Field(examples=[{"prompts": 48, "duels": 45, "approved": 7}])
    pipelines: list[PipelineOut] = Field(description="The pipelines that the project uses.")
    buckets: dict[str, int] = Field(examples=[{"final": 19, "refined": 11, "defeat": 12, "unparsed": 3}])
    statuses: dict[str, int] = Field(examples=[{"pending": 34, "approved": 7}])
    histogram: list[int]
    scenarios: dict[str, int] = Field(examples=[{"draft": 1, "admitted": 20, "rejected": 1, "dry_run": 0}])
    outcomes: dict[str, int] = Field(examples=[{"solved": 17, "correct_panic": 3, "checker_failed": 9}])
    balance: BalanceOut
    pace: list[dict[str, str | int]] = Field(examples=[[{"day": "2026-11-21", "reviewer": "demo", "n": 11}]])
    seconds_per_decision: float | None = Field(examples=[13.0])
    cost: str = Field(examples=["1.25"])
    cost_unknown_calls: int
    cost_by_model: list[dict[str, str | int]] = Field(description="Empty while you review blind and one is pending.")
    calls_by_day: list[CallDayOut] = Field(
        description="Of the last 14 days, without calls that are under way. Empty as `cost_by_model`."
    )
    at: str


class ProjectFiguresOut(Out):
    """Samples by status, queued and running runs, and the money spent. No figure that blind review hides."""

    slug: str = Field(validation_alias="project.slug", examples=["shell-agents"])
    name: str = Field(validation_alias="project.name", examples=["Shell agents"])
    role: str = Field(examples=["curator"])
    samples: int = Field(examples=[45])
    statuses: dict[str, int] = Field(examples=[{"pending": 34, "approved": 7, "rejected": 4, "needs_refine": 0}])
    runs_live: int = Field(examples=[1])
    cost: Money = Field(examples=["1.25"])
    cost_unknown_calls: int = Field(examples=[0])


@router.get("/overview", response=Page[ProjectFiguresOut], summary="Your projects side by side")
def list_project_figures(request: HttpRequest, params: Query[ProjectList]) -> dict[str, object]:
    principal = principal_of(request)
    if Scope.READ not in principal.scopes:
        raise NotAllowed("This needs the scope `read`.")
    page = params.page(Project.objects.visible_to(principal.user).archived(params.archived))
    shown = {row.project.pk: row for row in figures_of(page.rows, principal.user)}
    return page.response(lambda project: shown[project.pk])


@router.get("/projects/{slug}/stats", response=StatsOut, summary="The dashboard's figures")
def get_stats(request: HttpRequest, slug: str) -> Stats:
    """While you review blind, buckets, scores and outcomes are only those of decided samples."""
    access = enter(request, slug, Scope.READ)
    return project_stats(access.project, blind=reviews_blind(access))
