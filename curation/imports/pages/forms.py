"""The form of an import: a file or a source, what its rows are, and how to take them."""

from django import forms

from curation.imports.kinds import ImportParams
from curation.imports.row_kinds import import_kinds
from curation.imports.sources.stored import store_upload
from curation.projects.models import Project

SAMPLING = ("count", "seed", "windows", "window_size", "turns_per_row")


class ImportForm(forms.Form):
    """`upload` carries the key of a file that a preview has stored already."""

    kind = forms.ChoiceField(label="Rows are")
    file = forms.FileField(
        required=False,
        label="File",
        help_text="JSON lines, a JSON array (both may be gzipped), a ZIP of JSON files, or Parquet.",
    )
    source = forms.CharField(
        required=False,
        max_length=2000,
        label="or source",
        help_text="https://, hf://datasets/owner/name/file.parquet, or a path that the operator allows.",
    )
    name = forms.CharField(required=False, max_length=180, help_text="What the source is called; empty: the file's.")
    count = forms.IntegerField(required=False, min_value=1, label="Turns to sample", help_text="Empty takes all.")
    seed = forms.IntegerField(required=False, min_value=0, help_text="The same seed and source give the same turns.")
    windows = forms.IntegerField(required=False, min_value=1, label="Windows", help_text="64 unless given.")
    window_size = forms.IntegerField(
        required=False, min_value=1, label="Rows in a window", help_text="32 unless given."
    )
    turns_per_row = forms.IntegerField(required=False, min_value=1, label="Most turns of a row")
    strict = forms.BooleanField(required=False, label="All rows or none", help_text="One bad row, and nothing goes in.")
    upload = forms.CharField(required=False, max_length=300, widget=forms.HiddenInput)

    def __init__(self, *args: object, **values: object) -> None:
        super().__init__(*args, **values)  # type: ignore[arg-type]  # handed on as they are
        kind = self.fields["kind"]
        assert isinstance(kind, forms.ChoiceField)  # noqa: S101 - tells mypy what stands above
        kind.choices = [(found.name, f"{found.title}: {found.columns}") for found in import_kinds()]

    def asked(self, project: Project) -> ImportParams:
        """What the valid form asks for; a new file is stored and goes before an earlier one. Raises a `Problem`."""
        given = self.cleaned_data
        upload = "" if given["source"] else given["upload"]
        if given["file"]:
            upload = store_upload(project=project, file=given["file"], name=given["name"] or given["file"].name)
        return ImportParams(
            kind=given["kind"],
            upload=upload,
            source=given["source"],
            name=given["name"],
            options={name: given[name] for name in SAMPLING if given[name] is not None},
            strict=given["strict"],
        )
