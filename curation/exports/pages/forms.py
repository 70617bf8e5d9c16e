import re
from collections.abc import Collection, Mapping
from typing import Any, cast

from django import forms
from django.http import QueryDict
from django.urls import reverse

from curation.exports.formats import FORMATS, TRAINERS
from curation.exports.hygiene.held_out import held_out_choices
from curation.exports.kinds import recipe_to_export
from curation.exports.recipes.recipe import LONGEST_TEMPLATE, PLAIN, SPLITS, Recipe, read_recipe
from curation.exports.rows.chat_template import NONE, reference_templates
from curation.projects.models import Project
from curation.samples.list.filters import SampleFilter, SampleList
from curation.samples.models import SampleStatus, SavedView
from curation.web.forms import ProblemForm
from curation.web.lists.form_field import FilterField
from curation.web.problems import FieldError, Invalid, Problem

SOURCES = (
    ("duels", "Approved answer over its opponent"),
    ("scenarios", "Approved trajectory over another of its scenario"),
    ("revisions", "Revision over the answer it replaced"),
    ("decisions", "Rejected samples: rows to avoid, or the other side of approved answers to their prompt"),
)
CONTAMINATED = (("leave_out", "leave them out"), ("count", "export them, and count them"))
FAILURES = (("count", "export them, and count them"), ("leave_out", "leave them out"))
STEP_LABELS = [("people", "What people said"), ("values", "Also the values that probes measured")]
GUARANTEES = (("include", "export them"), ("leave_out", "leave them out"))
REASONING = (("drop", "leave out"), ("keep", "keep in its own field, in formats that have one"))
GROUPS = (
    ("auto", "repository if the shares allow it, else instance"),
    ("repo", "repository"),
    ("instance_id", "instance or scenario"),
)
# Fields that make one of the recipe.
_PARTS_OF = {**dict.fromkeys((*SPLITS, "more_splits"), "splits"), "view": "filter"}


# Fields with the name and the value of the recipe's.
_SAME = ("formats", "seed", "group_by", "near_duplicates", "held_out", "sources", "metadata", "gzip", "parquet")
# These too, unless they are empty.
_CHOSEN = ("trainer", "reasoning", "contaminated", "guarantees", "step_labels", "chat_template", "template_failures")


class NumbersField(forms.CharField):
    """Numbers by name: `repo=50, task=20`."""

    def clean(self, value: object) -> dict[str, float]:
        numbers: dict[str, float] = {}
        for word in filter(None, re.split(r"[,\s]+", str(super().clean(value)))):
            name, _, number = word.partition("=")
            try:
                numbers[name] = float(number) if "." in number else int(number)
            except ValueError:
                raise forms.ValidationError(f"{word!r} is not of the form name=number.") from None
        return numbers


def as_words(numbers: Mapping[str, float]) -> str:
    """Return numbers as `NumbersField` reads them."""
    return ", ".join(f"{name}={number}" for name, number in numbers.items())


