"""The REST call of thresholds."""

from django.http import HttpRequest
from ninja import Query, Router

from curation.projects.access import enter
from curation.projects.models import Scope
from curation.review.thresholds.pages import ThresholdsQuery, change_view, scores_view
from curation.review.thresholds.schemas import ThresholdsOut

router = Router(tags=["review"])


@router.get(
    "/projects/{slug}/thresholds", response=ThresholdsOut, summary="What people approved by score, and other edges"
)
def get_thresholds(request: HttpRequest, slug: str, params: Query[ThresholdsQuery]) -> ThresholdsOut:
    """With `final` and `refined` also what these edges would move. Nothing is written: `PATCH /projects/{slug}` with
    `settings.thresholds` saves them."""
    project = enter(request, slug, Scope.READ).project
    return ThresholdsOut.of(scores_view(project, params), change_view(project, params), project.version)
