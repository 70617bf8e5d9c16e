"""The run kind `split`: a split from one of an export's files."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from django.urls import reverse
from pydantic import ConfigDict, Field

from curation.evaluations.models import Split, SplitRow
from curation.evaluations.splits.import_rows import EvalRowKind
from curation.evaluations.splits.origins import samples_of_file
from curation.evaluations.splits.rows import LONGEST_LABEL
from curation.exports.files.write import FROZEN
from curation.exports.models import Export, ExportFile, export_choices
from curation.imports.kinds import ImportParams, ImportStage
from curation.projects.models import Project
from curation.runs.kinds import Json, Kind, Pipeline, PlannedItem, Preset, RunFact, Stage, StageOf, WorkContext, Write
from curation.runs.models import Item, Run
from curation.samples.models import Sample
from curation.web.ids import find_param
from curation.web.problems import FieldError, Invalid
from curation.web.schemas import StrictModel
from curation.web.text.figures import counted

MESSAGES, TRAIN = "sft-messages", "train"
CHUNK = 500


class SplitIn(StrictModel):
    """A split from the `sft-messages` file of an export. Import files with `POST …/imports` and `kind=eval_rows`."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    export: str = Field(examples=["12"], description="The export's id.")
    split: str = Field("val", max_length=20, examples=["val"], description="Which split of the export.")
    name: str = Field(
        "", max_length=180, examples=["held-out turns"], description="Empty for the names of the export and its split."
    )


class SplitParams(SplitIn):
    upload: str = Field("", max_length=300, description="Set at launch: the key of that file in storage.")
    frozen: str = Field("", max_length=300, description="Set at launch: the key of the export's `frozen.jsonl`.")


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


class GroupStage(StageOf[SplitParams]):
    """Give each row the groups of the sample that it came from, with `metadata` in the export's rows or without."""

    name = "groups"
    queue = "default"

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        yield PlannedItem("groups")

    def work(self, context: WorkContext, item: Item) -> Write:
        split = Split.objects.get(run=context.run)
        rows = enumerate(samples_of_file(self._params.frozen, MESSAGES, self._params.split))
        while chunk := dict(islice(rows, CHUNK)):
            context.checkpoint()
            samples = Sample.objects.in_bulk(list(chunk.values()))
            found = list(SplitRow.objects.filter(split=split, number__gte=min(chunk), number__lte=max(chunk)))
            for row in found:
                if (sample := samples.get(chunk[row.number])) is not None:
                    tier = sample.axes.get("tier", sample.axes.get("difficulty", ""))
                    row.task_id = sample.instance_id or f"sample {sample.pk}"
                    row.repo, row.source = sample.repo, row.source or sample.source[:LONGEST_LABEL]
                    row.tier = row.tier or str(tier)[:LONGEST_LABEL]
            SplitRow.objects.bulk_update(found, ["task_id", "repo", "source", "tier"])
        return dict


class SplitRun(Kind[SplitParams]):
    name = "split"
    title = "Split from an export"
    pipeline = Pipeline.EVALUATION
    summary = "Makes the held-out rows of an export a split."
    tells_of_samples = False
    params = SplitParams
    set_at_launch = frozenset({"upload", "frozen"})

    def stages(self, params: SplitParams) -> Sequence[Stage]:
        file = ImportParams(kind=EvalRowKind.name, upload=params.upload, name=params.name)
        return [ImportStage(file), GroupStage(params)] if params.frozen else [ImportStage(file)]

    def check(self, project: Project, params: SplitParams) -> None:
        file = export_file(project, params.export, params.split)
        # The file is decided at launch; a run's parameters are never trusted to name a file in storage.
        params.upload = file.stored_as
        frozen = ExportFile.objects.filter(export=file.export_id, name=FROZEN).first()
        params.frozen = frozen.stored_as if frozen else ""
        params.name = params.name or f"export {file.export_id}: {params.split}"

    def choices(self, project: Project) -> Mapping[str, Sequence[tuple[str, str]]]:
        files = ExportFile.objects.filter(export__in=Export.objects.of(project), format=MESSAGES)
        names = files.order_by("split").values_list("split", flat=True).distinct()
        return {"export": export_choices(project), "split": [(name, name) for name in names]}

    def presets(self, project: Project) -> Mapping[str, Preset]:
        """The newest export that holds rows back, and the first split of it that is not for training."""
        files = ExportFile.objects.filter(export__in=Export.objects.of(project).filter(ready=True), format=MESSAGES)
        held = files.exclude(split=TRAIN).order_by("-export", "-split").first()
        newest = held or files.order_by("-export").first()
        if newest is None:
            return {}
        return {
            "export": Preset(str(newest.export_id), f"Its rows are those of its {MESSAGES} file."),
            "split": Preset(newest.split, "The split of the export whose rows it takes."),
        }

    def conclude(self, run: Run) -> str:
        rows, bad = run.result.get("rows", 0), run.result.get("bad_rows", 0)
        return f"A split of {counted(rows - bad, 'row')}{f'; {bad:,} could not be read' if bad else ''}."

    def results(self, run: Run) -> Sequence[RunFact]:
        url = reverse("split-page", args=[run.project.slug, run.result["split"]]) if "split" in run.result else ""
        return [
            RunFact("Split", run.params.get("name") or "split", url),
            RunFact("Rows", f"{run.result.get('rows', 0):,}"),
        ]

    def next_steps(self, run: Run) -> Sequence[tuple[str, str]]:
        return EvalRowKind().links(run)

    def begin(self, run: Run, params: SplitParams) -> Json:
        return {"rows": 0, "bad_rows": 0, **EvalRowKind().begin(run)}
