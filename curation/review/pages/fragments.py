"""Parts of the review page loaded on demand: turns of the history, finds, the diff, the editor, the raw text."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from curation.projects.access import Access, project_page
from curation.projects.models import Scope
from curation.review.decisions.drafts import draft_of
from curation.review.models import Pick
from curation.review.pages.views import sample_of
from curation.review.queue.picks import pick_of_page
from curation.review.workspace.detail import detail_of, facts_of
from curation.review.workspace.diff import diff_html, word_diff
from curation.review.workspace.history import history_of
from curation.review.workspace.rollout import sibling_of
from curation.review.workspace.workspace import blind_for, swapped_for
from curation.web.problems import NotFound
from curation.web.text.responses import find_response, piece_response, raw_response, window_response


@require_GET
@project_page(Scope.READ)
def history_window(request: HttpRequest, access: Access, pk: int) -> HttpResponse:
    return window_response(request, history_of(sample_of(access, pk)))


@require_GET
@project_page(Scope.READ)
def history_turn(request: HttpRequest, access: Access, pk: int, index: int) -> HttpResponse:
    return piece_response(request, history_of(sample_of(access, pk)), index)


@require_GET
@project_page(Scope.READ)
def history_find(request: HttpRequest, access: Access, pk: int) -> HttpResponse:
    return find_response(request, history_of(sample_of(access, pk)))


@require_GET
@project_page(Scope.READ)
def history_raw(request: HttpRequest, access: Access, pk: int) -> HttpResponse:
    return raw_response(request, history_of(sample_of(access, pk)), f"sample-{pk}")


@require_GET
@project_page(Scope.READ)
def sample_sibling(request: HttpRequest, access: Access, pk: int) -> HttpResponse:
    """The trajectory beside another of its scenario; blind it tells no more than before."""
    sample = sample_of(access, pk)
    rollout = sibling_of(sample, blind=blind_for(access, sample), other_id=request.GET.get("with", ""))
    return render(
        request, "review/workspace/_session.html", {"rollout": rollout, "sample": sample, "project": access.project}
    )


@require_GET
@project_page(Scope.READ)
def answer_diff(request: HttpRequest, access: Access, pk: int) -> HttpResponse:
    """Both answers with the words marked that only one of them has."""
    sample = sample_of(access, pk)
    found = detail_of(sample)
    if found is None:
        raise NotFound(f"Sample {pk} has no two answers to compare.")
    left, right = found.opponent, found.candidate
    if swapped_for(access, sample):
        left, right = right, left
    pieces = word_diff(left.kept_text, right.kept_text)
    sides = [("left", "1", diff_html(pieces, show="del")), ("right", "2", diff_html(pieces, show="add"))]
    return render(request, "review/workspace/_diff.html", {"sides": sides, "may_decide": access.may(Scope.REVIEW)})


@require_GET
@project_page(Scope.REVIEW)
def answer_editor(request: HttpRequest, access: Access, pk: int) -> HttpResponse:
    """The editor on the picked answer; a draft of the reviewer comes back as it was left."""
    sample = sample_of(access, pk)
    found = detail_of(sample)
    if found is None:
        raise NotFound(f"Sample {pk} has no answer that could be revised.")
    preference = request.GET.get("preference", "")
    pick = pick_of_page(request.GET, access, sample)
    side = found.side(Pick.OPPONENT if pick == Pick.OPPONENT else Pick.CANDIDATE)
    draft = draft_of(access=access, sample_id=pk)
    text = draft.text if draft and draft.text else side.kept_text
    context = {
        "sample": sample,
        "project": access.project,
        "place": request.GET,
        "preference": preference,
        "text": text,
        "note": draft.note if draft else "",
        "from_draft": bool(draft and draft.text),
        "draft": draft,
        "facts": facts_of(text),
    }
    return render(request, "review/decisions/_editor.html", context)
