from typing import Any, cast

from django import forms
from pydantic import ValidationError

from curation.imports.kinds import ImportParams, require_one_source
from curation.imports.layouts.rows.mapping import RowMapping
from curation.imports.mappings import MappingIn
from curation.imports.models import SavedMapping
from curation.imports.row_kinds import import_kind, import_kinds, with_saved_mapping
from curation.imports.sources.allowed_sources import locate
from curation.imports.sources.stored import store_upload
from curation.projects.models import Project
from curation.runs.models import Run
from curation.web.forms import JsonField, ProblemForm
from curation.web.problems import Invalid
from curation.web.refusals import all_checks

SAMPLING = ("count", "seed", "windows", "window_size", "turns_per_row")
# Options that the form has for the kinds that know them.
OWN = ("keep_all", "decisions", "trained")
# What begins the names of the inputs of a mapping: those of a column, a role and a value of the outcome.
_OF_THE_FILE = frozenset({"file", "upload", "loaded", "source", "kind", "name"})
COLUMN, ROLE, OUTCOME = "column:", "role:", "outcome:"


def _kinds() -> list[tuple[str, str]]:
    recognised = ("", "Detect from the file")
    return [recognised, *((kind.name, f"{kind.title}: {kind.columns}") for kind in import_kinds())]


def again_from(run: Run) -> dict[str, Any]:
    """The form's values for an earlier import; its file is still stored."""
    options = run.params.get("options", {})
    return {**run.params, **options, **options.get("mapping", {}), "mapping": ""}


class ImportForm(ProblemForm):
    """`upload` is the storage key of a file that a preview has stored. `loaded` is the saved mapping whose values the
    inputs have, which are named by what they map: `column:resolved`."""

    path_prefix = "options."
    loaded = forms.CharField(required=False, widget=forms.HiddenInput)
    mapping = forms.ChoiceField(
        required=False, label="Saved mapping", help_text="Or map columns in the preview.", choices=[("", "none")]
    )
    messages = forms.CharField(
        required=False,
        label="Path to the messages",
        help_text="Where rows have their list of messages, if it is not found: episode.log",
    )
    save_as = forms.CharField(required=False, label="Save this mapping as", max_length=100)
    tools = JsonField(
        of=list,
        required=False,
        label="Tools",
        help_text="Definitions of tools as JSON, for sessions that have none. Exported rows declare them.",
    )
    kind = forms.ChoiceField(required=False, label="Kind of rows", choices=_kinds)
    file = forms.FileField(
        required=False,
        label="File",
        help_text="JSON lines, a JSON array or CSV (also packed), a ZIP or tar of files, an Inspect log (.eval, .json),"
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
        choices=[
            ("", "as usual for the kind"),
            ("marked", "those that the file marks"),
            ("all", "all, where the file marks none"),
        ],
        help_text="Usual are all steps of a trajectory, and of a sample the message that is reviewed.",
    )
    strict = forms.BooleanField(required=False, label="All rows or none", help_text="One bad row stops the import.")
    upload = forms.CharField(required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._project = project
        names = SavedMapping.objects.filter(project=project).values_list("name", flat=True)
        mapping = cast(forms.ChoiceField, self.fields["mapping"])
        mapping.choices = [("", "none"), *((name, name) for name in names)]

    @property
    def has_options(self) -> bool:
        """Whether a field beside the file's has a value or an error."""
        return any(self[name].value() or self[name].errors for name in self.fields if name not in _OF_THE_FILE)

    def check(self) -> None:
        """The file is read once the form is valid."""
        given = self.cleaned_data
        with all_checks() as check:
            with check():
                if kind := given.get("kind"):
                    import_kind(kind).read_options(self.options(kind), self._project)
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
        fields = {name: self.cleaned_data[name] for name in ("source", "name", "strict")}
        return ImportParams.parse({**fields, "kind": kind, "upload": upload, "options": self.options(kind)})

    def options(self, kind: str) -> dict[str, Any]:
        given = self.cleaned_data
        options = {name: value for name in SAMPLING if (value := given.get(name)) is not None}
        known = import_kind(kind).options.model_fields if kind else ()
        options |= {name: value for name in OWN if name in known and (value := given.get(name))}
        more = {"mapping": self.given_mapping(), "tools": given.get("tools")}
        return options | {name: value for name, value in more.items() if value}

    def given_mapping(self) -> dict[str, Any] | str:
        """The mapping of the inputs, or the name of a saved one that was chosen after they were shown."""
        name = self.cleaned_data.get("mapping") or ""
        if name and name != self.cleaned_data.get("loaded"):
            return str(name)
        parts = {"columns": COLUMN, "roles": ROLE, "outcomes": OUTCOME}
        mapping: dict[str, Any] = {part: self._inputs(prefix) for part, prefix in parts.items()}
        mapping["messages"] = self.cleaned_data.get("messages")
        return {part: value for part, value in mapping.items() if value}

    def kept_mapping(self) -> RowMapping | None:
        """The mapping of the inputs, for a page that is shown again without a preview."""
        self.is_valid()
        given = self.given_mapping()
        try:
            return RowMapping.model_validate(given) if given and isinstance(given, dict) else None
        except ValidationError:
            return None

    def mapping_to_save(self, project: Project) -> MappingIn:
        """The mapping of the form, with its tools, under the name of `save_as`. Raises `Invalid`."""
        mapping = with_saved_mapping({"mapping": self.given_mapping()}, project)["mapping"]
        given = {"tools": self.cleaned_data["tools"], **mapping, "name": self.cleaned_data["save_as"]}
        try:
            return MappingIn.model_validate(given)
        except ValidationError as error:
            raise Invalid.of(error) from None

    def _inputs(self, prefix: str) -> dict[str, str]:
        """The values of the inputs whose names begin so, by the rest of these names."""
        return {
            name.removeprefix(prefix): value for name, value in self.data.items() if value and name.startswith(prefix)
        }
