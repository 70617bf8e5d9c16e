"""Freeze: which samples an export takes and how they stood, in one statement and so at one moment."""

from django.db import connection
from django.db.models import Case, CharField, OuterRef, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce

from curation.exports.hygiene import Frozen
from curation.exports.models import Export, FrozenRow
from curation.exports.recipe import Recipe
from curation.review.models import Action, Decision, Pick, Revision
from curation.samples.models import Sample

Standing = tuple[int, int, int | None, float | None, str, int]


def freeze(*, export: Export) -> int:
    """Writes the frozen rows of all samples that the recipe's filter matches; returns how many. Needs a transaction.

    The database copies them itself: a million rows must neither travel nor be read at two moments.
    """
    FrozenRow.objects.filter(export=export).delete()
    chosen = as_they_stand(Recipe.model_validate(export.recipe).samples(export.project)).order_by()
    select, params = chosen.query.sql_with_params()
    table = connection.ops.quote_name(FrozenRow._meta.db_table)
    names = ", ".join(connection.ops.quote_name(name) for name in ("export_id", *Frozen._fields))
    with connection.cursor() as cursor:
        # Names come from the models; the filter's values are parameters.
        copy = f"INSERT INTO {table} ({names}) SELECT %s, standing.* FROM ({select}) standing"  # noqa: S608
        cursor.execute(copy, (export.pk, *params))
    return FrozenRow.objects.filter(export=export).count()


def as_they_stand(samples: QuerySet[Sample]) -> QuerySet[Sample, Standing]:
    """The fields of `Frozen`; `revision_id` is the latest revision of the answer that the standing approval picked."""
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
    ).values_list("pk", "version", "kept_revision", "score", "bucket", "flags")


def standing(samples: QuerySet[Sample]) -> list[Frozen]:
    """The same rows without writing them, as `samples` stand now; for a preview."""
    return [Frozen._make(row) for row in as_they_stand(samples)]
