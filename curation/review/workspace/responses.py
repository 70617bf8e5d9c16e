"""What review's pages are made of: where the reviewer is, the workspace as a page or fragment, the next sample."""

import json

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django_htmx.http import trigger_client_event

from curation.projects.access import Access
from curation.review.queue.pace import progress_of
from curation.review.queue.take import Order, Taken, take_next
from curation.review.workspace.navigation import queue_trail, queue_url
from curation.review.workspace.workspace import Place, Workspace, workspace_of
from curation.samples.list.filters import SampleFilter
from curation.web.problems import FieldError, Problem

ORDERS: dict[str, Order] = {"borderline": "borderline", "newest": "newest", "random": "random"}


def order_of(query: str) -> Order:
    given = QueryDict(query).get("order") or "borderline"
    if given not in ORDERS:
        raise Problem(f"The queue knows the orders {', '.join(ORDERS)}.", errors=[FieldError("order", "unknown order")])
    return ORDERS[given]


def filter_of(query: str) -> SampleFilter:
    return SampleFilter.from_query(QueryDict(query), besides={"order"})


def place_of(values: QueryDict) -> Place:
    """`queue` is there (maybe empty) when the page belongs to a queue; `at` when it looks back at a decision."""
    at = values.get("at", "")
    return Place("queue" in values, values.get("queue", ""), int(at) if at.isascii() and at.isdigit() else None)


def take_for_page(access: Access, query: str) -> Taken | None:
    """The next sample of the queue that `query` describes; reloading the page gives the same one again."""
    wanted = filter_of(query)
    narrow = None if wanted.is_empty() else wanted.apply
    return take_next(access=access, order=order_of(query), narrow=narrow, resume=True)


def show_next(request: HttpRequest, access: Access, query: str, *, said: str = "") -> HttpResponse:
    """The next sample of the queue as a page, or as the fragment that takes the place of the decided one."""
    taken = take_for_page(access, query)
    if taken is None:
        response = render(request, _template(request, "review/queue/end.html"), _end(access, query))
        return _announced(request, response, access, query, f"{said} The queue is empty.")
    space = workspace_of(
        access=access,
        sample=taken.sample,
        place=Place(queue=True, query=query),
        held=taken.held,
        skipped_before=taken.skipped_before,
    )
    return _announced(request, show(request, access, space), access, query, f"{said} Sample {taken.sample.pk}.")


def show(request: HttpRequest, access: Access, space: Workspace, *, status: int = 200) -> HttpResponse:
    """The workspace of one sample, whole or as a fragment."""
    context: dict[str, object] = {
        "space": space,
        "sample": space.sample,
        "project": access.project,
        "order": order_of(space.place.query) if space.place.queue else "",
        "search_url": "",  # `/` finds in the history here
    } | _call(access, space)
    return render(request, _template(request, "review/sample_page.html"), context, status=status)


def say(response: HttpResponse, text: str) -> HttpResponse:
    return trigger_client_event(response, "say", {"text": text.strip()})


def toast(response: HttpResponse, text: str, *, tone: str = "good", undo_url: str = "") -> HttpResponse:
    detail: dict[str, object] = {"text": text, "tone": tone}
    if undo_url:
        detail["action"] = {"label": "Undo", "url": undo_url}
    return trigger_client_event(response, "toast", detail)


def _template(request: HttpRequest, page: str) -> str:
    fragments = {
        "review/sample_page.html": "review/workspace/_workspace.html",
        "review/queue/end.html": "review/queue/_end.html",
    }
    return fragments[page] if request.headers.get("HX-Request") else page


def _announced(request: HttpRequest, response: HttpResponse, access: Access, query: str, text: str) -> HttpResponse:
    if request.headers.get("HX-Request"):
        say(response, text)
        response["HX-Replace-Url"] = queue_url(access.project.slug, query)
    return response


def _end(access: Access, query: str) -> dict[str, object]:
    return {
        "project": access.project,
        "progress": progress_of(access),
        "order": order_of(query),
        "query": query,
        "filtered": not filter_of(query).is_empty(),
        "trail": queue_trail(access, sample_id=0, at=None, query=query),
        "search_url": "",
    }


def _call(access: Access, space: Workspace) -> dict[str, object]:
    if not space.place.queue or space.place.looking_back:
        return {"api_path": f"/api/v1/samples/{space.sample.pk}"}
    return {
        "api_path": f"/api/v1/projects/{access.project.slug}/queue/next",
        "api_method": "POST",
        "api_body": json.dumps({"order": order_of(space.place.query)}),
    }
