"""The run kind `export`: freeze the samples that match the recipe, then write them."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from django.urls import reverse
from pydantic import Field

from curation.exports.files.write import WrittenFiles, write
from curation.exports.hygiene.embed import EmbedStage
from curation.exports.hygiene.held_out import find_held_out
from curation.exports.hygiene.plan import export_tasks, plan_export, store_plan
from curation.exports.models import Export, ExportFile, FrozenRow
from curation.exports.recipes.recipe import Recipe, recipe_errors, resolve_recipe
from curation.exports.rows.chat_template import check_template
from curation.exports.rows.freeze import freeze
from curation.exports.rows.skip_reasons import SkipReason
from curation.projects.models import Project, Scope
from curation.runs.calls.targets import targets_named
from curation.runs.kinds import (
    Estimate,
    ItemFailed,
    Json,
    Kind,
    Pipeline,
    PlannedItem,
    RunFact,
    Stage,
    WorkContext,
    Write,
)
from curation.runs.models import Item, Run
from curation.web.ids import IdList
from curation.web.problems import Invalid
from curation.web.refusals import all_checks, read_partly
from curation.web.schemas import StrictModel
from curation.web.text.figures import counted
from curation.webhooks.emit import emit
from curation.webhooks.models import WebhookEvent
from judging.chat_template.template import TemplateRefused

SKIPPED_AT_ONCE = 10_000


class ExportParams(StrictModel):
    recipe: Recipe | str = Field(description="A recipe, or the name of a saved one.")
    embedding: str = Field(
        "",
        max_length=60,
        description="Set at launch, if the recipe names held-out sets: the endpoint of the project's settings.",
    )


class _OneItem:
    """A stage of one item."""

    name: str
    queue = "default"

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        yield PlannedItem(key=self.name)


class FreezeStage(_OneItem):
    name = "freeze"

    def work(self, context: WorkContext, item: Item) -> Write:
        export = _export_of(item.run_id)

        def frozen() -> Json:
            samples = freeze(export=export)
            Export.objects.filter(pk=export.pk).update(counts={"samples": samples, "written": 0})
            return {"samples": samples}

        return frozen


class PlanStage(_OneItem):
    name = "plan"

    def __init__(self, *, embedded: bool) -> None:
        self._embedded = embedded

    def work(self, context: WorkContext, item: Item) -> Write:
        export = _export_of(item.run_id)
        try:
            found = plan_export(export=export, embedded=self._embedded, checkpoint=context.checkpoint)
        except Invalid as error:  # a held-out set that was deleted or cannot be read
            raise ItemFailed(error.detail) from None

        def planned() -> Json:
            store_plan(export=export, plan=found)
            return {"duplicates": len(found.duplicates), "over_cap": len(found.over_caps), **found.as_json()}

        return planned


class WriteStage(_OneItem):
    name = "write"

    def work(self, context: WorkContext, item: Item) -> Write:
        export = _export_of(item.run_id)
        try:
            written = write(export=export, checkpoint=context.checkpoint)
        except (Invalid, TemplateRefused) as error:  # a chat template that this worker does not have or cannot read
            raise ItemFailed(str(error)) from None
        return lambda: _publish(export, written)


def _export_of(run_id: int) -> Export:
    return Export.objects.select_related("project", "run").get(run_id=run_id)


def _publish(export: Export, written: WrittenFiles) -> Json:
    """Publish the files, in the transaction that ends the item."""
    ExportFile.objects.filter(export=export).delete()
    ExportFile.objects.bulk_create(written.files)
    frozen = FrozenRow.objects.filter(export=export)
    frozen.filter(skipped=True).update(skipped=False)  # by an attempt before
    for start in range(0, len(written.skipped), SKIPPED_AT_ONCE):
        ids = written.skipped[start : start + SKIPPED_AT_ONCE]
        frozen.filter(sample_id__in=IdList(list(ids))).update(skipped=True)
    Export.objects.filter(pk=export.pk).update(
        ready=True, counts=written.counts, examples=written.examples, manifest_sha256=written.manifest_sha256
    )
    figures = {"export": str(export.pk), "counts": written.counts, "manifest_sha256": written.manifest_sha256}
    emit(export.project, WebhookEvent.EXPORT_READY, figures)
    return {"files": len(written.files), "bytes": sum(file.bytes for file in written.files)}


def check_recipe(project: Project, recipe: Recipe) -> None:
    """Raise `Invalid` if the recipe names something that the project does not have, or its filter matches nothing."""
    with all_checks() as check:
        with check():
            if not recipe.filter.is_empty() and not recipe.samples(project).exists():
                detail = "0 samples match this filter, so there is nothing to export. Change it or approve samples."
                raise Invalid.at("recipe.filter", detail, code="no_samples")
        with check():
            find_held_out(project, recipe.held_out)
        with check():
            check_template(project, recipe)


def recipe_to_export(project: Project, document: Mapping[str, object], *, unknown: Collection[str] = ()) -> Recipe:
    """Return the recipe in a document from outside. Raises `Invalid` with all that an export of it would refuse;
    `unknown` are fields that a form has refused."""
    recipe, error = read_partly(Recipe, document, unknown=unknown)
    with all_checks() as check:
        with check():
            if error is not None:
                raise recipe_errors(error)
        with check():
            check_recipe(project, recipe)
    return recipe


class ExportRun(Kind[ExportParams]):
    name = "export"
    title = "Export"
    pipeline = Pipeline.EXPORT
    summary = "Writes approved samples as files for trainers."
    params = ExportParams
    feeds_others = False
    scope = Scope.EXPORT
    launch_page = "export-new"
    set_at_launch = frozenset({"embedding"})

    def stages(self, params: ExportParams) -> Sequence[Stage]:
        embed = [EmbedStage(params.embedding, lambda run: export_tasks(_export_of(run.pk)))] if params.embedding else []
        return (FreezeStage(), *embed, PlanStage(embedded=bool(embed)), WriteStage())

    def check(self, project: Project, params: ExportParams) -> None:
        recipe = resolve_recipe(project, params.recipe)
        with all_checks() as check:
            with check():
                check_recipe(project, recipe)
            with check():
                params.embedding = project.settings.evaluation.embedding if recipe.held_out else ""
                if params.embedding:
                    targets_named(project, [params.embedding], "embedding")

    def estimate(self, project: Project, params: ExportParams) -> Estimate:
        if params.embedding:
            notes = "Tasks of samples and of held-out rows are embedded, to find paraphrases."
            return Estimate(cost=None, notes=(notes,))
        return Estimate(items=3, notes=("An export calls no model.",))

    def begin(self, run: Run, params: ExportParams) -> Json:
        recipe = resolve_recipe(run.project, params.recipe)
        export = Export.objects.create(
            project=run.project,
            run=run,
            recipe=recipe.model_dump(mode="json"),
            recipe_name=params.recipe if isinstance(params.recipe, str) else "",
        )
        return {"export": str(export.pk)}

    def form_url(self, project: Project, again: Run | None = None) -> str:
        url = reverse(self.launch_page, args=[project.slug])
        return f"{url}?from={again.result['export']}" if again is not None and "export" in again.result else url

    def conclude(self, run: Run) -> str:
        counts = run.result.get("counts", {})
        exported, samples = counts.get("exported", 0), counts.get("samples", 0)
        return f"{exported:,} of {counted(samples, 'sample')} {'is' if exported == 1 else 'are'} exported."

    def results(self, run: Run) -> Sequence[RunFact]:
        counts = run.result.get("counts", {})
        rows = [
            RunFact(f"Rows of {name}", ", ".join(f"{split} {number:,}" for split, number in sorted(by_split.items())))
            for name, by_split in sorted(counts.get("rows", {}).items())
        ]
        skipped = [
            RunFact(f"Left out: {SkipReason(code).label}", counted(number, "sample"))
            for code, number in counts.get("excluded", {}).items()
        ]
        warnings = [RunFact("Check before you train", text) for text in counts.get("warnings", [])]
        url = reverse("export-page", args=[run.project.slug, run.result["export"]]) if "export" in run.result else ""
        return [RunFact("Export", f"Export {run.result.get('export', '–')}", url), *warnings, *rows, *skipped]

    def next_steps(self, run: Run) -> Sequence[tuple[str, str]]:
        slug, export = run.project.slug, run.result.get("export")
        opened = [("Open the export", reverse("export-page", args=[slug, export]))] if export else []
        return [*opened, ("Evaluate a model", reverse("evaluation-new", args=[slug]))]

    def finish(self, run: Run, params: ExportParams) -> Json:
        export = Export.objects.get(run=run)
        return {"export": str(export.pk), "counts": export.counts, "manifest_sha256": export.manifest_sha256}
