"""The REST call of the overview's figures."""

from django.http import HttpRequest
from ninja import Router, Schema
from pydantic import Field

from curation.dashboard.overview.stats import Stats, project_stats
from curation.dashboard.system.api import router as health_router
from curation.projects.access import enter
from curation.projects.models import Scope

router = Router(tags=["dashboard"])
router.add_router("", health_router)


class BalanceOut(Schema):
    """Kept trajectories and their shares (0 to 1) by terminal and by task; 0 without any."""

    kept: int = Field(examples=[20])
    exit: float = Field(examples=[0.85])
    panic: float = Field(examples=[0.15])
    empty_queue: float = Field(examples=[0.1])
    blocked: float = Field(examples=[0.15])


class StatsOut(Schema):
    """The overview's figures. `histogram` counts samples per 5 points of score; `at` is when they were counted."""

    funnel: dict[str, int] = Field(examples=[{"prompts": 48, "duels": 45, "approved": 7}])
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
    cost_by_model: list[dict[str, str | int]]
    at: str


@router.get("/projects/{slug}/stats", response=StatsOut, summary="The dashboard's figures")
def get_stats(request: HttpRequest, slug: str) -> Stats:
    return project_stats(enter(request, slug, Scope.READ).project)
