"""Preview: what a recipe would give now, counted by the code that writes; nothing is kept."""

from dataclasses import dataclass

from curation.exports.files.counts import Tally
from curation.exports.recipes.recipe import Recipe
from curation.exports.rows.filter import CHUNK, Sieve
from curation.exports.rows.freeze import standing
from curation.exports.rows.skip_reasons import Reason
from curation.projects.models import Project
from curation.samples.models import Status

LOOKED_AT = 5_000


@dataclass(frozen=True, slots=True)
class Preview:
    """`samples` match the filter. Rows and reasons are exact where `exact`; else they are of the first `checked`
    approved samples, and `approved` says how many there are. Samples that nobody approved are always counted exactly.
    """

    samples: int
    approved: int
    checked: int
    exact: bool
    exported: int
    bytes: int
    rows: dict[str, dict[str, int]]
    excluded: dict[str, int]
    examples: dict[str, list[str]]
    balance: dict[str, object] | None
    warnings: list[str]


def preview(*, project: Project, recipe: Recipe) -> Preview:
    """Counts in a few seconds at most: the approved are looked into up to `LOOKED_AT`, the others only counted."""
    matching = recipe.samples(project)
    approved = matching.filter(status=Status.APPROVED)
    sieve, tally = Sieve(project, recipe), Tally()
    last = -1
    while tally.samples < LOOKED_AT:
        chunk = standing(approved.filter(pk__gt=last).order_by("pk")[:CHUNK])
        for sifted in sieve.sift(chunk):
            tally.add(sifted)
        if len(chunk) < CHUNK:
            break
        last = chunk[-1].sample_id
    samples = matching.order_by().count()
    of_them = tally.samples if tally.samples < LOOKED_AT else approved.order_by().count()
    rejected = matching.filter(status=Status.REJECTED).order_by()
    for reason, rows in (
        (Reason.REJECTED, rejected),
        (Reason.NOT_APPROVED, matching.exclude(status__in=[Status.APPROVED, Status.REJECTED]).order_by()),
    ):
        if samples > of_them and (count := rows.count()):
            tally.excluded[reason.value] += count
            tally.examples[reason.value] = [str(pk) for pk in rows.order_by("pk").values_list("pk", flat=True)[:20]]
    balance = tally.endings.balance()
    return Preview(
        samples=samples,
        approved=of_them,
        checked=tally.samples,
        exact=tally.samples == of_them,
        exported=tally.exported,
        bytes=tally.bytes,
        rows=tally.rows_by_split(recipe.formats, list(recipe.splits)),
        excluded=tally.reasons(),
        examples=tally.examples,
        balance=balance.as_json() if balance else None,
        warnings=balance.warnings(project.settings.balance) if balance else [],
    )
