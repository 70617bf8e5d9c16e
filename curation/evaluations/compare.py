"""Two models over the same rows: deltas per metric and tier, what is gained and what is lost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from curation.evaluations.models import EvaluatedModel, Evaluation, Mark, Screened, SplitRow, SplitRowText
from curation.evaluations.rows import prompt_text
from curation.projects.models import Project
from curation.web.ids import find
from curation.web.problems import FieldError, Invalid
from judging.commands import FLAGS
from judging.paired import RESAMPLES, Difference, McNemar, Said, difference, mcnemar

# Seconds and characters: the one is better when lower, the other neither.
MEASURES = ("lat", "len")
METRICS = (*FLAGS, *MEASURES)
# Drawing tens of thousands of tasks ten thousand times would keep a page waiting; fewer draws say the same.
MANY_TASKS, RESAMPLES_OF_MANY = 500, 2_000


@dataclass(frozen=True, slots=True)
class Answer:
    """One model's answer to one row, as far as a comparison needs it."""

    pk: int
    row_id: int
    mark: Mark
    failed: bool
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class MetricChange:
    """`before` and `after` are means: shares, seconds or characters. `test` is None for what is no rate."""

    name: str
    before: float
    after: float
    change: Difference
    test: McNemar | None

    @property
    def said(self) -> Said:
        return self.change.said

    @property
    def better(self) -> bool | None:
        """Whether the change is for the better; None where there is none, or where no direction is."""
        if self.name == "len" or self.change.delta == 0:
            return None
        return (self.change.delta > 0) != (self.name == "lat")


@dataclass(frozen=True, slots=True)
class TierChange:
    tier: str
    rows: int
    metrics: tuple[MetricChange, ...]


@dataclass(frozen=True, slots=True)
class RowChange:
    """A row on which the two were judged differently. `before` and `after` are ids of answers."""

    row: SplitRow
    before: int
    after: int
    before_mark: Mark
    after_mark: Mark


@dataclass(frozen=True, slots=True)
class Comparison:
    """`rows` pairs in `tasks` tasks; `gains` and `losses` are rows whose `exact` changed."""

    before: EvaluatedModel
    after: EvaluatedModel
    rows: int
    tasks: int
    unpaired: int
    metrics: tuple[MetricChange, ...]
    tiers: tuple[TierChange, ...]
    gains: tuple[RowChange, ...]
    losses: tuple[RowChange, ...]


Pair = tuple[SplitRow, Answer, Answer]


def compare(*, before: EvaluatedModel, after: EvaluatedModel) -> Comparison:
    """Raises `Invalid` where the two have no row in common."""
    pairs, unpaired = paired_answers(before, after)
    tiers = sorted({row.tier for row, _, _ in pairs})
    exact = [(pair, pair[2].values["exact"] - pair[1].values["exact"]) for pair in pairs]
    return Comparison(
        before=before,
        after=after,
        rows=len(pairs),
        tasks=len({row.task for row, _, _ in pairs}),
        unpaired=unpaired,
        metrics=changes(pairs, METRICS),
        tiers=tuple(_tier(tier, [pair for pair in pairs if pair[0].tier == tier]) for tier in tiers),
        gains=tuple(_row_change(pair) for pair, moved in exact if moved > 0),
        losses=tuple(_row_change(pair) for pair, moved in exact if moved < 0),
    )


def changes(pairs: Sequence[Pair], metrics: Sequence[str]) -> tuple[MetricChange, ...]:
    """One change per metric, in their order."""
    tasks = [row.task for row, _, _ in pairs]
    resamples = RESAMPLES_OF_MANY if len(set(tasks)) > MANY_TASKS else RESAMPLES
    found = []
    for name in metrics:
        old = [before.values[name] for _, before, _ in pairs]
        new = [after.values[name] for _, _, after in pairs]
        test = mcnemar([value > 0 for value in old], [value > 0 for value in new]) if name in FLAGS else None
        change = difference(old, new, tasks, resamples=resamples)
        found.append(MetricChange(name, sum(old) / len(old), sum(new) / len(new), change, test))
    return tuple(found)


