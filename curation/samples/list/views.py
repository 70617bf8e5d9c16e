"""The samples list as a page, its count, its saved views, and the question before a bulk action."""

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.cache import patch_vary_headers

from curation.projects.access import Access, project_page
from curation.projects.models import Scope
from curation.samples.blind import hides, record_unblinding_of, refuse_hidden, refuse_hidden_query
from curation.samples.list.pages import SamplePageParams, list_page
from curation.samples.list.saved_views import SavedViewIn, saved_views
from curation.samples.list.similar import similar_samples
from curation.samples.models import Sample, SavedView
from curation.web.forms import ProblemForm
from curation.web.ids import find, id_number
from curation.web.lists.filters import find_list
from curation.web.problems import FieldError, Problem

# A larger action is refused (`curation.review.bulk.decide`); counting stops there too.
MAX_MATCHING = 50_000
VERBS = {"approve": "Approve", "reject": "Reject", "queue": "Send to the queue"}
TONES = {"approve": "primary", "reject": "bad", "queue": "primary"}
AFTERWARDS = {
    "approve": "You are recorded as their reviewer. Exports can include them.",
    "reject": "You are recorded as their reviewer. Exports do not include them.",
    "queue": "The samples are pending again, and reviewers get them from the queue.",
}


def confirm_bulk(access: Access, given: QueryDict) -> dict[str, object]:
    """Count the selection (`ids`) or, with `all=1`, all samples that match the filter in the same query."""
    action = given.get("action", "")
    if action not in VERBS:
        raise Problem(f"There is no action {action!r}.", errors=[FieldError("action", "approve, reject or queue")])
    rows = Sample.objects.of(access.project)
    ids: tuple[str, ...] = ()
    query = ""
    if given.get("all") == "1":
        wanted = SamplePageParams.from_query(given, ignore={"action", "all", "ids"})
        refuse_hidden(access, wanted)
        query = wanted.to_query()
        count = wanted.apply(rows).order_by()[: MAX_MATCHING + 1].count()
    else:
        asked = [id_number(pk) for pk in given.getlist("ids")[:500]]
        found = rows.filter(pk__in=[pk for pk in asked if pk is not None])
        ids = tuple(str(pk) for pk in found.order_by("id").values_list("pk", flat=True))
        count = len(ids)
    return {
        "slug": access.project.slug,
        "action": action,
        "verb": VERBS[action],
        "tone": TONES[action],
        "afterwards": AFTERWARDS[action],
        "count": count,
        "ids": ids,
        "query": query,
        "too_many": count > MAX_MATCHING,
    }


@project_page(Scope.READ, "GET", refuses_query=refuse_hidden_query)
def sample_list(request: HttpRequest, access: Access) -> HttpResponse:
    page = list_page(access, request.GET)
    problem: Problem | None = page["problem"]
    fragment = "HX-Request" in request.headers and "HX-History-Restore-Request" not in request.headers
    # htmx swaps in a response with status 422; the notice in the list names the error.
    status = 200 if problem is None else 422 if fragment else problem.status
    template = "samples/_list.html" if fragment else "samples/list.html"
    response = render(request, template, {"page": page, "api_path": page["api_path"]}, status=status)
    patch_vary_headers(response, ["HX-Request"])
    if fragment and problem is None:
        response["HX-Push-Url"] = page["here_url"]
    return response


@project_page(Scope.READ, "GET")
def sample_count(request: HttpRequest, access: Access) -> HttpResponse:
    """The exact number of matches; only on request, since it reads all of them."""
    wanted = SamplePageParams.from_query(request.GET)
    refuse_hidden(access, wanted)
    total = wanted.apply(Sample.objects.of(access.project)).count()
    return render(request, "samples/_count.html", {"total": total})


@project_page(Scope.REVIEW, "GET")
def sample_bulk_confirm(request: HttpRequest, access: Access) -> HttpResponse:
    return render(request, "samples/_bulk_confirm.html", {"question": confirm_bulk(access, request.GET)})


@project_page(Scope.READ, "GET")
def sample_similar(request: HttpRequest, access: Access, pk: int) -> HttpResponse:
    """The samples most like this one, for its page."""
    found = similar_samples(Sample.objects.of(access.project), str(pk))
    shown = [(sample, likeness, hides(access, sample)) for sample, likeness in found.items()]
    record_unblinding_of(access, list(found))
    return render(request, "samples/_similar.html", {"pk": pk, "shown": shown})


class ViewForm(ProblemForm):
    name = forms.CharField(max_length=80, widget=forms.TextInput(attrs={"autofocus": True, "autocomplete": "off"}))
    list = forms.CharField(required=False, widget=forms.HiddenInput)
    query = forms.CharField(required=False, widget=forms.HiddenInput)


@project_page(Scope.REVIEW, "POST")
def saved_view_create(request: HttpRequest, access: Access) -> HttpResponse:
    form = ViewForm(request.POST)
    of = find_list(request.POST.get("list") or "samples")
    if form.is_valid():
        with form.shows_problem():
            given = form.cleaned_data
            view = saved_views.create(access, SavedViewIn(name=given["name"], query=given["query"], list=of.name))
            messages.success(request, f"View “{view.name}” saved.")
            return redirect(f"{reverse(of.page, args=[access.project.slug])}?{view.query}")
    list_url = f"{reverse(of.page, args=[access.project.slug])}?{request.POST.get('query', '').removeprefix('?')}"
    return render(request, "samples/view_new.html", {"form": form, "list_url": list_url}, status=422)


@project_page(Scope.REVIEW, "POST")
def saved_view_delete(request: HttpRequest, access: Access, pk: int) -> HttpResponse:
    view = find(SavedView.objects.filter(project=access.project), str(pk), "view")
    saved_views.delete(access, view)
    messages.success(request, f"View “{view.name}” deleted.")
    return redirect(find_list(view.list).page, access.project.slug)
