"""The forms of evaluations: a launch, a check of a split, a split from an export."""

from typing import Any

from django import forms

from curation.evaluations.families import families_of
from curation.evaluations.models import Split
from curation.exports.models import Export
from curation.imports.sources.stored import keep
from curation.llm.models import Endpoint
from curation.projects.models import Project
from curation.runs.kinds import Json

SHOWN = 200


class EvaluationForm(forms.Form):
    """`params()` are a run's parameters as a script would send them; what is empty keeps its default."""

    models = forms.MultipleChoiceField(widget=forms.CheckboxSelectMultiple, label="Models, side by side")
    split = forms.ChoiceField(required=False, label="Held-out split")
    file = forms.FileField(
        required=False,
        label="or a file",
        help_text="JSON lines of messages rows with the expected assistant message last; becomes a split.",
    )
    family = forms.ChoiceField(label="Command family", help_text="What counts as a command, and how it is compared.")
    max_per_combo = forms.IntegerField(
        required=False,
        min_value=1,
        label="Rows of each tier and source",
        help_text="The first so many, in file order; empty sends every row.",
    )
    temperature = forms.FloatField(required=False, min_value=0, max_value=2, help_text="0 unless given.")
    max_tokens = forms.IntegerField(
        required=False, min_value=1, label="Token limit", help_text="120 unless given here or at the endpoint."
    )
    timeout = forms.FloatField(required=False, min_value=1, label="Seconds a call", help_text="60 unless given.")
    budget = forms.DecimalField(
        required=False, min_value=0, label="Budget in US dollars", help_text="The run stops before it is overrun."
    )
    fresh = forms.BooleanField(required=False, label="Ask again what is on record")

    def __init__(self, project: Project, *args: Any, **values: Any) -> None:
        super().__init__(*args, **values)
        self._project = project
        endpoints = Endpoint.objects.of(project).values_list("name", "model")
        splits = Split.objects.of(project).order_by("-id")[:SHOWN]
        _choose(self, "models", [(name, f"{name} ({model})") for name, model in endpoints])
        _choose(self, "split", [("", "–"), *((str(s.pk), f"{s.name}, {s.rows_count} rows ({s.pk})") for s in splits)])
        _choose(self, "family", [(name, name) for name in families_of(project)])
        for name in ("temperature", "timeout"):
            self.fields[name].widget.attrs["step"] = "any"

    def params(self) -> Json:
        """The parameters of the valid form; a new file is stored. Raises a `Problem`."""
        given = self.cleaned_data
        params: Json = {"models": given["models"], "family": given["family"], "fresh": given["fresh"]}
        if given["file"]:
            params["file"] = keep(project=self._project, file=given["file"], name=given["file"].name)
        else:
            params["split"] = given["split"]
        for name in ("max_per_combo", "temperature", "max_tokens", "timeout"):
            if given[name] is not None:
                params[name] = given[name]
        return params


class CheckForm(forms.Form):
    """What a split is held against: one of the three."""

    file = forms.FileField(required=False, label="Training file", help_text="JSON lines or Parquet, messages rows.")
    export = forms.ChoiceField(required=False, label="or an export's train files")
    training_split = forms.ChoiceField(required=False, label="or another split")

    def __init__(self, split: Split, *args: Any, **values: Any) -> None:
        super().__init__(*args, **values)
        self._split = split
        exports = Export.objects.of(split.project).filter(ready=True).order_by("-id")[:SHOWN]
        splits = Split.objects.of(split.project).exclude(pk=split.pk).order_by("-id")[:SHOWN]
        _choose(self, "export", [("", "–"), *((str(e.pk), f"Export {e.pk} {e.recipe_name}") for e in exports)])
        _choose(self, "training_split", [("", "–"), *((str(s.pk), f"{s.name} ({s.pk})") for s in splits)])

    def params(self) -> Json:
        given = self.cleaned_data
        params: Json = {"split": str(self._split.pk), "export": given["export"]}
        params["training_split"] = given["training_split"]
        if given["file"]:
            params["upload"] = keep(project=self._split.project, file=given["file"], name=given["file"].name)
        return params


class SplitForm(forms.Form):
    """A split from an export's split file."""

    export = forms.ChoiceField(label="Export")
    split = forms.ChoiceField(choices=[("val", "val"), ("reserve", "reserve"), ("train", "train")], label="Its split")
    name = forms.CharField(required=False, max_length=180, label="Name")

    def __init__(self, project: Project, *args: Any, **values: Any) -> None:
        super().__init__(*args, **values)
        exports = Export.objects.of(project).filter(ready=True).order_by("-id")[:SHOWN]
        _choose(self, "export", [(str(e.pk), f"Export {e.pk} {e.recipe_name}") for e in exports])


def _choose(form: forms.Form, name: str, choices: list[tuple[str, str]]) -> None:
    field = form.fields[name]
    if not isinstance(field, forms.ChoiceField):
        raise TypeError(f"{name} offers no choice")
    field.choices = choices
