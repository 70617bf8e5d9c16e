"""Two models over the same rows or tasks: deltas per metric and tier, what is gained and what is lost."""

from collections.abc import Sequence
from dataclasses import dataclass

from curation.evaluations.compare.pairs import Answer, Pair, Place, paired, tasks_of
from curation.evaluations.metrics import SCALES, Metric, Scale
from curation.evaluations.models import EvaluatedModel, Evaluation
from curation.projects.models import Project
from curation.web.ids import find
from curation.web.problems import FieldError, Invalid
from judging.statistics.paired import RESAMPLES, Difference, McNemar, Said, difference, mcnemar

# Drawing tens of thousands of tasks ten thousand times would keep a page waiting; fewer draws say the same.
MANY_TASKS, RESAMPLES_OF_MANY = 500, 2_000


@dataclass(frozen=True, slots=True)
class MetricChange:
    """`before` and `after` are means in the metric's unit. `test` is None for what is no rate."""

    metric: Metric
    before: float
    after: float
    change: Difference
    test: McNemar | None

    @property
    def name(self) -> str:
        return self.metric.name

    @property
    def said(self) -> Said:
        return self.change.said

    @property
    def better(self) -> bool | None:
        """Whether the change is for the better; None where there is none, or where no direction is."""
        if self.metric.better == 0 or self.change.delta == 0:
            return None
        return self.change.delta * self.metric.better > 0


@dataclass(frozen=True, slots=True)
class TierChange:
    tier: str
    rows: int
    metrics: tuple[MetricChange, ...]


@dataclass(frozen=True, slots=True)
class Moved:
    """A row or task at which the two did differently well."""

    place: Place
    before: Answer
    after: Answer


@dataclass(frozen=True, slots=True)
class Comparison:
    """`rows` pairs in `tasks` tasks; `gains` and `losses` are those whose `scale.moved` changed."""

    before: EvaluatedModel
    after: EvaluatedModel
    scale: Scale
    rows: int
    tasks: int
    unpaired: int
    metrics: tuple[MetricChange, ...]
    tiers: tuple[TierChange, ...]
    gains: tuple[Moved, ...]
    losses: tuple[Moved, ...]


def compare(*, before: EvaluatedModel, after: EvaluatedModel) -> Comparison:
    """Raises `Invalid` where the two have no row or task in common."""
    pairs, unpaired = paired(before, after)
    scale = SCALES[before.evaluation.kind]
    tiers = sorted({pair.place.tier for pair in pairs})
    moved = [(pair, pair.after.values[scale.moved] - pair.before.values[scale.moved]) for pair in pairs]
    return Comparison(
        before=before,
        after=after,
        scale=scale,
        rows=len(pairs),
        tasks=len(set(tasks_of(pairs))),
        unpaired=unpaired,
        metrics=changes(pairs, scale.metrics),
        tiers=tuple(_tier(tier, [pair for pair in pairs if pair.place.tier == tier], scale) for tier in tiers),
        gains=tuple(Moved(pair.place, pair.before, pair.after) for pair, by in moved if by > 0),
        losses=tuple(Moved(pair.place, pair.before, pair.after) for pair, by in moved if by < 0),
    )


def changes(pairs: Sequence[Pair], metrics: Sequence[Metric]) -> tuple[MetricChange, ...]:
    """One change per metric, in their order."""
    tasks = tasks_of(pairs)
    resamples = RESAMPLES_OF_MANY if len(set(tasks)) > MANY_TASKS else RESAMPLES
    found = []
    for metric in metrics:
        old = [pair.before.values[metric.name] for pair in pairs]
        new = [pair.after.values[metric.name] for pair in pairs]
        test = mcnemar([value > 0 for value in old], [value > 0 for value in new]) if metric.rate else None
        change = difference(old, new, tasks, resamples=resamples)
        found.append(MetricChange(metric, sum(old) / len(old), sum(new) / len(new), change, test))
    return tuple(found)


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


def models_to_compare(
    project: Project, before: str, after: str, *, model_before: str | None = None, model_after: str | None = None
) -> tuple[EvaluatedModel, EvaluatedModel]:
    """The two models by the ids of their evaluations, which can be the same evaluation."""
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


def _tier(tier: str, pairs: Sequence[Pair], scale: Scale) -> TierChange:
    return TierChange(tier, len(pairs), changes(pairs, [metric for metric in scale.metrics if metric.tiers]))
