"""The figures of a static screen: a row per model, overall, by tier, by source, and for clean and contaminated rows."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Avg, Count, Exists, F, OuterRef, Q, QuerySet, Value
from django.db.models.expressions import Combinable

from curation.evaluations.metrics import tier_order
from curation.evaluations.missing import missing_by_place, planned_items
from curation.evaluations.models import ContaminatedRow, ContaminationCheck, EvaluatedModel, Evaluation, ScreenedAnswer
from judging.commands.screen import FLAGS
from judging.statistics.rates import wilson

Row = dict[str, object]
Tally = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ScreenFigures:
    """The rows of all models, the best model first: for all answers, and for those of each tier and source. `clean` and
    `contaminated` are None if the split was never checked."""

    rows: list[Row]
    tiers: dict[str, list[Row]]
    sources: dict[str, list[Row]]
    clean: list[Row] | None = None
    contaminated: list[Row] | None = None


def overall(evaluation: Evaluation) -> list[Row]:
    """One row per model, ranked, with how many rows of the launch have no answer. No row before the first answer."""
    has_begun = planned_items(evaluation).filter(finished_at__isnull=False).exists()
    tallies = _tallies(ScreenedAnswer.objects.filter(evaluation=evaluation), Value(""))
    missing, rows = missing_by_place(evaluation), []
    for model in evaluation.models.order_by("place"):
        row, lacks = _row(model.name, tallies.get((model.pk, ""))), missing.get(model.place, 0)
        if row["n"] or (lacks and has_begun):
            rows.append(row | {"rows_missing": lacks, "incomplete": lacks > 0})
    return ranked(rows)


def figures_of(evaluation: Evaluation, check: ContaminationCheck | None = None) -> ScreenFigures:
    """All figures of the evaluation. One query for each grouping."""
    names = dict(evaluation.models.values_list("pk", "name"))
    screened = ScreenedAnswer.objects.filter(evaluation=evaluation)
    rows = overall(evaluation)
    lacking = {str(row["model"]) for row in rows if row["incomplete"]}
    tiers = _groups(screened, F("row__tier"), names, lacking)
    sources = _groups(screened, F("row__source"), names, lacking)
    if check is None:
        return ScreenFigures(rows, tiers, sources)
    contaminated = ContaminatedRow.objects.contaminated(check).filter(row=OuterRef("row"))
    by_check = _groups(screened, Exists(contaminated), names, lacking)
    return ScreenFigures(rows, tiers, sources, by_check.get("False", []), by_check.get("True", []))


def rank_of_screen(row: Row) -> tuple[bool, float, float, float]:
    """By `xtr`, then `exact`, then the lower latency, as they are rounded. Figures over fewer rows than asked for come
    after all that are whole."""
    return (row.get("incomplete") is True, -number(row, "xtr"), -number(row, "exact"), number(row, "lat"))


def ranked(rows: Iterable[Row]) -> list[Row]:
    """Equal rows keep their order."""
    return with_ranks(sorted(rows, key=rank_of_screen))


def save_figures(evaluation: Evaluation, rows: Sequence[Row]) -> Row:
    """Save each model's row for lists and the leaderboard, in a transaction; return the run's result.

    The leaderboard ranks by `xtr`, `exact` and `lat`, which live episodes don't have.
    """
    for row in rows:
        ranks = {name: row[name] for name in ("xtr", "exact", "lat") if row.get(name) is not None}
        EvaluatedModel.objects.filter(evaluation=evaluation, name=row["model"]).update(figures=row, **ranks)
    return {"models": [{name: value for name, value in row.items() if name != "intervals"} for row in rows]}


def with_ranks(rows: Iterable[Row]) -> list[Row]:
    return [{**row, "rank": rank} for rank, row in enumerate(rows, 1)]


def wilson_intervals(hits: Mapping[str, int], n: int) -> dict[str, list[float]]:
    """The Wilson 95 % interval of each rate, with three decimals."""
    found = {name: wilson(count, n) for name, count in hits.items()}
    return {name: [round(interval.low, 3), round(interval.high, 3)] for name, interval in found.items()}


def number(row: Row, name: str) -> float:
    value = row.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def _groups(
    screened: QuerySet[ScreenedAnswer], part: Combinable, names: Mapping[int, str], lacking: Collection[str]
) -> dict[str, list[Row]]:
    """The models of each group. Those that lack any row are incomplete in all of them: it may be one of the group."""
    by_part: dict[str, dict[str, Tally | None]] = {}
    for (by, name), tally in _tallies(screened, part).items():
        by_part.setdefault(name, dict.fromkeys(sorted(lacking)))[names[by]] = tally
    return {
        name: ranked(
            _row(model, tally) | {"rows_missing": None if model in lacking else 0, "incomplete": model in lacking}
            for model, tally in by_part[name].items()
        )
        for name in sorted(by_part, key=tier_order)
    }


def _tallies(screened: QuerySet[ScreenedAnswer], part: Combinable) -> dict[tuple[int, str], Tally]:
    """By model and by `part` of the rows, in that order."""
    counted = {name: Count("pk", filter=Q(**{name: True})) for name in FLAGS}
    rows = (
        screened.annotate(part=part)
        .order_by()
        .values("by_id", "part")
        .annotate(
            total=Count("pk"),
            errors=Count("pk", filter=Q(failed=True)),
            cuts=Count("pk", filter=Q(cut=True)),
            mean_latency=Avg("latency_ms"),
            mean_length=Avg("length"),
            **{f"count_{name}": value for name, value in counted.items()},
        )
        .order_by("by_id", "part")
    )
    found: list[Tally] = list(rows)
    return {(row["by_id"], str(row["part"])): row for row in found}


def _row(model: str, tally: Tally | None) -> Row:
    """The API's row: ratios, seconds and characters with two decimals, each rate with its Wilson interval. Without
    rows the figures are None."""
    if tally is None:
        figures: Row = dict.fromkeys((*FLAGS, "lat", "len"))
        return {"model": model, "n": 0, "errors": 0, **figures, "cut": 0, "intervals": {}}
    n, hits = tally["total"], {name: tally[f"count_{name}"] for name in FLAGS}
    return {
        "model": model,
        "n": n,
        "errors": tally["errors"],
        **{name: round(count / n, 2) for name, count in hits.items()},
        "lat": round(float(tally["mean_latency"] or 0) / 1000, 2),
        "len": round(float(tally["mean_length"] or 0), 2),
        "cut": tally["cuts"],
        "intervals": wilson_intervals(hits, n),
    }
