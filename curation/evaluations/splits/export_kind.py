"""The run kind `split`: a split from one of an export's files."""

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field

from curation.evaluations.splits.import_rows import EvalRowKind
from curation.exports.models import Export, ExportFile
from curation.imports.kinds import ImportParams, ImportStage
from curation.projects.models import Project
from curation.runs.kinds import Json, Kind, Stage
from curation.runs.models import Run
from curation.web.ids import find_param
from curation.web.problems import FieldError, Invalid

MESSAGES = "sft-messages"


class SplitParams(BaseModel):
    """`export` is an export's id, `split` one of its splits; the rows are those of its `sft-messages` file."""

    model_config = ConfigDict(extra="forbid", coerce_numbers_to_str=True)

    export: str = Field(examples=["12"])
    split: str = Field("val", max_length=20, examples=["val"])
    name: str = Field("", max_length=180)
    upload: str = Field("", max_length=300, description="Set at launch: the key of that file in storage.")


def export_file(project: Project, export_id: str, split: str) -> ExportFile:
    """The export's `sft-messages` file of that split; `Invalid` lists the splits that exist."""
    export = find_param(Export.objects.of(project), export_id, "export", "params.export")
    files = [file for file in export.files.all() if file.format == MESSAGES]
    for file in files:
        if file.split == split:
            return file
    existing = ", ".join(sorted(file.split for file in files)) or "no file of that format"
    raise Invalid(
        f"Export {export.pk} has no {MESSAGES} file of the split {split!r}; it has {existing}.",
        errors=[FieldError("params.split", f"one of {existing}")],
    )


class SplitRun(Kind[SplitParams]):
    name = "split"
    title = "Split from an export"
    params = SplitParams
    launch_page = "split-list"

    def stages(self, params: SplitParams) -> Sequence[Stage]:
        return [ImportStage(ImportParams(kind=EvalRowKind.name, upload=params.upload, name=params.name))]

    def check(self, project: Project, params: SplitParams) -> None:
        file = export_file(project, params.export, params.split)
        # The file is decided at launch; a run's parameters are never trusted to name a file in storage.
        params.upload = file.stored_as
        params.name = params.name or f"export {file.export_id}: {params.split}"

    def begin(self, run: Run, params: SplitParams) -> Json:
        return {"rows": 0, "bad_rows": 0, **EvalRowKind().begin(run)}
