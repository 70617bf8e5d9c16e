"""Freeze: copy the samples of an export as they are now, in one statement and so at one moment, then their pairs."""

from collections.abc import Iterator, Sequence
from typing import Any

from django.db import connection
from django.db.models import BigIntegerField, Case, CharField, F, QuerySet, Value, When
from django.db.models.functions import Cast

from curation.exports.models import Export, FrozenPair, FrozenRow
from curation.exports.recipes.recipe import Recipe
from curation.exports.rows.skip_reasons import CURRENT_COLUMNS, FROZEN_FIELDS, FrozenSample
from curation.projects.models import Project
from curation.review.decisions.outcome import with_approved_revision
from curation.samples.models import Sample, SampleStatus
from curation.trajectories.models import Pair
from curation.web.ids import IdList

CHUNK = 2_500
# The columns of a sample that fill `FROZEN_FIELDS`.
COLUMNS = ("pk", "version", "approved_revision", "score", "bucket", "flags", "no_duplicate", "no_cap", "no_held_out")
FrozenValues = tuple[int, int, int | None, float | None, str, int, int | None, str, str]


def freeze(*, export: Export) -> int:
    """Write the frozen rows of all samples that match the recipe's filter, and of their pairs if the recipe wants them.
    Return the number of samples. Needs a transaction.

    The database copies the rows itself, so a million of them are not sent back and forth.
    """
    recipe = Recipe.model_validate(export.recipe)
    FrozenRow.objects.filter(export=export).delete()
    FrozenPair.objects.filter(export=export).delete()
    _copy(export, FrozenRow, FROZEN_FIELDS, _frozen_values(recipe.samples(export.project)).order_by())
    if recipe.wants_pairs():
        samples = FrozenRow.objects.filter(export=export).values("sample_id")
        pairs = Pair.objects.filter(chosen__sample_id__in=samples).order_by()
        _copy(export, FrozenPair, ("sample_id", "pair_id"), pairs.values_list("chosen__sample_id", "pk"))
    return FrozenRow.objects.filter(export=export).count()


def _copy(
    export: Export, into: type[FrozenRow] | type[FrozenPair], fields: Sequence[str], rows: QuerySet[Any, Any]
) -> None:
    select, params = rows.query.sql_with_params()
    table = connection.ops.quote_name(into._meta.db_table)
    names = ", ".join(connection.ops.quote_name(name) for name in ("export_id", *fields))
    with connection.cursor() as cursor:
        # Table and column names come from the models; the filter's values are parameters.
        copy = f"INSERT INTO {table} ({names}) SELECT %s, frozen.* FROM ({select}) frozen"  # noqa: S608
        cursor.execute(copy, (export.pk, *params))


def _frozen_values(samples: QuerySet[Sample]) -> QuerySet[Sample, FrozenValues]:
    """Select `FROZEN_FIELDS`. `revision_id` is the revision that the standing approval names; duplicates, caps
    and contamination are found later (`curation.exports.hygiene.plan`)."""
    # PostgreSQL needs the type of a NULL that it inserts.
    nothing = Cast(Value(None), BigIntegerField(null=True))
    empty = Value("", output_field=CharField())
    unknown = with_approved_revision(samples).annotate(no_duplicate=nothing, no_cap=empty, no_held_out=empty)
    return unknown.values_list(*COLUMNS)


def current_samples(samples: QuerySet[Sample]) -> list[FrozenSample]:
    """Return the rows that `freeze` would write now, for a preview."""
    rows = _frozen_values(samples).annotate(version_now=F("version"), cleared=_cleared("leak_cleared"))
    columns = ["cleared" if name == "leak_cleared" else name for name in CURRENT_COLUMNS[1:]]
    return [FrozenSample._make(row) for row in rows.values_list(*COLUMNS, "version_now", *columns)]


def _cleared(column: str) -> Case:
    """Return a Boolean column as text: Django converts each Boolean and each number of an expression by itself."""
    return Case(When(**{column: True}, then=Value("cleared")), default=Value(""), output_field=CharField())


def frozen_chunks(export: Export) -> Iterator[list[FrozenSample]]:
    """Yield all frozen rows in chunks, with their samples as they are now. One query each."""
    columns = _frozen_columns(export)
    last = -1
    while chunk := [FrozenSample._make(row) for row in columns.filter(sample_id__gt=last)[:CHUNK]]:
        yield chunk
        last = chunk[-1].sample_id


def frozen_samples(export: Export, sample_ids: Sequence[int]) -> list[FrozenSample]:
    """Return the frozen rows of some samples, in the order of their ids."""
    return [FrozenSample._make(row) for row in _frozen_columns(export).filter(sample_id__in=IdList(sample_ids))]


def _frozen_columns(export: Export) -> QuerySet[FrozenRow, tuple[Any, ...]]:
    rows = FrozenRow.objects.filter(export=export).order_by("sample_id")
    current: dict[str, Any] = {name: f"sample__{name}" for name in CURRENT_COLUMNS}
    current["leak_cleared"] = _cleared(current["leak_cleared"])
    return rows.values_list(*FROZEN_FIELDS, *current.values())


def frozen_pairs(export: Export, sample_ids: Sequence[int]) -> list[FrozenPair]:
    """Return the frozen pairs of some samples of an export, by sample and pair."""
    rows = FrozenPair.objects.filter(export=export, sample_id__in=IdList(sample_ids))
    return list(rows.order_by("sample_id", "pair_id"))


def current_rejected(project: Project, recipe: Recipe) -> QuerySet[Sample]:
    """Return the samples of the trajectories that are rejected in the recipe's pairs now, for a preview."""
    if not recipe.wants_pairs():
        return Sample.objects.none()
    approved = recipe.samples(project).filter(status=SampleStatus.APPROVED).order_by()
    pairs = Pair.objects.filter(chosen__sample_id__in=approved.values("pk"))
    return Sample.objects.filter(pk__in=pairs.values("rejected__sample_id"))


def current_pairs(sample_ids: Sequence[int]) -> list[FrozenPair]:
    """Return the pairs that the trajectories of some samples win now as `freeze` would write them, for a preview."""
    rows = Pair.objects.filter(chosen__sample_id__in=IdList(sample_ids)).order_by("chosen__sample_id", "pk")
    return [FrozenPair(sample_id=sample, pair_id=pk) for sample, pk in rows.values_list("chosen__sample_id", "pk")]
