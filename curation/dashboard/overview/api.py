from django.http import HttpRequest
from ninja import Query, Router
from pydantic import Field

from curation.dashboard.overview.projects import figures_of
from curation.dashboard.overview.stats import StatsOut, project_stats
from curation.dashboard.system.api import router as health_router
from curation.projects.access import enter, principal_of
from curation.projects.models import Project, Scope
from curation.projects.pages.schemas import ProjectList
from curation.samples.blind import reviews_blind
from curation.web.schemas import Money, Out, Page

router = Router(tags=["dashboard"])
router.add_router("", health_router)


class ProjectFiguresOut(Out):
    """Samples by status, queued and running runs, and the money spent. No figure that blind review hides."""

    slug: str = Field(examples=["shell-agents"])
    name: str = Field(examples=["Shell agents"])
    role: str = Field(examples=["curator"])
    samples: int = Field(examples=[45])
    statuses: dict[str, int] = Field(examples=[{"pending": 34, "approved": 7, "rejected": 4, "needs_refine": 0}])
    runs_live: int = Field(examples=[1])
    cost: Money = Field(examples=["1.25"])
    cost_unknown_calls: int = Field(examples=[0])


@router.get("/overview", response=Page[ProjectFiguresOut], summary="Your projects side by side")
def list_project_figures(request: HttpRequest, params: Query[ProjectList]) -> dict[str, object]:
    principal = principal_of(request)
    principal.require(Scope.READ)
    page = params.page(Project.objects.visible_to(principal.user).archived(params.archived))
    shown = figures_of(page.rows, principal.user)
    return page.response(lambda project: shown[project.pk])


@router.get("/projects/{slug}/stats", response=StatsOut, summary="The dashboard's figures")
def get_stats(request: HttpRequest, slug: str) -> StatsOut:
    """While you review blind, buckets, scores and outcomes are only those of decided samples."""
    access = enter(request, slug, Scope.READ)
    return project_stats(access.project, blind=reviews_blind(access))
