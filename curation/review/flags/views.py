from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from curation.projects.access import Access, project_page
from curation.projects.models import Scope
from curation.review.flags.resolve import FlagList, flags_of, resolve_flags
from curation.review.workspace.navigation import location_of, page_url
from curation.web.lists.pages import Tab, list_context


@project_page(Scope.READ, "GET")
def flag_list(request: HttpRequest, access: Access) -> HttpResponse:
    params = FlagList.from_query(request.GET)
    flags = flags_of(access)
    counts = {"open": flags.filter(resolution=None).count(), "resolved": flags.filter(resolution__isnull=False).count()}
    context = {
        **list_context(request, params, params.rows(access), f"/api/v1/projects/{access.project.slug}/flags"),
        "tabs": [
            Tab(f"{state.capitalize()} {count:,}", f"{request.path}?state={state}", params.state == state)
            for state, count in counts.items()
        ],
        "may_resolve": access.may(Scope.REVIEW),
    }
    return render(request, "review/flags.html", context)


@project_page(Scope.REVIEW, "POST")
def flags_resolve(request: HttpRequest, access: Access, pk: int) -> HttpResponse:
    resolve_flags(access=access, sample_id=pk, note=request.POST.get("note", ""))
    messages.success(request, f"Resolved the flags of sample {pk}.")
    slug, location = access.project.slug, location_of(request.POST)
    if request.POST.get("of") == "sample":  # the page of the sample, which stays open
        return redirect(page_url(slug, location, pk))
    return redirect("flag-list", slug)