def paired_answers(before: EvaluatedModel, after: EvaluatedModel) -> tuple[list[Pair], int]:
    """Answers to the same rows, in file order, and how many answers found no partner."""
    mine, theirs = _answers(before), _answers(after)
    rows = SplitRow.objects.in_bulk([answer.row_id for answer in mine])
    if before.evaluation.split_id == after.evaluation.split_id:
        partner = {answer.row_id: answer for answer in theirs}
    else:
        partner = _partners(mine, theirs)
    pairs = [(rows[one.row_id], one, partner[one.row_id]) for one in mine if one.row_id in partner]
    if not pairs:
        raise Invalid("The two have no row in common, so there is nothing to compare.", code="nothing_in_common")
    pairs.sort(key=lambda pair: pair[0].number)
    return pairs, len(mine) + len(theirs) - 2 * len(pairs)


def model_of(evaluation: Evaluation, name: str | None, *, like: str = "", place: str = "model") -> EvaluatedModel:
    """The named model, else the only one, else the one of the other side's name. `Invalid` lists what there is."""
    models = {model.name: model for model in evaluation.models.select_related("evaluation").all()}
    wanted = name or (next(iter(models)) if len(models) == 1 else like)
    if wanted not in models:
        said = f"has no model {wanted!r}" if wanted else f"has {len(models)} models, so name one in `{place}`"
        raise Invalid(
            f"Evaluation {evaluation.pk} {said}; there are {', '.join(models)}.",
            errors=[FieldError(place, f"one of {', '.join(models)}")],
        )
    return models[wanted]


def sides(
    project: Project, before: str, after: str, *, model_before: str | None = None, model_after: str | None = None
) -> tuple[EvaluatedModel, EvaluatedModel]:
    """Both sides by the evaluations' ids; the same evaluation may stand on both with two models."""
    rows = Evaluation.objects.of(project)
    one, other = find(rows, before, "evaluation"), find(rows, after, "evaluation")
    first = model_of(one, model_before, like=model_after or _shared(one, other), place="model_before")
    second = model_of(other, model_after, like=first.name if one.pk != other.pk else "", place="model_after")
    if first.pk == second.pk:
        reason = "This would compare a model with itself; name another one in `model_after`."
        raise Invalid(reason, errors=[FieldError("model_after", reason)])
    return first, second


def _shared(one: Evaluation, other: Evaluation) -> str:
    """The name of the only model that both have."""
    if one.pk == other.pk:
        return ""
    shared = {model.name for model in one.models.all()} & {model.name for model in other.models.all()}
    return shared.pop() if len(shared) == 1 else ""


def _answers(model: EvaluatedModel) -> list[Answer]:
    rows = Screened.objects.filter(by=model).order_by("row_id")
    found = rows.values_list("pk", "row_id", "mark", "failed", "latency_ms", "length", *FLAGS)
    return [
        Answer(
            pk,
            row_id,
            Mark(mark),
            failed,
            {
                **{name: float(flag) for name, flag in zip(FLAGS, flags, strict=True)},
                "lat": latency / 1000,
                "len": float(length),
            },
        )
        for pk, row_id, mark, failed, latency, length, *flags in found
    ]


def _partners(mine: Sequence[Answer], theirs: Sequence[Answer]) -> dict[int, Answer]:
    """Across two splits a row is the same where prompt and expected answer are."""
    texts = SplitRowText.objects.in_bulk([answer.row_id for answer in (*mine, *theirs)])
    keys = {pk: (prompt_text(text.messages), text.expected) for pk, text in texts.items()}
    by_key = {keys[answer.row_id]: answer for answer in theirs}
    return {answer.row_id: by_key[key] for answer in mine if (key := keys[answer.row_id]) in by_key}


def _tier(tier: str, pairs: Sequence[Pair]) -> TierChange:
    return TierChange(tier, len(pairs), changes(pairs, FLAGS))


def _row_change(pair: Pair) -> RowChange:
    row, before, after = pair
    return RowChange(row, before.pk, after.pk, before.mark, after.mark)
