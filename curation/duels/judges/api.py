"""The REST call of judges."""

from django.http import HttpRequest
from ninja import Query, Router

from curation.duels.judges.pages import JudgesQuery, judges_view
from curation.duels.judges.schemas import JudgesOut
from curation.projects.access import enter
from curation.projects.models import Scope

router = Router(tags=["duels"])


@router.get("/projects/{slug}/judges", response=JudgesOut, summary="How each judge of a run behaved")
def list_judges(request: HttpRequest, slug: str, params: Query[JudgesQuery]) -> JudgesOut:
    """With `without` or weights also the verdicts that they would give. Nothing is stored, no model is called."""
    return JudgesOut.of(judges_view(enter(request, slug, Scope.READ).project, params))
