"""The page of experiments: their cards, and the form that writes one."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from curation.evaluations.experiments.api import experiments_of
from curation.evaluations.experiments.card import expectations
from curation.evaluations.experiments.change import LONGEST_NAME, LONGEST_TRAINING, Card, delete_card, write_card
from curation.evaluations.models import EvaluatedModel, Experiment
from curation.evaluations.splits.forms import NONE, set_choices
from curation.exports.models import export_choices
from curation.projects.access import Access, project_page
from curation.projects.models import Project, Scope
from curation.projects.pages.forms import MappingField
from curation.web.forms import ProblemForm
from curation.web.ids import find

SHOWN = 50


class CardForm(ProblemForm):
    name = forms.CharField(max_length=LONGEST_NAME, label="Name")
    export = forms.ChoiceField(required=False, label="Trained on")
    training = forms.CharField(
        required=False, max_length=LONGEST_TRAINING, label="Training settings", widget=forms.Textarea(attrs={"rows": 6})
    )
    file = forms.FileField(required=False, label="or a configuration file", help_text="Replaces the text.")
    base = forms.ChoiceField(required=False, label="Base model, as evaluated")
    trained = forms.ChoiceField(required=False, label="Trained model, as evaluated")
    expected = MappingField(
        "metric = change", float, str, required=False, label="Expected changes",
        help_text="One `metric = change` per line; shares for rates: exact = 0.34 is 34 points.",
    )  # fmt: skip

    def __init__(self, project: Project, *args: Any, **values: Any) -> None:
        super().__init__(*args, **values)
        models = EvaluatedModel.objects.filter(evaluation__project=project, evaluation__run__deleting_at=None)
        rows = models.order_by("-evaluation_id", "place").values_list("evaluation_id", "name")[:500]
        named = [(f"{evaluation}/{name}", f"{name}, evaluation {evaluation}") for evaluation, name in rows]
        set_choices(self, "export", [NONE, *export_choices(project)])
        for field in ("base", "trained"):
            set_choices(self, field, [NONE, *named])

    def clean_file(self) -> str:
        file = self.cleaned_data["file"]
        if not file:
            return ""
        if file.size > LONGEST_TRAINING:
            raise forms.ValidationError(f"The file has more than {LONGEST_TRAINING:,} bytes.")
        try:
            return str(file.read().decode())
        except UnicodeDecodeError:
            raise forms.ValidationError("The file is not text in UTF-8.") from None

    def card(self) -> Card:
        given = self.cleaned_data
        base, trained = (_named(given[field]) for field in ("base", "trained"))
        training = given["file"] or given["training"]
        return Card(given["name"], given["export"], training, base, trained, given["expected"] or {})


@require_http_methods(["GET", "POST"])
@project_page(Scope.READ)
def experiment_list(request: HttpRequest, access: Access) -> HttpResponse:
    """All cards, and a form: for a new card, or with `?edit=` for an existing one."""
    if request.method == "POST":
        access.require(Scope.RUN)
    rows = experiments_of(access).select_related("export", "created_by").order_by("-id")
    edited = find(rows, request.GET["edit"], "experiment") if request.GET.get("edit") else None
    form = CardForm(access.project, request.POST or None, request.FILES or None, initial=_initial(edited))
    if request.method == "POST" and form.is_valid():
        with form.shows_problem():
            written = write_card(access=access, card=form.card(), experiment=edited)
            messages.success(request, f"The card “{written.name}” is saved.")
            return redirect("experiment-list", access.project.slug)
    context = {
        "cards": [(experiment, *expectations(experiment)) for experiment in rows[:SHOWN]],
        "form": form if access.may(Scope.RUN) else None,
        "edited": edited,
        "api_path": f"/api/v1/projects/{access.project.slug}/experiments",
    }
    return render(request, "evaluations/experiments/list.html", context, status=form.status)


@require_POST
@project_page(Scope.RUN)
def experiment_delete(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    experiment = find(experiments_of(access), pk, "experiment")
    delete_card(access=access, experiment=experiment)
    messages.success(request, f"The card “{experiment.name}” is deleted.")
    return redirect("experiment-list", access.project.slug)


def _named(value: str) -> tuple[str, str] | None:
    evaluation, _, name = value.partition("/")
    return (evaluation, name) if value else None


def _initial(edited: Experiment | None) -> dict[str, object]:
    if edited is None:
        return {"expected": {}}
    base, trained = (f"{model.evaluation_id}/{model.name}" if model else "" for model in (edited.base, edited.trained))
    return {
        "name": edited.name, "export": str(edited.export_id or ""), "training": edited.training,
        "base": base, "trained": trained, "expected": edited.expected,
    }  # fmt: skip
