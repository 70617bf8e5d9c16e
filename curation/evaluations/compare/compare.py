"""Compare two models on the same rows or tasks: the change of each metric and tier, gains and losses."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

from curation.evaluations.compare.pairs import ComparedPair, paired, tasks_of
from curation.evaluations.compare.settings import setting_notes
from curation.evaluations.metrics import SCALES, SHARE, Metric, Scale, column_of, tier_order
from curation.evaluations.missing import failure_notes, missing_pairs, retry_notes
from curation.evaluations.models import EvaluatedModel
from curation.web.text.figures import counted
from judging.statistics.paired import RESAMPLES, McNemar, MeanDifference, PairedVerdict, difference, mcnemar
from judging.statistics.paired_tests import holm

# With many tasks fewer resamples give the same interval, and a page does not have to wait.
INCOMPLETE = "incomplete"
MANY_TASKS, RESAMPLES_OF_MANY = 500, 2_000


@dataclass(frozen=True, slots=True)
class MetricChange:
    """`before` and `after` are means in the metric's unit. `test` is None unless the metric is a rate.

    `corrected` is the p of the sign-flip test, and `equivalence` that of two one-sided tests against `margin`, each
    corrected for the number of `comparisons`. They alone decide the verdict; `incomplete`, with results that are
    missing, has none. A difference below `margin` is none that matters: a share of a metric from 0 to 1 itself, of
    others their earlier mean.
    """

    metric: Metric
    before: float
    after: float
    change: MeanDifference
    test: McNemar | None
    corrected: float
    equivalence: float
    margin: float
    comparisons: int = 1
    incomplete: bool = False

    @property
    def name(self) -> str:
        return self.metric.name

    @property
    def margin_words(self) -> str:
        return f"{100 * self.margin:g} {'points' if self.metric.unit is SHARE else '% of the earlier mean'}"

    @property
    def margin_size(self) -> float:
        """The margin in the metric's own unit."""
        return self.margin if self.metric.unit is SHARE else self.margin * abs(self.before)

    @property
    def said(self) -> PairedVerdict:
        return PairedVerdict.at(self.corrected, self.equivalence)

    @property
    def verdict(self) -> str:
        return INCOMPLETE if self.incomplete else self.said.within(self.margin_words)

    @property
    def is_known(self) -> bool:
        """Whether there is a change, over all that both models were asked for."""
        return not self.incomplete and self.said.is_different

    @property
    def note(self) -> str:
        """Why the verdict differs from the interval or the p of this comparison alone; empty if it does not."""
        if self.incomplete:
            return "Results are missing, so the two models are not compared on all that both were asked for."
        excludes = self.change.interval.excludes_zero()
        if self.said.is_different:
            return "" if excludes else "The interval includes 0; the test decides."
        if self.change.said != self.said:
            among = counted(self.comparisons, "comparison")
            return f"Alone it would be {self.change.said.within(self.margin_words)}; among {among} it may be chance."
        return "The interval excludes 0; the test does not confirm it." if excludes else ""

    @property
    def tasks_missing(self) -> int | None:
        """How many more tasks this change would need to be clear, if it stays as it is; None without a change."""
        needed = self.change.tasks_to_be_clear(self.comparisons)
        if needed is None or self.said == PairedVerdict.CLEAR:
            return None if needed is None else 0
        return max(1, needed - self.change.tasks)

    @property
    def interval(self) -> str:
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
class ModelComparison:
    """`rows` `pairs` in `tasks` tasks; `missing` are those that both were asked for and one has no result of. `notes`
    say which settings differ, and which figures are of a second try. `gains` and `losses` are the pairs whose
    `scale.decisive` changed. `comparisons` are all metrics, of all rows and by tier, which are corrected together."""

    before: EvaluatedModel
    after: EvaluatedModel
    scale: Scale
    rows: int
    tasks: int
    unpaired: int
    missing: int
    notes: tuple[str, ...]
    metrics: tuple[MetricChange, ...]
    tiers: tuple[TierChange, ...]
    pairs: tuple[ComparedPair, ...]
    gains: tuple[ComparedPair, ...]
    losses: tuple[ComparedPair, ...]

    @property
    def extent(self) -> str:
        """What the rows are of, and how many answers were not compared."""
        alone = f", {counted(self.unpaired, 'answer')} without a counterpart in the other model"
        return f"of {counted(self.tasks, 'task')}{alone if self.unpaired else ''}"

    @property
    def comparisons(self) -> int:
        return len(self.metrics) + sum(len(tier.metrics) for tier in self.tiers)


