"""What every page shows around its content (project, sidebar, the page as curl), and the error pages."""

import sys
from dataclasses import dataclass

import orjson
from django.contrib.auth.models import User
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from curation.notifications.filters import unread_count
from curation.projects.access import Access
from curation.projects.models import Project
from curation.projects.preferences.change import preferences_of
from curation.projects.preferences.keys import pressed_keys
from curation.review.queue.take import open_count
from curation.web.failures import failure_of
from curation.web.http.middleware import is_api, refused
from curation.web.http.responses import problem_response
from curation.web.problems import NotAllowed, NotFound, Problem

Context = dict[str, object]


@dataclass(frozen=True, slots=True)
class NavItem:
    """One entry of the sidebar: `key` is also its icon, `goto` the key to press after `g`."""

    key: str
    label: str
    url: str
    goto: str
    count: int | None
    active: bool


ENTRIES = (
    ("overview", "Overview", "overview", "o"),
    ("queue", "Queue", "queue", "q"),
    ("samples", "Samples", "sample-list", "s"),
    ("duels", "Duels", "duel-list", "d"),
    ("prompts", "Prompts", "prompt-list", "p"),
    ("scenarios", "Scenarios", "scenario-list", "c"),
    ("trajectories", "Trajectories", "trajectory-list", "j"),
    ("evaluations", "Evaluations", "evaluation-list", "v"),
    ("runs", "Runs", "run-list", "r"),
    ("exports", "Exports", "export-list", "e"),
    ("models", "Models", "model-list", "m"),
    ("settings", "Settings", "settings", "t"),
    ("system", "System", "system", "y"),
)


def shell(request: HttpRequest) -> Context:
    """Context processor: two indexed counts and the user's preferences per page, no query for htmx fragments."""
    access = request.META.get("winnow.access")
    user = getattr(request, "user", None)  # missing where a middleware refused the request
    try:
        context: Context = {"base_url": request.build_absolute_uri("/").rstrip("/")}
    except DisallowedHost:
        context = {}
    if isinstance(access, Access):
        context |= {"project": access.project, "access": access}
    if request.headers.get("HX-Request") or user is None or not user.is_authenticated:
        return context
    if isinstance(user, User):
        own = preferences_of(user)
        context["unread"] = unread_count(user)
        context["density"] = own.density
        context["preferences"] = orjson.dumps({"keys": pressed_keys(own.keys), "tables": own.tables}).decode()
    context["projects"] = Project.objects.visible_to(user).archived(False).only("slug", "name")[:50]
    if isinstance(access, Access):
        context |= {
            "nav": _nav(request, access),
            "search_url": reverse("sample-list", args=[access.project.slug]),
        }
    return context


def _nav(request: HttpRequest, access: Access) -> list[NavItem]:
    items = []
    for key, label, view, goto in ENTRIES:
        url = reverse(view, args=[access.project.slug])
        active = request.path == url if key == "overview" else request.path.startswith(url)
        count = open_count(access.project, access.user.pk) if key == "queue" else None
        items.append(NavItem(key, label, url, goto, count, active))
    return items


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _failed(request, Problem("The request cannot be read. Reload the page and try again."), "errors/400.html")


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _failed(request, NotAllowed("This is not allowed."), "errors/403.html")


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _failed(request, NotFound("There is nothing at this address."), "errors/404.html")


def server_error(request: HttpRequest) -> HttpResponse:
    error = sys.exc_info()[1]
    if failure := failure_of(error) if error else None:
        return refused(request, failure)
    problem = Problem("Something went wrong on the server. Search its log for the request id.", code="internal")
    problem.status, problem.title = 500, "Internal error"
    return _failed(request, problem, "errors/500.html")


def _failed(request: HttpRequest, problem: Problem, template: str) -> HttpResponse:
    """The failure as a problem for API calls, as an error page otherwise."""
    if is_api(request):
        return problem_response(request, problem)
    return render(request, template, status=problem.status)
