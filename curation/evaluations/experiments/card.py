"""The contents of a card: the expected changes, ticked off by the comparison of the base with the trained model."""

from dataclasses import replace

from pydantic import Field

from curation.evaluations.compare.compare import MetricChange, changes, comparison_notes, correct
from curation.evaluations.compare.pairs import paired
from curation.evaluations.metrics import SCALES
from curation.evaluations.missing import missing_pairs
from curation.evaluations.models import Experiment
from curation.web.problems import Invalid
from curation.web.schemas import Out
from curation.web.text.figures import counted

METRICS = {metric.name: metric for scale in SCALES.values() for metric in scale.metrics}


class ExpectationOut(Out):
    """`reached` and the comparison are null until both models were evaluated on common rows."""

    metric: str
    expected: float
    reached: bool | None
    delta: float | None = None
    low: float | None = None
    high: float | None = None
    said: str | None = None
    # As the page shows the change; `is_known` is false of one that may be chance.
    observed: str = Field(exclude=True)
    is_known: bool = Field(exclude=True)

    @property
    def word(self) -> str:
        if not self.reached:
            return "open" if self.reached is None else "not reached"
        return "reached" if self.is_known else "reached, may be chance"

    @property
    def tone(self) -> str:
        if not self.reached:
            return "" if self.reached is None else "bad"
        return "good" if self.is_known else "attention"

    @property
    def label(self) -> str:
        return METRICS[self.metric].label

    @property
    def wanted(self) -> str:
        return METRICS[self.metric].unit.change(self.expected)


def expectations(experiment: Experiment) -> tuple[list[ExpectationOut], str, list[str]]:
    """Return the expectations, why none of them can be checked, or an empty text, and sentences about the comparison.
    Needs the models with their evaluations."""
    found: dict[str, MetricChange] = {}
    problem, notes = "", []
    if experiment.base is None or experiment.trained is None:
        problem = "Name an evaluated base and an evaluated trained model to check what was expected."
    else:
        try:
            pairs, unpaired = paired(experiment.base, experiment.trained)
        except Invalid as invalid:
            problem = invalid.detail
        else:
            if unpaired:
                alone = f"{counted(unpaired, 'answer')} without a counterpart in the other model"
                notes = [f"Over {counted(len(pairs), SCALES[experiment.base.evaluation.kind].noun)}; {alone}."]
            notes += comparison_notes(experiment.base, experiment.trained)
            metrics = [METRICS[name] for name in experiment.expected if name in pairs[0].before.values]
            incomplete = missing_pairs(experiment.base, experiment.trained) > 0
            corrected = correct(
                changes(pairs, metrics, margin=experiment.project.settings.evaluation.equivalent_within)
            )
            found = {change.name: replace(change, incomplete=incomplete) for change in corrected}
    # In the order of the metrics: PostgreSQL keeps no order of keys.
    listed = [name for name in METRICS if name in experiment.expected]
    return [_expectation(name, experiment.expected[name], found.get(name)) for name in listed], problem, notes


def _expectation(metric: str, expected: float, change: MetricChange | None) -> ExpectationOut:
    """None of the rows may be missing where an expectation is reached."""
    if change is None:
        return ExpectationOut(metric=metric, expected=expected, reached=None, observed="", is_known=False)
    found = change.change
    delta = round(found.delta, 6)
    return ExpectationOut(
        metric=metric,
        expected=expected,
        reached=None if change.incomplete else delta >= expected if expected >= 0 else delta <= expected,
        delta=_rounded(found.delta),
        low=_rounded(found.interval.low),
        high=_rounded(found.interval.high),
        said=change.verdict,
        observed=f"{change.metric.unit.change(found.delta)} ({change.interval}), {change.verdict}",
        is_known=change.is_known,
    )


def _rounded(share: float) -> float:
    return round(share, 4) + 0.0