def compare(*, before: EvaluatedModel, after: EvaluatedModel) -> ModelComparison:
    """Raises `Invalid` if the two have no row or task in common."""
    pairs, unpaired = paired(before, after)
    missing = missing_pairs(before, after)
    scale = SCALES[before.evaluation.kind]
    tiers = sorted({pair.tier for pair in pairs}, key=tier_order)
    margin = before.evaluation.project.settings.evaluation.equivalent_within
    overall = changes(pairs, scale.metrics, margin=margin)
    tiered = [metric for metric in scale.metrics if metric.by_tier]
    by_tier = []
    for tier in tiers:
        own = [pair for pair in pairs if pair.tier == tier]
        by_tier.append(TierChange(tier, len(own), changes(own, tiered, margin=margin)))
    every = correct([*overall, *(change for tier in by_tier for change in tier.metrics)])
    corrected = iter([replace(change, incomplete=missing > 0) for change in every])
    gains = [(pair, pair.after.values[scale.decisive] - pair.before.values[scale.decisive]) for pair in pairs]
    return ModelComparison(
        before=before,
        after=after,
        scale=scale,
        rows=len(pairs),
        tasks=len(set(tasks_of(pairs))),
        unpaired=unpaired,
        missing=missing,
        notes=tuple(comparison_notes(before, after)),
        metrics=tuple(islice(corrected, len(overall))),
        tiers=tuple(replace(tier, metrics=tuple(islice(corrected, len(tier.metrics)))) for tier in by_tier),
        pairs=tuple(pairs),
        gains=tuple(pair for pair, gain in gains if gain > 0),
        losses=tuple(pair for pair, gain in gains if gain < 0),
    )


def comparison_notes(before: EvaluatedModel, after: EvaluatedModel) -> list[str]:
    """Sentences about settings that differ, and about failed calls and second tries."""
    own = (note for model in (before, after) for note in (*retry_notes(model), *failure_notes(model)))
    return [*setting_notes(before, after), *own]


def changes(pairs: Sequence[ComparedPair], metrics: Sequence[Metric], *, margin: float) -> tuple[MetricChange, ...]:
    """One change per metric, in their order, each as if it were the only one. A metric that is not defined on both
    sides, such as the steps to complete where nothing was completed, is left out.

    `margin` is a share: of a metric from 0 to 1 itself, of others their earlier mean. Failed calls count as wrong
    answers, but make no two models equivalent.
    """
    tasks = tasks_of(pairs)
    resamples = RESAMPLES_OF_MANY if len(set(tasks)) > MANY_TASKS else RESAMPLES
    found = []
    for metric in metrics:
        old = column_of(metric, [pair.before.values for pair in pairs])
        new = column_of(metric, [pair.after.values for pair in pairs])
        if old is None or new is None:
            continue
        test = mcnemar([value > 0 for value in old], [value > 0 for value in new]) if metric.rate else None
        mean = sum(old) / len(old)
        of_share = metric.unit is SHARE
        size, largest = (margin, 1.0) if of_share else (margin * abs(mean), 0.0)
        change = difference(old, new, tasks, margin=size, largest=largest, resamples=resamples)
        if any(pair.failed for pair in pairs):
            change = replace(change, equivalence=1.0)
        after = sum(new) / len(new)
        found.append(MetricChange(metric, mean, after, change, test, change.p, change.equivalence, margin))
    return tuple(found)


def correct(family: Sequence[MetricChange]) -> list[MetricChange]:
    ps = holm([change.change.p for change in family])
    equal = holm([change.change.equivalence for change in family])
    return [
        replace(change, corrected=p, equivalence=same, comparisons=len(family))
        for change, p, same in zip(family, ps, equal, strict=True)
    ]
