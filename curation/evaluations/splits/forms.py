"""The form that makes a split from an export, and the choices that forms of evaluations share."""

from collections.abc import Iterable
from typing import Any

from django import forms

from curation.evaluations.models import Split
from curation.exports.models import Export
from curation.projects.models import Project
from curation.web.text.figures import counted

SHOWN = 200
NONE = ("", "–")
Choices = list[tuple[str, str]]


class SplitForm(forms.Form):
    """A split from one of an export's files."""

    export = forms.ChoiceField(label="Export")
    split = forms.ChoiceField(
        choices=[("val", "val"), ("reserve", "reserve"), ("train", "train")], label="Split of the export"
    )
    name = forms.CharField(required=False, max_length=180, label="Name")

    def __init__(self, project: Project, *args: Any, **values: Any) -> None:
        super().__init__(*args, **values)
        set_choices(self, "export", export_choices(project))


def set_choices(form: forms.Form, name: str, choices: Iterable[tuple[str, str]]) -> None:
    field = form.fields[name]
    if not isinstance(field, forms.ChoiceField):
        raise TypeError(f"{name} has no choices")
    field.choices = list(choices)


def export_choices(project: Project) -> Choices:
    exports = Export.objects.of(project).filter(ready=True).order_by("-id")[:SHOWN]
    return [(str(export.pk), f"Export {export.pk} {export.recipe_name}") for export in exports]


def split_choices(project: Project) -> Choices:
    splits = Split.objects.of(project).order_by("-id")[:SHOWN]
    return [(str(split.pk), f"{split.name}, {counted(split.rows_count, 'row')} ({split.pk})") for split in splits]
