"""The form of an import: a file or a source, the kind of its rows, and how to sample them."""

from typing import Any

from django import forms

from curation.imports.kinds import ImportParams, require_one_source
from curation.imports.row_kinds import import_kind, import_kinds
from curation.imports.sources.allowed_sources import locate
from curation.imports.sources.stored import store_upload
from curation.projects.models import Project
from curation.runs.models import Run
from curation.web.forms import ProblemForm
from curation.web.refusals import all_checks

SAMPLING = ("count", "seed", "windows", "window_size", "turns_per_row")


def _kinds() -> list[tuple[str, str]]:
    recognised = ("", "Detect from the file")
    return [recognised, *((kind.name, f"{kind.title}: {kind.columns}") for kind in import_kinds())]


def again_from(run: Run) -> dict[str, Any]:
    """The form's values for an earlier import; its file is still stored."""
    return {**run.params, **run.params.get("options", {})}


class ImportForm(ProblemForm):
    """`upload` is the storage key of a file that a preview has stored."""

    path_prefix = "options."
    kind = forms.ChoiceField(required=False, label="Kind of rows", choices=_kinds)
    file = forms.FileField(
        required=False,
        label="File",
        help_text="JSON lines or a JSON array (also packed), a ZIP or tar of files, an Inspect log (.eval, .json),"
        " traces as JSON, or Parquet.",
    )
    source = forms.CharField(
        required=False,
        label="Or a source",
        help_text="https://…, hf://datasets/owner/name/file.parquet, or a path that the operator of the server allows.",
    )
    name = forms.CharField(required=False, help_text="Name of the source. Leave empty for the file's name.")
    count = forms.IntegerField(required=False, label="Turns to sample", help_text="Empty imports all turns.")
    seed = forms.IntegerField(required=False, help_text="The same seed and source give the same turns.")
    windows = forms.IntegerField(
        required=False, label="Windows", help_text="Rows are read from this many places of the file. Empty: 64."
    )
    window_size = forms.IntegerField(required=False, label="Rows per window", help_text="Empty: 32.")
    turns_per_row = forms.IntegerField(required=False, label="Most turns per row")
    keep_all = forms.BooleanField(
        required=False,
        label="Keep all records",
        help_text="Also pull-request records of instances without a prompt.",
    )
    decisions = forms.BooleanField(
        required=False,
        label="Take over the decisions in the file",
        help_text="Approvals, labels and preferences of the file become your decisions, and the log says so. Without"
        " this, every imported sample is pending.",
    )
    trained = forms.ChoiceField(
        required=False,
        label="Train on earlier assistant messages",
        choices=[("", "those that the file marks"), ("all", "all, where the file marks none")],
        help_text="A sample's last message is always the one that is reviewed and trained on.",
    )
    strict = forms.BooleanField(required=False, label="All rows or none", help_text="One bad row stops the import.")
    upload = forms.CharField(required=False, widget=forms.HiddenInput)

    def check(self) -> None:
        """The file is read once the form is valid."""
        given = self.cleaned_data
        with all_checks() as check:
            with check():
                if kind := given.get("kind"):
                    import_kind(kind).read_options(self.options(kind))
            with check():
                has_file = bool(given.get("file") or given.get("upload"))
                if not self.errors.keys() & {"file", "source"}:
                    require_one_source(has_file=has_file, source=given["source"])
                if given.get("source") and not has_file:
                    locate(given["source"])

    def stored(self, project: Project) -> str:
        """The storage key of the file; a new file is stored and replaces an earlier upload. Empty for a source."""
        given = self.cleaned_data
        if given["file"]:
            return store_upload(project=project, file=given["file"], name=given["name"] or given["file"].name)
        return "" if given["source"] else str(given["upload"])

    def params(self, upload: str, kind: str) -> ImportParams:
        """The import of rows of this kind that the valid form describes."""
        fields = {name: self.cleaned_data[name] for name in ("source", "name", "strict")}
        return ImportParams.parse({**fields, "kind": kind, "upload": upload, "options": self.options(kind)})

    def options(self, kind: str) -> dict[str, Any]:
        """The valid options that rows of this kind have."""
        given = self.cleaned_data
        options = {name: value for name in SAMPLING if (value := given.get(name)) is not None}
        if given.get("keep_all") and kind == "pr_records":
            options["keep_all"] = True
        if kind == "samples":
            options |= {name: value for name in ("decisions", "trained") if (value := given.get(name))}
        return options
