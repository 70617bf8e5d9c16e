"""The plan of an export: made from its frozen samples, and stored with them."""

from collections.abc import Callable
from itertools import islice

from django.db.models import Q

from curation.exports.hygiene.contamination import HeldOutSets
from curation.exports.hygiene.plan import Plan, make_plan
from curation.exports.models import ContaminatedSample, Export, FrozenRow
from curation.exports.recipes.recipe import Recipe
from curation.exports.rows.filter import ExportFilter
from curation.exports.rows.freeze import frozen_chunks, frozen_samples
from curation.web.text.storable import storable

_AT_ONCE = 500


def plan_export(*, export: Export, checkpoint: Callable[[], None]) -> Plan:
    """Return the plan for the frozen samples of an export."""
    recipe = Recipe.model_validate(export.recipe)
    export_filter = ExportFilter(export.project, recipe, export)
    return make_plan(
        (export_filter.accepted(chunk) for chunk in frozen_chunks(export)),
        recipe,
        held_out=HeldOutSets.of(export.project, recipe),
        apply=export_filter.apply,
        count_formats=lambda ids: export_filter.count_formats(frozen_samples(export, ids)),
        checkpoint=checkpoint,
    )


def store_plan(*, export: Export, plan: Plan) -> None:
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
            levels=[level.value for level in match.levels],
            prompt=storable(match.prompt),
            answer=storable(match.answer),
        )
        for pk, match in sorted(plan.contaminated.items())
    )
    while batch := list(islice(matches, _AT_ONCE)):
        ContaminatedSample.objects.bulk_create(batch)
    Export.objects.filter(pk=export.pk).update(plan=plan.as_json())
