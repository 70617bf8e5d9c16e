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
from curation.review.workspace.history import (
    chunk_start_of,
    find_turns,
    full_text,
    messages_of,
    raw_text,
    turn_of,
    window_before,
)
from curation.review.workspace.rollout import sibling_of
from curation.review.workspace.workspace import blind_for, swapped_for
from curation.web.problems import NotFound


@require_GET
@project_page(Scope.READ)
def history_window(request: HttpRequest, access: Access, pk: int) -> HttpResponse:
    """The turns that end before `before`, folded, and what is still folded above them."""
    sample = sample_of(access, pk)
    window = window_before(messages_of(sample), _number(request, "before"))
    return render(
        request, "review/workspace/_window.html", {"window": window, "sample": sample, "project": access.project}
    )


@require_GET
@project_page(Scope.READ)
def history_turn(request: HttpRequest, access: Access, pk: int, index: int) -> HttpResponse:
    """The body of one turn, from the character `start` on; with `q` around its first find."""
    sample = sample_of(access, pk)
    messages = messages_of(sample)
    if index >= len(messages):
        raise NotFound(f"The history of sample {pk} has no turn {index}.")
    wanted = request.GET.get("q", "")[:200]
    start = _number(request, "start") or (chunk_start_of(full_text(messages[index]), wanted) if wanted else 0)
    turn = turn_of(messages, index, opened=True, start=start, wanted=wanted)
    context = {"turn": turn, "sample": sample, "project": access.project, "wanted": wanted}
    return render(request, "review/workspace/_turn_body.html", context)


@require_GET
@project_page(Scope.READ)
def history_find(request: HttpRequest, access: Access, pk: int) -> HttpResponse:
    """Find-in-page on the server: the turns that hold the text."""
    sample = sample_of(access, pk)
    wanted = request.GET.get("q", "").strip()[:200]
    turns, total = find_turns(messages_of(sample), wanted) if wanted else ([], 0)
    context = {"turns": turns, "total": total, "wanted": wanted, "sample": sample, "project": access.project}
    return render(request, "review/workspace/_found.html", context)


@require_GET
@project_page(Scope.READ)
def history_raw(request: HttpRequest, access: Access, pk: int) -> HttpResponse:
    """The whole history, or one turn of it, as a plain text file."""
    messages = messages_of(sample_of(access, pk))
    index = request.GET.get("turn", "")
    if index.isascii() and index.isdigit() and int(index) < len(messages):
        text, name = full_text(messages[int(index)]), f"sample-{pk}-turn-{index}.txt"
    else:
        text, name = raw_text(messages), f"sample-{pk}.txt"
    response = HttpResponse(text, content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = f'inline; filename="{name}"'
    return response


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


def _number(request: HttpRequest, name: str) -> int:
    given = request.GET.get(name, "")
    return int(given) if given.isascii() and given.isdigit() and len(given) < 12 else 0
