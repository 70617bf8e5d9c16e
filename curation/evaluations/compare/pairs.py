"""What two models did at the same rows or tasks, paired: what a comparison is made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from curation.evaluations.metrics import LIVE
from curation.evaluations.models import (
    Episode,
    EvaluatedModel,
    EvaluationKind,
    Mark,
    Screened,
    SplitRow,
    SplitRowText,
)
from curation.evaluations.splits.rows import prompt_text
from curation.web.problems import Invalid
from judging.commands.screen import FLAGS


@dataclass(frozen=True, slots=True)
class Place:
    """What both were set: a row of a split (`row` is its id) or a task of live episodes. `number` counts from 1."""

    number: int
    task: str
    tier: str
    source: str
    preview: str
    row: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """One model's answer or episode, as far as a comparison needs it; `mark` in a word for programs and for people."""

    pk: int
    mark: str
    label: str
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Pair:
    place: Place
    before: Answer
    after: Answer


def paired(before: EvaluatedModel, after: EvaluatedModel) -> tuple[list[Pair], int]:
    """Pairs in the order of their rows or tasks, and how many found no partner; raises `Invalid` without a pair."""
    if before.evaluation.kind != after.evaluation.kind:
        raise Invalid("One is a static screen, the other played live episodes: they have nothing in common.")
    if before.evaluation.kind == EvaluationKind.LIVE:
        pairs, alone = _episodes(before, after)
    else:
        pairs, alone = _rows(before, after)
    if not pairs:
        raise Invalid("The two have no row in common, so there is nothing to compare.", code="nothing_in_common")
    return pairs, alone


def _rows(before: EvaluatedModel, after: EvaluatedModel) -> tuple[list[Pair], int]:
    mine, theirs = _screened(before), _screened(after)
    rows = SplitRow.objects.in_bulk(list(mine))
    if before.evaluation.split_id == after.evaluation.split_id:
        partner = {row_id: theirs[row_id] for row_id in mine if row_id in theirs}
    else:
        partner = _same_texts(mine, theirs)
    pairs = [Pair(_place(rows[row_id]), mine[row_id], found) for row_id, found in partner.items()]
    pairs.sort(key=lambda pair: pair.place.number)
    return pairs, len(mine) + len(theirs) - 2 * len(pairs)


def _screened(model: EvaluatedModel) -> dict[int, Answer]:
    """By row."""
    rows = Screened.objects.filter(by=model).order_by("row_id")
    found = {}
    for pk, row_id, mark, latency, length, *flags in rows.values_list(
        "pk", "row_id", "mark", "latency_ms", "length", *FLAGS
    ):
        values = {name: float(flag) for name, flag in zip(FLAGS, flags, strict=True)}
        values |= {"lat": latency / 1000, "len": float(length)}
        found[row_id] = Answer(pk, mark, Mark(mark).label, values)
    return found


def _same_texts(mine: Mapping[int, Answer], theirs: Mapping[int, Answer]) -> dict[int, Answer]:
    """Across two splits a row is the same where prompt and expected answer are."""
    texts = SplitRowText.objects.in_bulk([*mine, *theirs])
    keys = {pk: (prompt_text(text.messages), text.expected) for pk, text in texts.items()}
    by_key = {keys[row_id]: answer for row_id, answer in theirs.items()}
    return {row_id: by_key[keys[row_id]] for row_id in mine if keys[row_id] in by_key}


def _place(row: SplitRow) -> Place:
    return Place(row.number + 1, row.task, row.tier, row.source, row.preview, row.pk)


def _episodes(before: EvaluatedModel, after: EvaluatedModel) -> tuple[list[Pair], int]:
    """Tasks are the same where their names are, whichever evaluation set them."""
    mine, theirs = _played(before), _played(after)
    shared = [key for key in mine if key in theirs]
    pairs = [
        Pair(Place(number, key, mine[key].tier, "", key), _answer(mine[key]), _answer(theirs[key]))
        for number, key in enumerate(shared, 1)
    ]
    return pairs, len(mine) + len(theirs) - 2 * len(pairs)


def _played(model: EvaluatedModel) -> dict[str, Episode]:
    return {episode.key: episode for episode in Episode.objects.filter(by=model).order_by("number", "pk")}


def _answer(episode: Episode) -> Answer:
    mark, label = ("completed", "completed") if episode.completed else ("missed", "not completed")
    values = {metric.name: float(getattr(episode, metric.name)) for metric in LIVE}
    return Answer(episode.pk, mark, label, values)


def tasks_of(pairs: Sequence[Pair]) -> list[str]:
    return [pair.place.task for pair in pairs]
