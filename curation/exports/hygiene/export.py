"""The plan of an export: made from its frozen samples, and stored with them."""

from collections.abc import Callable

from curation.exports.hygiene.plan import Plan, make_plan
from curation.exports.models import Export, FrozenRow
from curation.exports.recipes.recipe import Recipe
from curation.exports.rows.filter import ExportFilter
from curation.exports.rows.freeze import frozen_chunks, frozen_samples

_AT_ONCE = 500


def plan_export(*, export: Export, checkpoint: Callable[[], None]) -> Plan:
    """Return the plan for the frozen samples of an export."""
    recipe = Recipe.model_validate(export.recipe)
    export_filter = ExportFilter(export.project, recipe, export)
    return make_plan(
        (export_filter.accepted(chunk) for chunk in frozen_chunks(export)),
        recipe,
        count_formats=lambda ids: export_filter.count_formats(frozen_samples(export, ids)),
        checkpoint=checkpoint,
    )


def store_plan(*, export: Export, plan: Plan) -> None:
    """Write the plan to the export and its frozen rows. Needs a transaction; repeating it changes nothing."""
    FrozenRow.objects.filter(export=export).exclude(duplicate_of=None, over_cap="").update(
        duplicate_of=None, over_cap=""
    )
    left_out = sorted({*plan.duplicates, *plan.over_caps})
    for start in range(0, len(left_out), _AT_ONCE):
        ids = left_out[start : start + _AT_ONCE]
        rows = list(FrozenRow.objects.filter(export=export, sample_id__in=ids))
        for row in rows:
            row.duplicate_of = plan.duplicates.get(row.sample_id)
            row.over_cap = plan.over_caps.get(row.sample_id, "")
        FrozenRow.objects.bulk_update(rows, ["duplicate_of", "over_cap"])
    Export.objects.filter(pk=export.pk).update(plan=plan.as_json())
