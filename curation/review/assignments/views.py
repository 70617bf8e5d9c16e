from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse

from curation.assignments.models import Assignment
from curation.projects.access import Access, project_page
from curation.projects.models import Project, Scope
from curation.review.assignments.assign import MAX_SAMPLES, assign, assignments_of, check_until, parts_of
from curation.review.assignments.schemas import WorkloadOut
from curation.review.assignments.second_opinion import ask_second_opinion
from curation.review.assignments.workload import check_target, set_target, workloads
from curation.review.decisions.withdraw_assignment import withdraw_assignment
from curation.review.workspace.navigation import location_of, queue_url, sample_url
from curation.samples.list.filters import SampleFilter
from curation.samples.models import Sample, SampleStatus
from curation.web.forms import ProblemForm
from curation.web.ids import find
from curation.web.lists.filters import ListParams
from curation.web.lists.pages import list_context
from curation.web.problems import Invalid
from curation.web.refusals import all_checks
from curation.web.text.figures import COUNTED_UP_TO, counted

OF_A_LIST = {"sort", "limit", "cursor", "count", "columns"}


class AssignForm(ProblemForm):
    per_sample = forms.IntegerField(
        min_value=1,
        max_value=9,
        initial=1,
        label="Reviewers per sample",
        help_text="How many people get each sample.",
    )
    at_most = forms.IntegerField(
        min_value=1,
        max_value=MAX_SAMPLES,
        required=False,
        label="Limit",
        help_text="Assign at most so many samples, the first in the queue's order.",
    )
    until = forms.DateTimeField(
        required=False,
        label="Until (UTC)",
        help_text="From then on they are in everybody's queue. Empty: until they are decided or withdrawn.",
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
    )
    shared = forms.BooleanField(required=False, label="Offer them to everybody else too, after these people")

    def __init__(self, people: list[WorkloadOut], *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._people = people
        for n, row in enumerate(people):
            self.fields[f"share_{n}"] = forms.FloatField(
                required=False, min_value=0, label=row.username, widget=forms.NumberInput(attrs={"step": "any"})
            )

    def check(self) -> None:
        with all_checks() as check:
            with check():
                if not any(name.startswith("share_") for name in self.errors):
                    self.shares()
            with check():
                check_until(self.cleaned_data.get("until"))

    def shares(self) -> list[tuple[str, float]]:
        given = [(row.username, self.cleaned_data[f"share_{n}"]) for n, row in enumerate(self._people)]
        if not any(weight for _, weight in given):
            raise Invalid.at("share_0", "Give a share to one person at least.")
        return [(username, weight) for username, weight in given if weight]

    def of_people(self) -> list[forms.BoundField]:
        return [self[f"share_{n}"] for n in range(len(self._people))]

    def of_samples(self) -> list[forms.BoundField]:
        return [self[name] for name in ("per_sample", "at_most", "until", "shared")]


class TargetForm(ProblemForm):
    username = forms.CharField()
    per_day = forms.IntegerField(required=False, error_messages={"invalid": "Enter a whole number, or leave it empty."})
    total = forms.IntegerField(required=False, error_messages={"invalid": "Enter a whole number, or leave it empty."})

    def __init__(self, project: Project, *args: Any) -> None:
        super().__init__(*args)
        self._project = project

    def check(self) -> None:
        check_target(self._project, **{"username": "", **self.cleaned_data})


@project_page(Scope.RUN, "GET", "HEAD", "POST")
def assignment_list(request: HttpRequest, access: Access) -> HttpResponse:
    """`query` is the query of the samples list whose undecided samples the form assigns."""
    query = QueryDict((request.POST if request.method == "POST" else request.GET).get("query", ""))
    wanted = SampleFilter.from_query(query, ignore=OF_A_LIST)
    people = workloads(access)
    form = AssignForm(people, request.POST or None)
    if request.method == "POST" and form.is_valid():
        with form.shows_problem():
            given = {name: form.cleaned_data[name] for name in ("per_sample", "at_most", "until", "shared")}
            done = assign(access=access, people=form.shares(), wanted=wanted, **given)
            parts = ", ".join(f"{name} {count:,}" for name, count in done.counts.items())
            left = f" {done.left_out:,} more match and were not assigned." if done.left_out else ""
            messages.success(request, f"Assigned: {parts}.{left}")
            return redirect("assignment-list", access.project.slug)
    return _page(request, access, form, wanted, people)


def _page(
    request: HttpRequest,
    access: Access,
    form: AssignForm,
    wanted: SampleFilter,
    people: list[WorkloadOut],
    target: "TargetForm | None" = None,
) -> HttpResponse:
    """`target` is a target that was refused."""
    slug = access.project.slug
    params = ListParams.from_query(request.GET, ignore={"query"})
    page = params.page(assignments_of(access))
    parts_by = parts_of(page.rows)
    undecided = Sample.objects.of(access.project).filter(status=SampleStatus.PENDING)
    context = {
        **list_context(
            request,
            params,
            page,
            f"/api/v1/projects/{slug}/assignments",
            path=reverse("assignment-list", args=[slug]),
        ),
        "assignments": [(row, parts_by.get(row.pk, [])) for row in page.rows],
        "people": people,
        "form": form,
        "target": target,
        "query": wanted.to_query(),
        "undecided": wanted.apply(undecided).order_by()[:COUNTED_UP_TO].count(),
    }
    return render(request, "review/assignments/list.html", context, status=(target or form).status)


@project_page(Scope.RUN, "POST")
def assignment_withdraw(request: HttpRequest, access: Access, pk: int) -> HttpResponse:
    assignment = find(Assignment.objects.filter(project=access.project), str(pk), "assignment")
    undecided = withdraw_assignment(access=access, assignment=assignment)
    messages.success(request, f"Withdrawn. Back in everybody's queue: {counted(undecided, 'undecided sample')}.")
    return redirect("assignment-list", access.project.slug)


@project_page(Scope.RUN, "POST")
def target_set(request: HttpRequest, access: Access) -> HttpResponse:
    """Fields left empty: no target."""
    form = TargetForm(access.project, request.POST)
    if form.is_valid():
        with form.shows_problem():
            set_target(access=access, **form.cleaned_data)
            messages.success(request, f"Saved the target of {form.cleaned_data['username']}.")
            return redirect("assignment-list", access.project.slug)
    people = workloads(access)
    return _page(request, access, AssignForm(people), SampleFilter(), people, form)


@project_page(Scope.REVIEW, "POST")
def sample_second_opinion(request: HttpRequest, access: Access, pk: int) -> HttpResponse:
    username = request.POST.get("username", "")
    ask_second_opinion(access=access, sample_id=pk, username=username)
    messages.success(
        request,
        f"Asked for a second opinion on sample {pk}: {username or 'anybody'}.",
    )
    return _back(request, access, pk)


@project_page(Scope.REVIEW, "POST")
def second_opinion_withdraw(request: HttpRequest, access: Access, pk: int, assignment: int) -> HttpResponse:
    requests = Assignment.objects.filter(project=access.project, second_opinion=True, samples__sample=pk)
    withdraw_assignment(access=access, assignment=find(requests, str(assignment), "request for a second opinion"))
    messages.success(request, f"Withdrew the request for a second opinion on sample {pk}.")
    return _back(request, access, pk)


def _back(request: HttpRequest, access: Access, pk: int) -> HttpResponse:
    location, slug = location_of(request.POST), access.project.slug
    return HttpResponseRedirect(queue_url(slug, location.query) if location.queue else sample_url(slug, pk))