class RecipeForm(ProblemForm):
    path_prefix = "recipe."
    trainer = forms.ChoiceField(
        required=False,
        choices=[(PLAIN, "none"), *((trainer.name, trainer.title) for trainer in TRAINERS.values())],
        help_text="Proposes its formats and adds the trainer's configuration file.",
    )
    formats = forms.MultipleChoiceField(
        choices=[(name, name) for name in FORMATS], widget=forms.CheckboxSelectMultiple, initial=["sft-messages", "dpo"]
    )
    view = forms.ChoiceField(required=False, label="Saved view", help_text="Replaces the filter below.")
    filter = FilterField(SampleFilter, required=False, label="Filter", initial={"status": SampleStatus.APPROVED.value})
    train = forms.FloatField(initial=1.0, min_value=0, max_value=1, label="Train", widget=forms.NumberInput())
    val = forms.FloatField(initial=0.0, min_value=0, max_value=1, required=False, label="Val")
    test = forms.FloatField(initial=0.0, min_value=0, max_value=1, required=False, label="Test")
    reserve = forms.FloatField(initial=0.0, min_value=0, max_value=1, required=False, label="Reserve")
    more_splits = NumbersField(required=False, label="Other splits", help_text="For example holdout=0.05, probe=0.05")
    seed = forms.IntegerField(initial=0, min_value=0)
    group_by = forms.ChoiceField(choices=GROUPS, label="Keep together")
    sources = forms.MultipleChoiceField(
        choices=SOURCES,
        initial=["duels", "scenarios", "decisions"],
        label="Preferences and rows to avoid from",
        widget=forms.CheckboxSelectMultiple,
    )
    near_duplicates = forms.FloatField(
        required=False,
        initial=0.85,
        min_value=0.5,
        max_value=1,
        label="Near duplicates from",
        help_text="Part of the three-word sequences that two texts share. Empty: only exact duplicates are left out.",
    )
    contaminated = forms.ChoiceField(required=False, choices=CONTAMINATED, label="Contaminated samples")
    guarantees = forms.ChoiceField(
        required=False,
        choices=GUARANTEES,
        label="Samples approved under a guarantee",
        help_text="Nobody looked at them.",
    )
    step_labels = forms.ChoiceField(
        required=False,
        choices=STEP_LABELS,
        label="Labels of steps",
        help_text="Of stepwise rows. A person's label counts before a value.",
    )
    caps = NumbersField(
        required=False,
        label="Limits per value",
        help_text="Samples of one value, the best first, such as repo=50, task=20. Also source, model, any axis.",
    )
    max_tokens = forms.IntegerField(
        required=False, min_value=1, label="Longest row", help_text="Tokens, estimated as characters ÷ 4."
    )
    chat_template = forms.ChoiceField(
        required=False, label="Chat template", help_text="Rows are tried against it before the export."
    )
    template_text = forms.CharField(
        required=False,
        max_length=LONGEST_TEMPLATE,
        label="or the text of a template",
        widget=forms.Textarea(attrs={"rows": 4, "class": "mono", "spellcheck": "false"}),
    )
    template_file = forms.FileField(required=False, label="or a Jinja file", help_text="Replaces the text.")
    template_failures = forms.ChoiceField(required=False, choices=FAILURES, label="Rows that fail in the template")
    metadata = forms.BooleanField(required=False, label="Metadata in each row")
    reasoning = forms.ChoiceField(required=False, choices=REASONING, label="Models' reasoning")
    gzip = forms.BooleanField(required=False, label="Compress data files (gzip)")
    parquet = forms.BooleanField(required=False, label="Parquet instead of lines of JSON")

    def __init__(self, project: Project, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._project = project
        self._views = {str(view.pk): view for view in SavedView.objects.filter(project=project, list="samples")}
        choices = [("", "none"), *((pk, view.name) for pk, view in self._views.items())]
        self.fields["view"] = forms.ChoiceField(
            choices=choices, required=False, label="Saved view", help_text="Replaces the filter below."
        )
        self.fields["held_out"] = forms.MultipleChoiceField(
            required=False,
            choices=held_out_choices(project),
            label="Compare with held-out sets",
            help_text="Held-out rows of uploaded sets and of earlier exports.",
            widget=forms.SelectMultiple(attrs={"size": 4}),
        )
        known = ((name, name.replace("_", " ")) for name in reference_templates())
        names = [("", "the project's"), (NONE, "none"), *known]
        cast(forms.ChoiceField, self.fields["chat_template"]).choices = names
        formats_url = reverse("export-formats", args=[project.slug])
        self.fields["trainer"].widget.attrs |= {"hx-get": formats_url, "hx-target": "#formats"}
        for name in (*SPLITS, "near_duplicates"):
            self.fields[name].widget.attrs["step"] = "any"

    def clean_template_file(self) -> str:
        file = self.cleaned_data["template_file"]
        if file and file.size > LONGEST_TEMPLATE:
            raise forms.ValidationError(f"The file has more than {LONGEST_TEMPLATE:,} bytes.")
        try:
            return str(file.read().decode()) if file else ""
        except UnicodeDecodeError:
            raise forms.ValidationError("The file is not text in UTF-8.") from None

    def check(self) -> None:
        self._read(unknown={_PARTS_OF.get(name, name) for name in self.errors})

    def recipe(self, *, to_export: bool = True) -> Recipe | None:
        """Return the recipe, or None with each error at its field. One that is not `to_export` may match nothing."""
        if self.is_valid():
            with self.shows_problem():
                return self._read() if to_export else read_recipe(self._document(()))
        return None

    def _read(self, *, unknown: Collection[str] = ()) -> Recipe:
        return recipe_to_export(self._project, self._document(unknown), unknown=unknown)

    def _place(self, path: str) -> str:
        return "train" if path.partition(".")[0] == "splits" else super()._place(path)

    def _document(self, unknown: Collection[str]) -> dict[str, object]:
        """The recipe without the fields that are `unknown`."""
        given = self.cleaned_data
        document = {name: given[name] for name in (*_SAME, "caps") if name in given}
        document |= {name: given[name] for name in (*_CHOSEN, "max_tokens") if given.get(name)}
        if text := given.get("template_file") or given.get("template_text"):
            document["chat_template"] = text
        if "splits" not in unknown:
            document["splits"] = {name: given[name] for name in SPLITS if given[name]} | given["more_splits"]
        if "filter" not in unknown:
            document["filter"] = self._filter()
        return document

    def _filter(self) -> SampleFilter:
        given = self.cleaned_data
        chosen = self._views.get(given["view"])
        if chosen is None:
            return SampleFilter.from_json(given["filter"])
        try:
            return SampleFilter.from_query(QueryDict(chosen.query), ignore=SampleList.beside)
        except Problem as problem:
            errors = [FieldError("view", f"“{error.path}”: {error.message}") for error in problem.errors]
            raise Invalid(problem.detail, errors=errors) from None


def initial_of(recipe: Recipe) -> dict[str, object]:
    values: dict[str, object] = recipe.model_dump(include={*_SAME, *_CHOSEN})
    if recipe.chat_template not in ("", NONE, *reference_templates()):
        values |= {"chat_template": "", "template_text": recipe.chat_template}
    values |= {name: recipe.splits.get(name, 0.0) for name in SPLITS}
    more = {name: share for name, share in recipe.splits.items() if name not in SPLITS}
    values |= {"more_splits": as_words(more), "caps": as_words(recipe.caps)}
    return values | {"max_tokens": recipe.max_tokens, **recipe.model_dump(include={"filter"})}
