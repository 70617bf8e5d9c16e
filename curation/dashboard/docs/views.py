"""The documentation under `/docs/`. It has nothing private, so it needs no sign-in."""

import re

from django.conf import settings
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from curation.dashboard.docs.pages import documents, find, groups

NOTEBOOK = re.compile(r"[\w-]+\.ipynb")
PICTURE = re.compile(r"[\w-]+\.png")
A_DAY = 24 * 3600


@require_safe
def docs(request: HttpRequest) -> HttpResponse:
    """The first document, or the results of a search."""
    query = request.GET.get("q", "")[:200]
    if not query.strip():
        return redirect("document", next(iter(documents())))
    return render(request, "dashboard/docs/search.html", {"groups": groups(), "query": query, "found": find(query)})


@require_safe
def document(request: HttpRequest, name: str) -> HttpResponse:
    found = documents().get(name)
    if found is None:
        raise Http404(f"There is no document {name!r}.")
    return render(request, "dashboard/docs/document.html", {"groups": groups(), "document": found})


@require_safe
@cache_control(max_age=A_DAY)
def picture(request: HttpRequest, name: str) -> FileResponse:
    path = settings.DOCS_FOLDER / "img" / name
    if not PICTURE.fullmatch(name) or not path.is_file():
        raise Http404(f"There is no picture {name!r}.")
    return FileResponse(path.open("rb"))


@require_safe
def notebook(request: HttpRequest, name: str) -> FileResponse:
    path = settings.DOCS_FOLDER / "notebooks" / name
    if not NOTEBOOK.fullmatch(name) or not path.is_file():
        raise Http404(f"There is no notebook {name!r}.")
    return FileResponse(path.open("rb"), as_attachment=True, content_type="application/x-ipynb+json")
