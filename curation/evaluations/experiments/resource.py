"""Experiment cards: the fields of a card, its REST calls and its page."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated

from django import forms
from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from pydantic import BeforeValidator, ConfigDict, Field, StringConstraints

from curation.evaluations.compare.pairs import model_of
from curation.evaluations.experiments.card import METRICS, ExpectationOut, expectations
from curation.evaluations.models import EvaluatedModel, Evaluation, Experiment
from curation.evaluations.splits.forms import NONE
from curation.exports.models import Export, export_choices
from curation.projects.access import Access, project_page
from curation.projects.models import Scope
from curation.projects.resource import Resource
from curation.samples.blind import without_pending
from curation.web.ids import find, find_param
from curation.web.problems import FieldError, Invalid
from curation.web.schema_form import MappingField, SchemaForm
from curation.web.schemas import Id, NotEmpty, Out, StrictModel, Username
from curation.web.text.storable import storable

SHOWN, LONGEST_TRAINING = 50, 200_000


class ModelRef(StrictModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)

    evaluation: str = Field(examples=["7"])
    model: str = Field("", examples=["tuned"], description="Optional if the evaluation has one model.")

    def __str__(self) -> str:
        return f"{self.evaluation}/{self.model}"


def _model_ref(given: object) -> object:
    """An evaluated model as a script, a row and the form name it."""
    if isinstance(given, EvaluatedModel):
        return {"evaluation": str(given.evaluation_id), "model": given.name}
    return dict(zip(("evaluation", "model"), given.split("/", 1), strict=False)) if isinstance(given, str) else given


Ref = Annotated[ModelRef | None, BeforeValidator(_model_ref)]


class ExperimentIn(StrictModel):
    """The whole card. `training` is free text or a configuration file; `expected` are changes by metric."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    name: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=120)] = Field(
        examples=["SFT, one epoch"]
    )
    export: Id | None = Field(None, title="Trained on", description="Id of an export.")
    training: Annotated[str, forms.CharField(required=False, widget=forms.Textarea(attrs={"rows": 6}))] = Field(
        "", title="Training settings", max_length=LONGEST_TRAINING, examples=["lora r=8, lr 2e-4"]
    )
    base: Ref = Field(None, title="Base model, as evaluated")
    trained: Ref = Field(None, title="Trained model, as evaluated")
    expected: Annotated[
        dict[str, Annotated[float, Field(allow_inf_nan=False)]],
        MappingField("metric = change", float, str, required=False),
    ] = Field(
        {},
        title="Expected changes",
        examples=[{"exact": 0.34}],
        description="Changes by metric, shares for rates: 0.34 is 34 points. On the page, a line is exact = 0.34.",
    )


class ExperimentOut(ExperimentIn, Out):
    id: Id
    created_by: Username | None = Field(description="Null if the account was deleted.")
    manifest_sha256: NotEmpty = Field(description="Of the export that was trained on; stays if that is deleted.")
    expectations: list[ExpectationOut] = []
    problem: str | None = Field(None, description="Why the expectations cannot be checked.")
    notes: list[str] = Field([], description="What to know of the comparison, such as settings that differ.")
    created_at: datetime


class Experiments(Resource[Experiment]):
    model, noun, plural, tag = Experiment, "experiment", "experiments", "evaluations"
    path, row_path = "/experiments", "/experiments/{experiment_id}"
    body, out = ExperimentIn, ExperimentOut
    about = {"post": "Ties an export to training settings, an evaluated base and an evaluated trained model."}
    changes = Scope.RUN
    logged = ("export", "trained", "expected")

    def rows(self, access: Access) -> QuerySet[Experiment]:
        """For those who review blind without those of evaluations with pending samples."""
        rows = Experiment.objects.filter(project=access.project)
        samples = "evaluation__episodes__trajectory__sample"
        rows = rows.select_related("project", "export", "created_by", "base__evaluation", "trained__evaluation")
        return without_pending(access, rows, f"base__{samples}", f"trained__{samples}")

    def write(self, access: Access, row: Experiment, body: ExperimentIn) -> None:
        _check(body.expected)
        export = find_param(Export.objects.of(access.project), body.export, "export", "export") if body.export else None
        if export is not None and (row.export_id != export.pk or not row.manifest_sha256):
            row.manifest_sha256 = export.manifest_sha256
        row.name, row.training, row.export, row.expected = body.name, storable(body.training), export, body.expected
        row.base, row.trained = (_model(access, name, getattr(body, name)) for name in ("base", "trained"))

    def shown(self, access: Access, rows: Sequence[Experiment]) -> list[ExperimentOut]:
        return [_checked(row) for row in rows]


