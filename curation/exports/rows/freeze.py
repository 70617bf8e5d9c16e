"""Freeze: which samples an export takes and how they stood, in one statement and so at one moment; then their pairs."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Case, CharField, F, OuterRef, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce

from curation.exports.models import Export, FrozenPair, FrozenRow
from curation.exports.recipes.recipe import Recipe
from curation.exports.rows.skip_reasons import FROZEN, NOW, Candidate
from curation.review.models import Action, Decision, Pick, Revision
from curation.samples.models import Sample
from curation.trajectories.models import Pair
from curation.web.lists.id_list import Among

# The columns of a sample that become those of `FROZEN`.
STANDING = ("pk", "version", "kept_revision", "score", "bucket", "flags")
Standing = tuple[int, int, int | None, float | None, str, int]


class PairKey(NamedTuple):
    """A pair, by the sample of its chosen trajectory."""

    sample_id: int
    pair_id: int


def freeze(*, export: Export) -> int:
    """Writes the frozen rows of all samples that the recipe's filter matches, and of their pairs where the recipe asks
    for them; returns how many samples there are. Needs a transaction.

    The database copies them itself: a million rows must neither travel nor be read at two moments.
    """
    recipe = Recipe.model_validate(export.recipe)
    FrozenRow.objects.filter(export=export).delete()
    FrozenPair.objects.filter(export=export).delete()
    chosen = as_they_stand(recipe.samples(export.project)).order_by()
    _copy(export, FrozenRow, FROZEN, chosen)
    if recipe.wants_pairs():
        samples = FrozenRow.objects.filter(export=export).values("sample_id")
        won = Pair.objects.filter(chosen__sample_id__in=samples).order_by()
        _copy(export, FrozenPair, PairKey._fields, won.values_list("chosen__sample_id", "pk"))
    return FrozenRow.objects.filter(export=export).count()


def _copy(
    export: Export, into: type[FrozenRow] | type[FrozenPair], fields: Sequence[str], rows: QuerySet[Any, Any]
) -> None:
    select, params = rows.query.sql_with_params()
    table = connection.ops.quote_name(into._meta.db_table)
    names = ", ".join(connection.ops.quote_name(name) for name in ("export_id", *fields))
    with connection.cursor() as cursor:
        # Names come from the models; the filter's values are parameters.
        copy = f"INSERT INTO {table} ({names}) SELECT %s, standing.* FROM ({select}) standing"  # noqa: S608
        cursor.execute(copy, (export.pk, *params))


def as_they_stand(samples: QuerySet[Sample]) -> QuerySet[Sample, Standing]:
    """The fields of `FROZEN`; `revision_id` is the latest revision of the answer that the standing approval picked."""
    approval = Decision.objects.filter(sample=OuterRef("pk"), action=Action.APPROVE, undone_by=None).order_by("-id")
    side = Case(
        When(pick=Pick.OPPONENT, then=Value(Pick.OPPONENT.value)),
        default=Value(Pick.CANDIDATE.value),
        output_field=CharField(),
    )
    revision = Revision.objects.filter(sample=OuterRef("pk"), of=OuterRef("kept_side")).order_by("-number")
    return samples.annotate(
        kept_side=Coalesce(Subquery(approval.values(side=side)[:1]), Value(Pick.CANDIDATE.value)),
        kept_revision=Subquery(revision.values("pk")[:1]),
    ).values_list(*STANDING)


def standing(samples: QuerySet[Sample]) -> list[Candidate]:
    """The same rows without writing them, as `samples` stand now; for a preview."""
    rows = as_they_stand(samples).annotate(version_now=F("version"))
    return [Candidate._make(row) for row in rows.values_list(*STANDING, "version_now", *NOW[1:])]


def frozen(export: Export, *, after: int, limit: int) -> list[Candidate]:
    """The next frozen rows of an export from a sample's id on, and what became of their samples; one query."""
    rows = FrozenRow.objects.filter(export=export, sample_id__gt=after).order_by("sample_id")
    columns = rows.values_list(*FROZEN, *(f"sample__{name}" for name in NOW))
    return [Candidate._make(row) for row in columns[:limit]]


def frozen_pairs(export: Export, sample_ids: Sequence[int]) -> list[PairKey]:
    """The frozen pairs of some of an export's samples, by sample and pair."""
    rows = FrozenPair.objects.filter(export=export, sample_id__in=Among(sample_ids)).order_by("sample_id", "pair_id")
    return [PairKey._make(row) for row in rows.values_list(*PairKey._fields)]


def standing_pairs(sample_ids: Sequence[int]) -> list[PairKey]:
    """The pairs that some samples' trajectories win now; for a preview."""
    rows = Pair.objects.filter(chosen__sample_id__in=Among(sample_ids)).order_by("chosen__sample_id", "pk")
    return [PairKey._make(row) for row in rows.values_list("chosen__sample_id", "pk")]
