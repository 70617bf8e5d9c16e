from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Status

from curation.projects.access import Access, enter, principal_of
from curation.projects.models import Project, Scope
from curation.review.models import Revision, Suggestion
from curation.review.queue.lease import Seats, is_blind, own_lease, shown_seats, side_named
from curation.review.refine.draft import ask_for_draft
from curation.review.refine.schemas import RejudgeIn, SuggestIn, SuggestionList, SuggestionOut
from curation.runs.launch import launch
from curation.runs.pages.schemas import RunOut, run_out
from curation.samples.list.api import enter_sample
from curation.samples.models import Sample
from curation.web.ids import find
from curation.web.schemas import Page

router = Router(tags=["review"])


@router.get("/projects/{slug}/suggestions", response=Page[SuggestionOut], summary="List suggestions")
def list_suggestions(request: HttpRequest, slug: str, params: Query[SuggestionList]) -> dict[str, object]:
    """Needs the scope `run`, since reviewers decide before they see scores."""
    return params.rows(enter(request, slug, Scope.RUN)).response(SuggestionOut.of_row)


@router.post("/samples/{sample_id}/suggestions", response={202: SuggestionOut}, summary="Ask a model for a revision")
def post_suggestion(
    request: HttpRequest, response: HttpResponse, sample_id: str, body: SuggestIn
) -> Status[SuggestionOut]:
    """A worker asks the model; read the suggestion again until its `state` has ended. It is a draft: to save it, send
    its text and id to `POST /samples/{id}/revisions`. While the sample is blind, the model gets no judges' reasons."""
    access, sample = enter_sample(request, sample_id, Scope.REVIEW)
    side = side_named(body.of, access, sample, own_lease(sample, access))
    row = ask_for_draft(access=access, sample=sample, model=body.model, of=side, note=body.note)
    response["Location"] = f"/api/v1/suggestions/{row.pk}"
    return Status(202, SuggestionOut.of_row(row, _blind_seats(access, sample)))


@router.get("/suggestions/{suggestion_id}", response=SuggestionOut, summary="One suggestion that you asked for")
def get_suggestion(request: HttpRequest, suggestion_id: str) -> SuggestionOut:
    rows = Suggestion.objects.filter(asked_by=principal_of(request).user)
    row = find(rows.select_related("sample__project", "run", "asked_by"), suggestion_id, "suggestion")
    access = enter(request, row.sample.project, Scope.REVIEW)
    return SuggestionOut.of_row(row, _blind_seats(access, row.sample))


def _blind_seats(access: Access, sample: Sample) -> Seats | None:
    """The seats that name the answers while the sample is blind, for curators too: nothing else is told here."""
    return shown_seats(access, sample, own_lease(sample, access)) if is_blind(access, sample) else None


@router.post("/revisions/{revision_id}/rejudge", response={202: RunOut}, summary="Judge a revision again")
def post_rejudge(
    request: HttpRequest, response: HttpResponse, revision_id: str, body: RejudgeIn | None = None
) -> Status[dict[str, object]]:
    """The panel compares it with the king and with its parent. The run adds two scores to the revision."""
    visible = Project.objects.visible_to(principal_of(request).user)
    rows = (
        Revision.objects.seen_by(principal_of(request).user.pk)
        .filter(sample__project__in=visible)
        .select_related("sample__project")
    )
    revision = find(rows, revision_id, "revision")
    access = enter(request, revision.sample.project, Scope.REVIEW)
    params = {"revision": str(revision.pk), **(body.model_dump(exclude_none=True) if body else {})}
    run = launch(project=access.project, kind="rejudge", params=params, user=access.user)
    response["Location"] = f"/api/v1/runs/{run.pk}"
    return Status(202, run_out(run))
