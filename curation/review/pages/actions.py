"""What the keys of the review page do: decide, undo, revise, keep and release the lease, keep drafts."""

from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import render
from django.utils.dateparse import parse_datetime
from django.views.decorators.http import require_POST

from curation.projects.access import Access, project_page
from curation.projects.models import Scope
from curation.review.decisions.decide import decide
from curation.review.decisions.drafts import save_draft
from curation.review.decisions.revise import revise
from curation.review.decisions.undo import undo
from curation.review.models import Draft, Lease, Pick
from curation.review.pages.views import held_while_undecided, sample_of
from curation.review.queue.lease import hold, holder_of, release
from curation.review.queue.picks import pick_of_page, preference_of_page
from curation.review.workspace.detail import facts_of
from curation.review.workspace.navigation import queue_url, sample_url
from curation.review.workspace.responses import place_of, say, show, show_next
from curation.review.workspace.workspace import Place, workspace_of
from curation.samples.models import Sample, Status
from curation.web.problems import Conflict, FieldError, Invalid, Problem, Stale

SAID = {
    "approve": "Approved",
    "reject": "Rejected",
    "refine": "Marked for refining:",
    "skip": "Skipped",
    "flag": "Flagged",
}


@require_POST
@project_page(Scope.REVIEW)
def sample_decide(request: HttpRequest, access: Access, pk: int) -> HttpResponse:
    """Answers with the next sample of the queue, or with this one revealed."""
    sample = sample_of(access, pk)
    try:
        action, decision_id = _decide(request, access, sample)
    except (Stale, Conflict) as problem:
        return _refused(request, access, pk, problem)
    return _after(request, access, pk, action, decision_id)


@require_POST
@project_page(Scope.REVIEW)
def sample_revise(request: HttpRequest, access: Access, pk: int) -> HttpResponse:
    """Saves the edited answer, and with `then` approve or refine decides as well, in one transaction."""
    sample = sample_of(access, pk)
    then = request.POST.get("then", "stay")
    try:
        with transaction.atomic():
            version = _revise(request, access, sample, may_be_unchanged=then != "stay")
            decision_id = _decide(request, access, sample, action=then, version=version)[1] if then != "stay" else 0
    except (Stale, Conflict) as problem:
        return _refused(request, access, pk, problem)
    except Invalid as problem:
        return _editor_error(request, pk, problem)
    if then != "stay":
        return _after(request, access, pk, then, decision_id)
    return say(_show_again(request, access, pk), f"Saved the revision of sample {pk}.")


@require_POST
@project_page(Scope.REVIEW)
def review_undo(request: HttpRequest, access: Access) -> HttpResponse:
    """Takes back the reviewer's last decision and opens its sample again."""
    try:
        with transaction.atomic():
            done = undo(access=access)
            pending = done.sample.status == Status.PENDING
            held = hold(access=access, sample_id=done.sample.pk) if pending else None
    except Conflict as problem:
        return HttpResponse(problem.detail, status=problem.status, content_type="text/plain; charset=utf-8")
    place = place_of(request.POST)
    space = workspace_of(
        access=access,
        sample=sample_of(access, done.sample.pk),
        place=Place(place.queue, place.query, None if pending else done.undone.pk),
        held=held,
    )
    word = done.undone.get_action_display().lower()
    return say(show(request, access, space), f"Undid {word} of sample {done.sample.pk}.")


@require_POST
@project_page(Scope.REVIEW)
def lease_heartbeat(request: HttpRequest, access: Access, pk: int) -> HttpResponse:
    """Keeps the sample while its page is open; says so where someone else has taken it meanwhile."""
    sample = sample_of(access, pk)
    held = held_while_undecided(access, sample)
    context = {
        "sample": sample,
        "project": access.project,
        "held": held,
        "in_review_by": None if held else holder_of(pk, other_than=access.user),
        "beating": held is not None,
    }
    return render(request, "review/queue/_lease.html", context)


@require_POST
@project_page(Scope.REVIEW)
def lease_release(request: HttpRequest, access: Access, pk: int) -> HttpResponse:
    """Sent by the browser when the page of one sample is left. `until` is what that page knew of the lease: a page that
    was opened since, as a reload does, has extended it and keeps it."""
    until = parse_datetime(request.POST.get("until", ""))
    rows = Lease.objects.filter(sample=sample_of(access, pk), reviewer=access.user)
    for lease in rows.filter(until__lte=until) if until else rows:
        release(access=access, lease=lease)
    return HttpResponse(status=204)


