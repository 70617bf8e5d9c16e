"""What every page shows around its content: the project, the sidebar, the call behind the page; and error pages."""

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from curation.projects.access import Access
from curation.projects.models import Project
from curation.review.queue import open_count

Context = dict[str, object]


@dataclass(frozen=True, slots=True)
class NavItem:
    """One entry of the sidebar; `goto` is the key after `g`."""

    key: str
    label: str
    url: str
    icon: str
    goto: str
    count: int | None
    active: bool


ENTRIES = (
    ("overview", "Overview", "overview", "o"),
    ("queue", "Queue", "queue", "q"),
    ("samples", "Samples", "sample-list", "s"),
    ("duels", "Duels", "duel-list", "d"),
    ("prompts", "Prompts", "prompt-list", "p"),
    ("runs", "Runs", "run-list", "r"),
    ("exports", "Exports", "export-list", "e"),
    ("models", "Models", "model-list", "m"),
    ("settings", "Settings", "settings", "t"),
    ("system", "System", "system", "y"),
)


def shell(request: HttpRequest) -> Context:
    """Context processor. Reads one count per page, by index; nothing for requests that fill in a fragment."""
    access = request.META.get("winnow.access")
    context: Context = {"base_url": request.build_absolute_uri("/").rstrip("/")}
    if request.headers.get("HX-Request") or not request.user.is_authenticated:
        return context
    context["projects"] = Project.objects.visible_to(request.user).only("slug", "name")[:50]
    if isinstance(access, Access):
        context |= {
            "project": access.project,
            "access": access,
            "nav": _nav(request, access.project),
            "search_url": reverse("sample-list", args=[access.project.slug]),
        }
    return context


def _nav(request: HttpRequest, project: Project) -> list[NavItem]:
    items = []
    for key, label, view, goto in ENTRIES:
        url = reverse(view, args=[project.slug])
        active = request.path == url if key == "overview" else request.path.startswith(url)
        count = open_count(project) if key == "queue" else None
        items.append(NavItem(key, label, url, key, goto, count, active))
    return items


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return render(request, "errors/400.html", status=400)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    return render(request, "errors/403.html", status=403)


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return render(request, "errors/404.html", status=404)


def server_error(request: HttpRequest) -> HttpResponse:
    return render(request, "errors/500.html", status=500)
