"""The contents of a card: the expected changes, ticked off by the comparison of the base with the trained model."""

from dataclasses import dataclass, replace

from curation.evaluations.compare.compare import MetricChange, changes, correct
from curation.evaluations.compare.pairs import paired
from curation.evaluations.metrics import SCALES
from curation.evaluations.missing import missing_pairs
from curation.evaluations.models import Experiment
from curation.web.problems import Invalid

METRICS = {metric.name: metric for scale in SCALES.values() for metric in scale.metrics}


@dataclass(frozen=True, slots=True)
class Expectation:
    """`reached` is None until both models were evaluated on common rows with this metric, and none of these is
    missing."""

    metric: str
    expected: float
    change: MetricChange | None

    @property
    def reached(self) -> bool | None:
        if self.change is None or self.change.incomplete:
            return None
        delta = round(self.change.change.delta, 6)
        return delta >= self.expected if self.expected >= 0 else delta <= self.expected

    @property
    def word(self) -> str:
        return "open" if self.reached is None else "reached" if self.reached else "not reached"

    @property
    def tone(self) -> str:
        return "" if self.reached is None else "good" if self.reached else "bad"

    @property
    def label(self) -> str:
        return METRICS[self.metric].label

    @property
    def wanted(self) -> str:
        return METRICS[self.metric].unit.change(self.expected)

    @property
    def observed(self) -> str:
        if self.change is None:
            return ""
        delta = self.change.metric.unit.change(self.change.change.delta)
        return f"{delta} ({self.change.interval}), {self.change.verdict}"


def expectations(experiment: Experiment) -> tuple[tuple[Expectation, ...], str]:
    """Return the expectations, and why none of them can be checked, or an empty text. Needs the models with their
    evaluations."""
    found: dict[str, MetricChange] = {}
    problem = ""
    if experiment.base is None or experiment.trained is None:
        problem = "Name an evaluated base and an evaluated trained model to check what was expected."
    else:
        try:
            pairs, _ = paired(experiment.base, experiment.trained)
        except Invalid as invalid:
            problem = invalid.detail
        else:
            metrics = [METRICS[name] for name in experiment.expected if name in pairs[0].before.values]
            incomplete = missing_pairs(experiment.base, experiment.trained) > 0
            corrected = correct(
                changes(pairs, metrics, margin=experiment.project.settings.evaluation.equivalent_within)
            )
            found = {change.name: replace(change, incomplete=incomplete) for change in corrected}
    # In the order of the metrics: PostgreSQL keeps no order of keys.
    listed = [name for name in METRICS if name in experiment.expected]
    return tuple(Expectation(name, experiment.expected[name], found.get(name)) for name in listed), problem
