from typing import Any

from django import forms

from curation.evaluations.models import Split
from curation.evaluations.splits.forms import NONE, set_choices, split_choices
from curation.exports.models import export_choices
from curation.imports.sources.stored import store_upload
from curation.runs.kinds import Json
from curation.web.forms import ProblemForm


class CheckForm(ProblemForm):
    """The training data to compare the split with: one of the three."""

    path_prefix = "params."

    file = forms.FileField(
        required=False,
        label="Training file",
        help_text="JSON lines, JSON array, gzip or Parquet, in any layout that trainers read.",
    )
    export = forms.ChoiceField(required=False, label="or an export's train files")
    training_split = forms.ChoiceField(required=False, label="or another split")

    def __init__(self, split: Split, *args: Any, **values: Any) -> None:
        super().__init__(*args, **values)
        self._split = split
        others = [(pk, label) for pk, label in split_choices(split.project) if pk != str(split.pk)]
        set_choices(self, "export", [NONE, *export_choices(split.project)])
        set_choices(self, "training_split", [NONE, *others])

    def _place(self, path: str) -> str:
        """The error of a stored upload belongs to its file."""
        return "file" if path == "upload" else super()._place(path)

    def params(self) -> Json:
        """The parameters of a valid form; an uploaded file is stored."""
        given = self.cleaned_data
        params: Json = {"split": str(self._split.pk), "export": given["export"]}
        params["training_split"] = given["training_split"]
        if given["file"]:
            params["upload"] = store_upload(project=self._split.project, file=given["file"], name=given["file"].name)
        return params
