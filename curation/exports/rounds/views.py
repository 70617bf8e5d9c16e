from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render

from curation.exports.models import Round
from curation.exports.rounds.figures import RoundFigures, figures_of, rounds_shown
from curation.exports.rounds.start import export_round, start_next, start_round
from curation.llm.models import Endpoint
from curation.projects.access import Access, project_page
from curation.projects.models import Project, Scope
from curation.samples.blind import reviews_blind
from curation.scenarios.pages.measured import MeasuredOut
from curation.web.forms import ProblemForm
from curation.web.ids import find
from curation.web.problems import Problem

MOST_CHAINS = 20


class RoundForm(ProblemForm):
    """The first round of a chain, or with `before` the next one."""

    path_prefix = "params."

    before = forms.CharField(required=False, widget=forms.HiddenInput)
    operator = forms.ChoiceField(label="Operator")
    samples = forms.IntegerField(required=False, min_value=1, max_value=64, initial=3, label="Rollouts per scenario")

    def __init__(self, project: Project, data: QueryDict | None = None) -> None:
        super().__init__(data)
        names = Endpoint.objects.of(project).values_list("name", flat=True)
        self.operators = [(name, name) for name in names]
        self.fields["operator"] = forms.ChoiceField(label="Operator", choices=self.operators)


@project_page(Scope.READ, "GET")
def round_list(request: HttpRequest, access: Access) -> HttpResponse:
    """The rounds of one chain, by default the newest one."""
    return _page(request, access, RoundForm(access.project))


def _page(request: HttpRequest, access: Access, form: RoundForm) -> HttpResponse:
    rows = rounds_shown(access, Round.objects.of(access.project))
    chains = list(rows.filter(number=1).order_by("-id")[:MOST_CHAINS])
    newest = rows.order_by("-id").first()
    chosen = find(rows, request.GET["round"], "round") if request.GET.get("round") else newest
    found = figures_of(rows.chain_of(chosen)) if chosen else []
    context = {
        "chains": chains,
        "rounds": found,
        "leaves_out_pending": reviews_blind(access),
        "last": found[-1] if found else None,
        "axes": _axis_lines(found),
        "operators": [name for name, _ in form.operators],
        "form": form,
        "may_start": access.may(Scope.RUN) and access.may(Scope.EXPORT),
        "api_path": f"/api/v1/projects/{access.project.slug}/rounds",
    }
    return render(request, "exports/rounds/list.html", context, status=form.status)


@project_page(Scope.RUN, "POST")
def round_start(request: HttpRequest, access: Access) -> HttpResponse:
    """The first round of a chain, or with `before` the next one."""
    form = RoundForm(access.project, request.POST)
    if form.is_valid():
        given = form.cleaned_data
        with form.shows_problem():
            if given["before"]:
                before = find(Round.objects.of(access.project), given["before"], "round")
                start_next(access=access, before=before, operator=given["operator"])
            else:
                rollout = {} if given["samples"] is None else {"samples": given["samples"]}
                start_round(access=access, operator=given["operator"], rollout=rollout)
            return redirect("round-list", access.project.slug)
    return _page(request, access, form)


@project_page(Scope.EXPORT, "POST")
def round_export(request: HttpRequest, access: Access, pk: int) -> HttpResponse:
    row = find(Round.objects.of(access.project), str(pk), "round")
    try:
        run = export_round(access=access, round_=row, without_pending="without_pending" in request.POST)
    except Problem as problem:
        messages.error(request, problem.detail)
        return redirect("round-list", access.project.slug)
    return redirect("run-page", access.project.slug, run.pk)


def _axis_lines(rounds: list[RoundFigures]) -> list[tuple[str, str, list[MeasuredOut]]]:
    """Axis, value and its rate in every round; tasks come first."""
    keys = sorted({key for found in rounds for key in found.by_axis}, key=lambda key: (key[0] != "task", *key))
    return [
        (axis, value, [found.by_axis.get((axis, value), MeasuredOut(tried=0, kept=0)) for found in rounds])
        for axis, value in keys
    ]
