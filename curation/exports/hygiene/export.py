"""The plan of an export: made from its frozen samples, and stored with them."""

from collections.abc import Callable
from itertools import islice

from django.db.models import Q

from curation.exports.hygiene.contamination import HeldOutSets
from curation.exports.hygiene.embed import EmbeddedTasks, paraphrases
from curation.exports.hygiene.held_out import find_held_out, read_messages
from curation.exports.hygiene.plan import ExportPlan, make_plan
from curation.exports.models import ContaminatedSample, Export, FrozenRow
from curation.exports.recipes.recipe import Recipe
from curation.exports.rows.filter import ExportFilter
from curation.exports.rows.freeze import frozen_chunks, frozen_samples
from curation.web.text.storable import storable
from judging.contamination.rows import opening_of

_AT_ONCE = 500


def plan_export(*, export: Export, embedded: bool, checkpoint: Callable[[], None]) -> ExportPlan:
    """Return the plan for the frozen samples of an export. `embedded`: its run has embeddings of all tasks."""
    recipe = Recipe.model_validate(export.recipe)
    export_filter = ExportFilter(export.project, recipe, export)
    held_out = HeldOutSets.of(export.project, recipe)
    if embedded:
        held_out.paraphrases = paraphrases(export.run, export_tasks(export))
    return make_plan(
        (export_filter.accepted(chunk) for chunk in frozen_chunks(export)),
        recipe,
        held_out=held_out,
        apply=export_filter.apply,
        read_lines=lambda ids: export_filter.lines_of(frozen_samples(export, ids)),
        checkpoint=checkpoint,
    )


def export_tasks(export: Export) -> EmbeddedTasks:
    """Return the tasks of the samples that may leave, and those of the held-out sets."""
    recipe = Recipe.model_validate(export.recipe)
    export_filter = ExportFilter(export.project, recipe, export)
    filtered = (one for chunk in frozen_chunks(export) for one in export_filter.apply(export_filter.accepted(chunk)))
    own = (
        opening_of(read_messages(one.example.conversation.messages))
        for one in filtered
        if one.lines and one.example is not None
    )
    sets = find_held_out(export.project, recipe.held_out)
    return EmbeddedTasks.of(own, (row.opening for held_out in sets for row in held_out.rows()))


def store_plan(*, export: Export, plan: ExportPlan) -> None:
    """Write the plan to the export and its frozen rows. Needs a transaction; repeating it changes nothing."""
    changed = Q(duplicate_of__isnull=False) | ~Q(over_cap="") | ~Q(contaminated="")
    FrozenRow.objects.filter(changed, export=export).update(duplicate_of=None, over_cap="", contaminated="")
    left_out = plan.left_out()
    for start in range(0, len(left_out), _AT_ONCE):
        ids = left_out[start : start + _AT_ONCE]
        rows = list(FrozenRow.objects.filter(export=export, sample_id__in=ids))
        for row in rows:
            row.duplicate_of = plan.duplicates.get(row.sample_id)
            row.over_cap = plan.over_caps.get(row.sample_id, "")
            row.contaminated = str(plan.kept_out.get(row.sample_id, ""))
        FrozenRow.objects.bulk_update(rows, ["duplicate_of", "over_cap", "contaminated"])
    ContaminatedSample.objects.filter(export=export).delete()
    matches = (
        ContaminatedSample(
            export=export,
            sample_id=pk,
            held_out=match.held_out,
            row=match.row,
            levels=match.levels,
            prompt=storable(match.prompt),
            answer=storable(match.answer),
        )
        for pk, match in sorted(plan.contaminated.items())
    )
    while batch := list(islice(matches, _AT_ONCE)):
        ContaminatedSample.objects.bulk_create(batch)
    Export.objects.filter(pk=export.pk).update(plan=plan.as_json())