@require_POST
@project_page(Scope.REVIEW)
def sample_draft(request: HttpRequest, access: Access, pk: int) -> HttpResponse:
    text, note, comment = (request.POST.get(name) for name in ("text", "note", "comment"))
    saved = save_draft(access=access, sample_id=pk, text=text, note=note, comment=comment)
    return JsonResponse({"saved_at": saved.at.isoformat() if saved.at else None})


@require_POST
@project_page(Scope.REVIEW)
def answer_facts(request: HttpRequest, access: Access) -> HttpResponse:
    """The protocol facts of the text in the editor, checked while typing."""
    return render(request, "review/workspace/_protocol.html", {"facts": facts_of(request.POST.get("text", ""))})


def _decide(
    request: HttpRequest, access: Access, sample: Sample, *, action: str = "", version: int | None = None
) -> tuple[str, int]:
    """(action, decision's id). A button may carry its reason: `reject:leaks`."""
    action, _, reason = (action or request.POST.get("action", "")).partition(":")
    done = decide(
        access=access,
        sample_id=sample.pk,
        action=action,
        version=_version(request) if version is None else version,
        preference=preference_of_page(request.POST, access, sample),
        reason=reason or request.POST.get(f"{action}_reason", "").strip(),
        comment=request.POST.get("comment", "").strip(),
        seconds=_seconds(request.POST.get("seconds", "")),
    )
    # What was typed as a comment is in the log now; an edited text stays, since it may be wanted after an undo.
    Draft.objects.filter(sample=sample, reviewer=access.user).update(comment="")
    Draft.objects.filter(sample=sample, reviewer=access.user, text="", note="").delete()
    return action, done.decision.pk


def _revise(request: HttpRequest, access: Access, sample: Sample, *, may_be_unchanged: bool) -> int:
    """Saves the text as a revision of the chosen answer; the sample's version after it."""
    pick = pick_of_page(request.POST, access, sample)
    try:
        done = revise(
            access=access,
            sample_id=sample.pk,
            text=request.POST.get("text", "").replace("\r\n", "\n"),
            note=request.POST.get("note", ""),
            of=Pick.OPPONENT if pick == Pick.OPPONENT else Pick.CANDIDATE,
            version=_version(request),
        )
    except Invalid as problem:
        if problem.code == "unchanged" and may_be_unchanged:
            return _version(request)
        raise
    return done.sample.version


def _version(request: HttpRequest) -> int:
    given = request.POST.get("version", "")
    if not (given.isascii() and given.isdigit() and len(given) < 10):
        raise Problem(
            "The form must say which version of the sample it shows.", errors=[FieldError("version", "missing")]
        )
    return int(given)


def _seconds(given: str) -> float | None:
    try:
        return float(given) if given else None
    except ValueError:
        raise Invalid("`seconds` is not a number.", errors=[FieldError("seconds", "is not a number")]) from None


def _after(request: HttpRequest, access: Access, pk: int, action: str, decision_id: int) -> HttpResponse:
    place = place_of(request.POST)
    if not request.headers.get("HX-Request"):  # a plain form: reloading the answer must not send it again
        path = queue_url(access.project.slug, place.query) if place.queue else sample_url(access.project.slug, pk)
        return HttpResponseRedirect(path)
    said = f"{SAID[action]} sample {pk}."
    passed_over = action in ("skip", "flag")
    if place.queue and (passed_over or access.project.settings.review.advance):
        return show_next(request, access, place.query, said=said)
    at = decision_id if place.queue else None
    space = workspace_of(access=access, sample=sample_of(access, pk), place=Place(place.queue, place.query, at))
    return say(show(request, access, space), said)


def _show_again(request: HttpRequest, access: Access, pk: int, *, notice: str = "", status: int = 200) -> HttpResponse:
    sample = sample_of(access, pk)
    held = held_while_undecided(access, sample)
    space = workspace_of(access=access, sample=sample, place=place_of(request.POST), held=held, notice=notice)
    return show(request, access, space, status=status)


def _refused(request: HttpRequest, access: Access, pk: int, problem: Problem) -> HttpResponse:
    """The sample as it is now, with what changed on top; the status stays that of the refusal."""
    return say(_show_again(request, access, pk, notice=problem.detail, status=problem.status), problem.detail)


def _editor_error(request: HttpRequest, pk: int, problem: Invalid) -> HttpResponse:
    response = render(request, "review/decisions/_editor_error.html", {"detail": problem.detail}, status=problem.status)
    response["HX-Retarget"], response["HX-Reswap"] = "#editor-error", "innerHTML"
    return response