experiments = Experiments()
router = experiments.router()


def _checked(row: Experiment) -> ExperimentOut:
    found, problem, notes = expectations(row)
    checked = {"expectations": found, "problem": problem or None, "notes": notes}
    return ExperimentOut.model_validate(row).model_copy(update=checked)


def _check(expected: Mapping[str, float]) -> None:
    errors = []
    for name, change in expected.items():
        if name not in METRICS:
            errors.append(FieldError(f"expected.{name}", f"is not a metric; the metrics are {', '.join(METRICS)}"))
        elif METRICS[name].rate and not -1 <= change <= 1:
            errors.append(FieldError(f"expected.{name}", "is a share from -1 to 1, such as 0.34 for 34 points"))
    if errors:
        raise Invalid.fields(errors)


def _model(access: Access, path: str, ref: ModelRef | None) -> EvaluatedModel | None:
    if ref is None:
        return None
    evaluation = find_param(Evaluation.objects.of(access.project), ref.evaluation, "evaluation", f"{path}.evaluation")
    return model_of(evaluation, ref.model or None, path=f"{path}.model")


class CardForm(SchemaForm[ExperimentIn]):
    field_order = ("name", "export", "training", "file")

    file = forms.FileField(required=False, label="or a configuration file", help_text="Replaces the text.")

    def clean_file(self) -> str:
        file = self.cleaned_data["file"]
        if file and file.size > LONGEST_TRAINING:
            raise forms.ValidationError(f"The file has more than {LONGEST_TRAINING:,} bytes.")
        try:
            return str(file.read().decode()) if file else ""
        except UnicodeDecodeError:
            raise forms.ValidationError("The file is not text in UTF-8.") from None

    def body(self) -> ExperimentIn:
        self.cleaned_data["training"] = self.cleaned_data["file"] or self.cleaned_data["training"]
        return super().body()


def _form(request: HttpRequest, access: Access, edited: Experiment | None) -> CardForm:
    models = EvaluatedModel.objects.filter(evaluation__project=access.project, evaluation__run__deleting_at=None)
    named = models.order_by("-evaluation_id", "place").values_list("evaluation_id", "name")[:500]
    refs = [NONE, *((f"{evaluation}/{name}", f"{name}, evaluation {evaluation}") for evaluation, name in named)]
    choices = {"export": [NONE, *export_choices(access.project)], "base": refs, "trained": refs}
    return CardForm(request.POST or None, request.FILES or None, choices=choices, initial=CardForm.initial_of(edited))


@project_page(Scope.READ, "GET", "POST")
def experiment_list(request: HttpRequest, access: Access) -> HttpResponse:
    """All cards, and a form: for a new card, or with `?edit=` for an existing one."""
    if request.method == "POST":
        access.require(Scope.RUN)
    rows = experiments.rows(access).order_by("-id")
    edited = find(rows, request.GET["edit"], "experiment") if request.GET.get("edit") else None
    form = _form(request, access, edited)
    if request.method == "POST" and form.is_valid():
        with form.shows_problem():
            body = form.body()
            written = experiments.update(access, edited, body) if edited else experiments.create(access, body)
            messages.success(request, f"The card “{written.name}” is saved.")
            return redirect("experiment-list", access.project.slug)
    context = {
        "cards": [(card, *expectations(card)) for card in rows[:SHOWN]],
        "form": form if access.may(Scope.RUN) else None,
        "edited": edited,
        "api_path": f"/api/v1/projects/{access.project.slug}/experiments",
    }
    return render(request, "evaluations/experiments/list.html", context, status=form.status)


@project_page(Scope.RUN, "POST")
def experiment_delete(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    card = experiments.one(access, pk)
    experiments.delete(access, card)
    messages.success(request, f"The card “{card.name}” is deleted.")
    return redirect("experiment-list", access.project.slug)
