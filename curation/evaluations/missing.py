"""Missing results of an evaluation: the rows and episodes of its launch that have none."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.db.models import Count

from curation.evaluations.models import (
    Episode,
    EvaluatedModel,
    Evaluation,
    EvaluationKind,
    ScreenedAnswer,
    TaskPlayed,
)
from curation.runs.models import Item, ItemQuerySet
from curation.web.text.figures import counted

STAGES: Mapping[str, str] = {EvaluationKind.STATIC.value: "screen", EvaluationKind.LIVE.value: "episodes"}
Key = tuple[object, ...]


def planned_items(evaluation: Evaluation) -> ItemQuerySet:
    """One for each row or episode of each model."""
    return Item.objects.filter(run_id=evaluation.run_id, stage=STAGES[evaluation.kind]).order_by()


def missing_by_place(evaluation: Evaluation) -> dict[int, int]:
    """How many results each model lacks, by its place."""
    results = Episode.objects if evaluation.kind == EvaluationKind.LIVE else ScreenedAnswer.objects
    found = dict(results.filter(evaluation=evaluation).values_list("by__place").annotate(Count("pk")).order_by())
    planned = planned_items(evaluation).values_list("data__place").annotate(Count("pk"))
    return {int(place): max(0, count - found.get(place, 0)) for place, count in planned}


def missing_by_tier(evaluation: Evaluation) -> dict[tuple[int, str], int]:
    """How many episodes each model lacks, by its place and the tier of the task. A server may name the tier of a task
    that its row does not: then the episode is missing from the tier of no name."""
    played = Episode.objects.filter(evaluation=evaluation).values_list("by__place", "key", "repeat")
    has = {(place, key, repeat) for place, key, repeat in played}
    found: dict[tuple[int, str], int] = {}
    for data in planned_items(evaluation).values_list("data", flat=True).iterator():
        place, tier = int(data["place"]), str(data.get("tier") or "")
        if (place, str(data["task"])[:200], int(data.get("repeat", 0))) not in has:
            found[place, tier] = found.get((place, tier), 0) + 1
    return found


def missing_pairs(before: EvaluatedModel, after: EvaluatedModel) -> int:
    """How many of the rows or episodes that both models were asked for lack a result on either side. Rows of different
    splits have other ids: there every row that is missing counts."""
    one, other = before.evaluation, after.evaluation
    if one.kind == EvaluationKind.STATIC and one.split_id != other.split_id:
        return sum(missing_by_place(model.evaluation).get(model.place, 0) for model in (before, after))
    return len((_planned(before) & _planned(after)) - (_found(before) & _found(after)))


def _found(model: EvaluatedModel) -> set[Key]:
    if model.evaluation.kind == EvaluationKind.LIVE:
        return set(Episode.objects.filter(by=model).values_list("key", "repeat"))
    return set(ScreenedAnswer.objects.filter(by=model).values_list("row_id"))


def _planned(model: EvaluatedModel) -> set[Key]:
    """The results that the launch asked of the model: rows by their id, episodes by task and repeat."""
    items = planned_items(model.evaluation).filter(data__place=model.place)
    if model.evaluation.kind == EvaluationKind.LIVE:
        return {(str(data["task"])[:200], int(data.get("repeat", 0))) for data in items.values_list("data", flat=True)}
    return {(row,) for row in items.values_list("target_id", flat=True)}


def missing_notes(evaluation: Evaluation, rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Sentences about figures over fewer results than asked for, and about results of a second try."""
    live = evaluation.kind == EvaluationKind.LIVE
    noun = "episode" if live else "row"
    notes = []
    for row in rows:
        if missing := int(row.get("episodes_missing" if live else "rows_missing") or 0):
            over = (
                f"The figures are those of the other {row['n']:,}, and equal to no other model's. To retry only what "
                "failed shifts them, if the model is a cause of the failures; launch again to measure all alike."
            )
            lacks = f"{row['model']}: {_are(missing, noun, 'missing')}, of {row['n'] + missing:,}."
            notes.append(f"{lacks} {over if row['n'] else 'There are no figures.'}")
    return [*notes, *(note for model in evaluation.models.order_by("place") for note in retry_notes(model))]


def retry_notes(model: EvaluatedModel) -> list[str]:
    """A sentence about results of a second try, if the model has any."""
    evaluation = model.evaluation
    again = planned_items(evaluation).filter(data__place=model.place, cache_after__isnull=False).count()
    noun = "episode" if evaluation.kind == EvaluationKind.LIVE else "row"
    said = f"{model.name}: {_are(again, noun, 'the second try')} after a failure. To retry only what failed shifts the"
    return [f"{said} figures, if the model was a cause of the failures."] if again else []


def failure_notes(model: EvaluatedModel) -> list[str]:
    """Sentences about the failed calls of a static screen, or the episodes whose verdict or task is not known."""
    if model.evaluation.kind == EvaluationKind.LIVE:
        episodes = Episode.objects.filter(by=model)
        unknown = (
            ("did not judge {}, which equal no other model's", episodes.filter(judged=False).count()),
            ("does not say the task of {}", episodes.filter(played=TaskPlayed.UNCONFIRMED).count()),
        )
        return [f"{model.name}: the server {did.format(counted(n, 'episode'))}." for did, n in unknown if n]
    failed = ScreenedAnswer.objects.filter(by=model, failed=True).count()
    count = "counts as a wrong answer" if failed == 1 else "count as wrong answers"
    said = f"{model.name}: {counted(failed, 'call')} failed and {count}, which no other model's answers equal."
    return [said] if failed else []


def _are(count: int, noun: str, what: str) -> str:
    return f"{counted(count, noun)} {'is' if count == 1 else 'are'} {what}"
