from django.http import HttpRequest
from ninja import Query, Router

from curation.projects.access import enter
from curation.projects.models import Scope
from curation.review.thresholds.pages import Cells, ThresholdsQuery, change_view, scores_view
from curation.review.thresholds.schemas import ThresholdsOut
from curation.samples.blind import refuse_pending
from curation.samples.models import Sample

router = Router(tags=["review"])


@router.get(
    "/projects/{slug}/thresholds", response=ThresholdsOut, summary="Approvals by score, and the effect of other edges"
)
def get_thresholds(request: HttpRequest, slug: str, params: Query[ThresholdsQuery]) -> ThresholdsOut:
    """With `final` and `refined` also the samples that these edges would move. Nothing is written: `PATCH
    /projects/{slug}` with `settings.thresholds` saves them. While you review blind, it opens when all samples are
    decided."""
    access = enter(request, slug, Scope.READ)
    project = access.project
    refuse_pending(access, Sample.objects.of(project), "the page of thresholds")
    cells = Cells.read(project, params, whole=True)
    return ThresholdsOut.of(scores_view(project, cells), change_view(project, params, cells), project.version)
