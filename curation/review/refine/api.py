"""REST calls of suggestions and of judging a revision again."""

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Status

from curation.projects.access import enter, principal_of
from curation.projects.models import Project, Scope
from curation.review.models import Revision, Suggestion
from curation.review.refine.schemas import RejudgeIn, SuggestionList, SuggestionOut, SuggestionPage
from curation.runs.launch import launch
from curation.runs.pages.schemas import RunOut, run_out
from curation.web.ids import find

router = Router(tags=["review"])


@router.get(
    "/projects/{slug}/suggestions", response=SuggestionPage, exclude_unset=True, summary="What models made of answers"
)
def list_suggestions(request: HttpRequest, slug: str, params: Query[SuggestionList]) -> dict[str, object]:
    """Needs the scope `run`, since reviewers decide before they see scores."""
    access = enter(request, slug, Scope.RUN)
    rows = Suggestion.objects.filter(sample__project=access.project).prefetch_related("text_scores")
    return params.page(params.narrow(rows)).response(SuggestionOut.of)


@router.post("/revisions/{revision_id}/rejudge", response={202: RunOut}, summary="Judge a revision again")
def post_rejudge(
    request: HttpRequest, response: HttpResponse, revision_id: str, body: RejudgeIn | None = None
) -> Status[dict[str, object]]:
    """The panel compares it with the king and with its parent. The run adds two scores to the revision."""
    visible = Project.objects.visible_to(principal_of(request).user)
    rows = Revision.objects.filter(sample__project__in=visible).select_related("sample__project")
    revision = find(rows, revision_id, "revision")
    access = enter(request, revision.sample.project, Scope.REVIEW)
    params = {"revision": str(revision.pk), **(body.model_dump(exclude_none=True) if body else {})}
    run = launch(project=access.project, kind="rejudge", params=params, user=access.user)
    response["Location"] = f"/api/v1/runs/{run.pk}"
    return Status(202, run_out(run))
