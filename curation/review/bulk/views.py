from urllib.parse import urlsplit

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django_htmx.http import trigger_client_event

from curation.projects.access import Access, project_page
from curation.projects.models import Scope
from curation.review.bulk.decide import BulkDone, decide_matching, decide_selected
from curation.review.bulk.undo import batches_of, undo_bulk
from curation.review.workspace.responses import toast
from curation.samples.list.filters import SampleList
from curation.web.ids import number
from curation.web.lists.filters import ListParams
from curation.web.lists.pages import list_context
from curation.web.problems import Invalid

DONE = {"approve": "approved", "reject": "rejected", "refine": "marked for refining", "queue": "sent to the queue"}


@project_page(Scope.REVIEW, "POST")
def sample_bulk(request: HttpRequest, access: Access) -> HttpResponse:
    """Decide `ids`, or with `all=1` all that match `query` if they are still `count`."""
    action, reason = request.POST.get("action", ""), request.POST.get("reason", "")
    if request.POST.get("all") == "1":
        wanted = SampleList.from_query(QueryDict(request.POST.get("query", "")))
        expected = _count(request.POST.get("count", ""))
        done = decide_matching(access=access, action=action, wanted=wanted, expected=expected, reason=reason)
    else:
        done = decide_selected(access=access, action=action, ids=request.POST.getlist("ids"), reason=reason)
    undo_url = reverse("sample-bulk-undo", args=[access.project.slug, done.batch]) if done.changed else ""
    return _respond(request, access, _summary(done), tone="good" if done.changed else "borderline", undo_url=undo_url)


@project_page(Scope.REVIEW, "GET")
def batch_list(request: HttpRequest, access: Access) -> HttpResponse:
    params = ListParams.from_query(request.GET)
    context = list_context(
        request, params, params.page(batches_of(access)), f"/api/v1/projects/{access.project.slug}/batches"
    )
    return render(request, "review/batches.html", context)


@project_page(Scope.REVIEW, "POST")
def sample_bulk_undo(request: HttpRequest, access: Access, batch: str) -> HttpResponse:
    done = undo_bulk(access=access, batch=batch)
    return _respond(request, access, done.summary, tone="good" if done.restored else "borderline")


def _summary(done: BulkDone) -> str:
    text = f"{done.changed:,} {DONE[done.action]}."
    if done.refused:
        first = done.refused[0]
        text += f" {done.unchanged:,} unchanged; sample {first.id}: {first.error}"
    return text


def _count(given: str) -> int:
    count = number(given)
    if count is None:
        raise Invalid.at("count", "`count` must be the number of samples that you confirmed.")
    return count


def _respond(request: HttpRequest, access: Access, text: str, *, tone: str, undo_url: str = "") -> HttpResponse:
    """A toast and the event `samples:changed` for htmx; a plain form goes back to its list."""
    if request.headers.get("HX-Request"):
        response = HttpResponse(status=204)
        # Triggered at once: htmx never swaps or settles a response without content.
        trigger_client_event(response, "samples:changed")
        trigger_client_event(response, "dialog:close")
        return toast(response, text, tone=tone, undo_url=undo_url)
    messages.add_message(request, messages.SUCCESS if tone == "good" else messages.WARNING, text)
    return HttpResponseRedirect(_back(request, access))


def _back(request: HttpRequest, access: Access) -> str:
    """The list with the form, with its filter; never another host."""
    came_from = request.headers.get("Referer", "")
    if url_has_allowed_host_and_scheme(came_from, {request.get_host()}, require_https=request.is_secure()):
        parts = urlsplit(came_from)
        return parts.path + (f"?{parts.query}" if parts.query else "")
    return reverse("sample-list", args=[access.project.slug])
