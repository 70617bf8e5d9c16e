"""Compare two models on the same rows or tasks: the change of each metric and tier, gains and losses."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

from curation.evaluations.compare.columns import column_of
from curation.evaluations.compare.pairs import Pair, paired, tasks_of
from curation.evaluations.metrics import SCALES, Metric, Scale, tier_order
from curation.evaluations.missing import missing_pairs
from curation.evaluations.models import EvaluatedModel, Evaluation
from curation.projects.models import Project
from curation.web.ids import find
from curation.web.problems import FieldError, Invalid
from curation.web.text.figures import counted
from judging.statistics.paired import RESAMPLES, Difference, McNemar, Said, difference, mcnemar
from judging.statistics.sign_flip import holm

# With many tasks fewer resamples give the same interval, and a page does not have to wait.
INCOMPLETE = "incomplete"
MANY_TASKS, RESAMPLES_OF_MANY = 500, 2_000


@dataclass(frozen=True, slots=True)
class MetricChange:
    """`before` and `after` are means in the metric's unit. `test` is None unless the metric is a rate.

    `corrected` is the p of the sign-flip test, corrected for the number of `comparisons`. It alone decides the verdict;
    `incomplete`, with results that are missing, has none.
    """

    metric: Metric
    before: float
    after: float
    change: Difference
    test: McNemar | None
    corrected: float
    comparisons: int = 1
    incomplete: bool = False

    @property
    def name(self) -> str:
        return self.metric.name

    @property
    def said(self) -> Said:
        return Said.at(self.corrected)

    @property
    def verdict(self) -> str:
        return INCOMPLETE if self.incomplete else self.said.value

    @property
    def is_known(self) -> bool:
        """Whether the change is more than noise, over all that both models were asked for."""
        return not self.incomplete and self.said != Said.NOISE

    @property
    def note(self) -> str:
        """Why the verdict differs from the interval or the p of this comparison alone; empty if it does not."""
        if self.incomplete:
            return "Results are missing, so the two models are not compared on all that both were asked for."
        excludes = self.change.interval.excludes_zero()
        if self.said != Said.NOISE:
            return "" if excludes else "The interval includes 0; the test decides."
        if self.change.said != Said.NOISE:
            among = counted(self.comparisons, "comparison")
            return f"Alone it would be {self.change.said}; among {among} it may be chance."
        return "The interval excludes 0; the test does not confirm it." if excludes else ""

    @property
    def tasks_missing(self) -> int | None:
        """How many more tasks this change would need to be clear, if it stays as it is; None without a change."""
        needed = self.change.tasks_to_be_clear(self.comparisons)
        if needed is None or self.said == Said.CLEAR:
            return None if needed is None else 0
        return max(1, needed - self.change.tasks)

    @property
    def interval(self) -> str:
        """The 95 % interval of the change in words."""
        unit, found = self.metric.unit, self.change.interval
        return f"{unit.change(found.low)} … {unit.change(found.high)}"

    @property
    def better(self) -> bool | None:
        """None without a change, or if the metric has no better direction."""
        if self.metric.better == 0 or self.change.delta == 0:
            return None
        return self.change.delta * self.metric.better > 0


@dataclass(frozen=True, slots=True)
class TierChange:
    tier: str
    rows: int
    metrics: tuple[MetricChange, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """`rows` `pairs` in `tasks` tasks; `missing` are those that both were asked for and one has no result of. `gains`
    and `losses` are the pairs whose `scale.decisive` changed. `comparisons` are all metrics, of all rows and by tier,
    which are corrected together."""

    before: EvaluatedModel
    after: EvaluatedModel
    scale: Scale
    rows: int
    tasks: int
    unpaired: int
    missing: int
    metrics: tuple[MetricChange, ...]
    tiers: tuple[TierChange, ...]
    pairs: tuple[Pair, ...]
    gains: tuple[Pair, ...]
    losses: tuple[Pair, ...]

    @property
    def comparisons(self) -> int:
        return len(self.metrics) + sum(len(tier.metrics) for tier in self.tiers)


def compare(*, before: EvaluatedModel, after: EvaluatedModel) -> Comparison:
    """Raises `Invalid` if the two have no row or task in common."""
    pairs, unpaired = paired(before, after)
    missing = missing_pairs(before, after)
    scale = SCALES[before.evaluation.kind]
    tiers = sorted({pair.example.tier for pair in pairs}, key=tier_order)
    overall = changes(pairs, scale.metrics)
    by_tier = [_tier(tier, [pair for pair in pairs if pair.example.tier == tier], scale) for tier in tiers]
    every = correct([*overall, *(change for tier in by_tier for change in tier.metrics)])
    corrected = iter([replace(change, incomplete=missing > 0) for change in every])
    gains = [(pair, pair.after.values[scale.decisive] - pair.before.values[scale.decisive]) for pair in pairs]
    return Comparison(
        before=before,
        after=after,
        scale=scale,
        rows=len(pairs),
        tasks=len(set(tasks_of(pairs))),
        unpaired=unpaired,
        missing=missing,
        metrics=tuple(islice(corrected, len(overall))),
        tiers=tuple(replace(tier, metrics=tuple(islice(corrected, len(tier.metrics)))) for tier in by_tier),
        pairs=tuple(pairs),
        gains=tuple(pair for pair, gain in gains if gain > 0),
        losses=tuple(pair for pair, gain in gains if gain < 0),
    )


def changes(pairs: Sequence[Pair], metrics: Sequence[Metric]) -> tuple[MetricChange, ...]:
    """One change per metric, in their order, each as if it were the only one. A metric that is not defined on both
    sides, such as the steps to complete where nothing was completed, is left out."""
    tasks = tasks_of(pairs)
    resamples = RESAMPLES_OF_MANY if len(set(tasks)) > MANY_TASKS else RESAMPLES
    found = []
    for metric in metrics:
        old = column_of(metric, [pair.before.values for pair in pairs])
        new = column_of(metric, [pair.after.values for pair in pairs])
        if old is None or new is None:
            continue
        test = mcnemar([value > 0 for value in old], [value > 0 for value in new]) if metric.rate else None
        change = difference(old, new, tasks, resamples=resamples)
        found.append(MetricChange(metric, sum(old) / len(old), sum(new) / len(new), change, test, change.p))
    return tuple(found)


def correct(family: Sequence[MetricChange]) -> list[MetricChange]:
    """Return the changes corrected for their number, in their order."""
    ps = holm([change.change.p for change in family])
    return [replace(change, corrected=p, comparisons=len(family)) for change, p in zip(family, ps, strict=True)]


def model_of(evaluation: Evaluation, name: str | None, *, fallback: str = "", path: str = "model") -> EvaluatedModel:
    """The named model, else the only one, else `fallback`. `Invalid` lists the models that exist."""
    models = {model.name: model for model in evaluation.models.select_related("evaluation").all()}
    wanted = name or (next(iter(models)) if len(models) == 1 else fallback)
    if wanted not in models:
        reason = f"has no model {wanted!r}" if wanted else f"has {len(models)} models, so name one in `{path}`"
        raise Invalid(
            f"Evaluation {evaluation.pk} {reason}; there are {', '.join(models)}.",
            errors=[FieldError(path, f"one of {', '.join(models)}")],
        )
    return models[wanted]


def models_to_compare(
    project: Project, before: str, after: str, *, model_before: str | None = None, model_after: str | None = None
) -> tuple[EvaluatedModel, EvaluatedModel]:
    """The two models by the ids of their evaluations, which can be the same evaluation."""
    rows = Evaluation.objects.of(project)
    one, other = find(rows, before, "evaluation"), find(rows, after, "evaluation")
    first = model_of(one, model_before, fallback=model_after or _shared(one, other), path="model_before")
    second = model_of(other, model_after, fallback=first.name if one.pk != other.pk else "", path="model_after")
    if first.pk == second.pk:
        reason = "A model cannot be compared with itself; name another one in `model_after`."
        raise Invalid(reason, errors=[FieldError("model_after", reason)])
    return first, second


def _shared(one: Evaluation, other: Evaluation) -> str:
    """The name of the only model that both have."""
    if one.pk == other.pk:
        return ""
    shared = {model.name for model in one.models.all()} & {model.name for model in other.models.all()}
    return shared.pop() if len(shared) == 1 else ""


def _tier(tier: str, pairs: Sequence[Pair], scale: Scale) -> TierChange:
    return TierChange(tier, len(pairs), changes(pairs, [metric for metric in scale.metrics if metric.by_tier]))
