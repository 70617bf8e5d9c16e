from django.http import HttpRequest
from ninja import Query, Router

from curation.duels.judges.pages import JudgesQuery, judges_view
from curation.duels.judges.schemas import JudgesOut
from curation.projects.access import enter
from curation.projects.models import Scope
from curation.samples.blind import refuse_pending
from curation.samples.models import Sample

router = Router(tags=["duels"])


@router.get("/projects/{slug}/judges", response=JudgesOut, summary="How each judge of a run behaved")
def list_judges(request: HttpRequest, slug: str, params: Query[JudgesQuery]) -> JudgesOut:
    """With `without` or weights also the verdicts that they would give. Nothing is stored, no model is called.
    While you review blind, it opens when all samples are decided."""
    access = enter(request, slug, Scope.READ)
    refuse_pending(access, Sample.objects.of(access.project), "the page of judges")
    return JudgesOut.of(judges_view(access.project, params))
