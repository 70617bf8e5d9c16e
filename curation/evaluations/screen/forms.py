from typing import Any

from django import forms

from curation.evaluations.families import families_of
from curation.evaluations.splits.forms import NONE, set_choices, split_choices
from curation.imports.sources.stored import store_upload
from curation.llm.models import Endpoint
from curation.projects.models import Project
from curation.runs.kinds import Json, kind_of
from curation.runs.launch import check_launch
from curation.runs.models import Run
from curation.web.forms import ProblemForm


def again_from(run: Run) -> Json:
    """The form's values for an earlier evaluation. The rows of its file are a split since then."""
    values = {**run.params, "budget": run.budget, "no_hints": not run.params.get("hints", True)}
    values["split"] = run.result.get("split", run.params.get("split", ""))
    return {**values, "max_per_combo": None} if values.get("max_per_combo") == "all" else values


class EvaluationLaunchForm(ProblemForm):
    """The fields that static screens and live episodes share."""

    path_prefix = "params."
    on_server = False  # whether models may act by the schema of an environment

    models = forms.MultipleChoiceField(widget=forms.CheckboxSelectMultiple, label="Models, side by side")
    split = forms.ChoiceField(required=False, label="Held-out split")
    family = forms.ChoiceField(label="Command family", help_text="What counts as a command, and how it is compared.")
    temperature = forms.FloatField(required=False, min_value=0, max_value=2, help_text="Default: 0.")
    max_tokens = forms.IntegerField(
        required=False, min_value=1, label="Token limit", help_text="Default: the endpoint’s own, or 120."
    )
    budget = forms.DecimalField(
        required=False, min_value=0, label="Budget in US dollars", help_text="The run stops before it exceeds this."
    )

    def __init__(self, project: Project, *args: Any, **values: Any) -> None:
        super().__init__(*args, **values)
        self._project = project
        endpoints = Endpoint.objects.of(project).values_list("name", "model")
        set_choices(self, "models", [(name, f"{name} ({model})") for name, model in endpoints])
        set_choices(self, "split", [NONE, *split_choices(project)])
        families = families_of(project).values()
        set_choices(
            self, "family", [(one.name, one.name) for one in families if self.on_server or one.rule != "action"]
        )
        for field in self.fields.values():
            if isinstance(field, forms.FloatField):
                field.widget.attrs["step"] = "any"

    def check(self) -> None:
        unknown = set(self.errors)
        if self.cleaned_data.get("file"):
            unknown |= {"file", "split"}  # a file is stored, and read, once the form is valid
        budget, kind = self.cleaned_data.get("budget"), kind_of("evaluate")
        check_launch(project=self._project, kind=kind, params=self.values(), budget=budget, unknown=unknown)

    def given(self, *names: str) -> Json:
        """The values of these fields that are valid, without those left empty, which keep their default."""
        return {name: value for name in names if (value := self.cleaned_data.get(name)) is not None}

    def values(self) -> Json:
        """The run's parameters without a file."""
        raise NotImplementedError

    def params(self) -> Json:
        """The run's parameters as a script would send them. Raises a `Problem`."""
        return self.values()


class EvaluationForm(EvaluationLaunchForm):
    field_order = ("models", "split", "file", "family", "max_per_combo", "temperature", "max_tokens", "timeout")

    file = forms.FileField(
        required=False,
        label="or a file",
        help_text="JSON lines of messages rows with the expected assistant message last; becomes a split.",
    )
    max_per_combo = forms.IntegerField(
        required=False,
        min_value=1,
        label="Rows of each tier and source",
        help_text="Sends the first rows in file order. Empty: every row.",
    )
    timeout = forms.FloatField(required=False, min_value=1, label="Seconds a call", help_text="Default: 60.")
    fresh = forms.BooleanField(required=False, label="Call the model even if an answer is recorded")

    def values(self) -> Json:
        names = ("models", "family", "fresh", "max_per_combo", "temperature", "max_tokens", "timeout")
        return self.given(*names) if self.cleaned_data.get("file") else self.given(*names, "split")

    def params(self) -> Json:
        """An uploaded file is stored."""
        file = self.cleaned_data["file"]
        stored = {"file": store_upload(project=self._project, file=file, name=file.name)} if file else {}
        return {**self.values(), **stored}
