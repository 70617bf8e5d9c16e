"""What curation bought: the models of each arm, and the difference of two arms over seeds and rows."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from curation.evaluations.compare.compare import INCOMPLETE
from curation.evaluations.contamination.kind import ContaminationRun
from curation.evaluations.models import ContaminationCheck, EvaluatedModel, Evaluation, ScreenedAnswer
from curation.evaluations.screen.context import COLUMN_WORDS
from curation.evaluations.uplift.params import Arm, UpliftParams
from curation.runs.models import Item, ItemState, Run
from curation.web.text.figures import counted, percent
from judging.statistics.paired import PairedVerdict
from judging.statistics.paired_tests import holm
from judging.statistics.seeds import difference_over_seeds

Floats = NDArray[np.float64]
# Instead of a metric, where the trainer returned one figure for each seed and no answers.
FIGURE = "figure"
WORDS = {
    **dict(COLUMN_WORDS),
    "exact": "exact match",
    "service_and_op": "service and operation",
    FIGURE: "the trainer's own figure",
}


class ArmFigures(BaseModel):
    """The models of an arm. `values` are their shares of right answers by seed, `mean` that of all. `seconds` are those
    of all trainings with their answers, `tokens` and `cost` as the trainer tells, None if it does not. `left_out` is
    how many of the rows a training did not read, or not to their end: the most of all trainings."""

    name: str
    rows: int
    left_out: int = 0
    values: dict[int, float]
    mean: float | None
    seconds: float
    tokens: int | None
    cost: float | None
    device: str = ""

    @property
    def left_out_text(self) -> str:
        """A sentence; empty if all rows were read."""
        if not self.left_out:
            return ""
        of = f"{self.left_out:,} of the {counted(self.rows, 'row')} of {self.name}"
        return f"{of} taught nothing or only a part: they are longer than the trainer reads."

    @property
    def mean_text(self) -> str:
        return "–" if self.mean is None else percent(self.mean, 1)

    @property
    def values_text(self) -> str:
        return " · ".join(f"{seed}: {percent(value, 1)}" for seed, value in self.values.items()) or "–"


class Gain(BaseModel):
    """The change of the metric from the arm `before` to `after`, as a share, over the `seeds` that both have. `p` and
    `equivalence` are corrected for the number of gains. `said` is the verdict, `incomplete` with trainings missing."""

    before: str
    after: str
    seeds: int
    rows: int
    delta: float | None = None
    low: float | None = None
    high: float | None = None
    p: float = 1.0
    equivalence: float = 1.0
    said: str = INCOMPLETE

    @property
    def sentence(self) -> str:
        return f"{self.after} against {self.before}: {self.points}"

    @property
    def points(self) -> str:
        if self.delta is None or self.low is None or self.high is None:
            return "too few trainings have ended"
        return f"{100 * self.delta:+.1f} points ({100 * self.low:+.1f} to {100 * self.high:+.1f})"

    @property
    def tone(self) -> str:
        if not self.said.startswith(("likely", "clearly")):
            return "muted"
        return "good" if (self.delta or 0) > 0 else "bad"


def uplift_of(evaluation: Evaluation, params: UpliftParams, arms: Sequence[Arm]) -> tuple[list[ArmFigures], list[Gain]]:
    """Return the figures of the trainings that have ended, by arm and by pair of arms."""
    ended = list(Item.objects.filter(run=evaluation.run, stage="train", state=ItemState.DONE).order_by("id"))
    answers, tasks = _answers(evaluation, params.metric)
    found: dict[str, dict[int, Floats]] = {arm.name: {} for arm in arms}
    for item in ended:
        figure = item.result.get("figure")
        values = answers.get(item.data["place"]) if figure is None else np.array([figure])
        if values is not None:
            found[item.data["arm"]][item.data["seed"]] = values
    figures = [_arm(arm, found[arm.name], [item for item in ended if item.data["arm"] == arm.name]) for arm in arms]
    before, after, *cut = arms
    pairs = [(before, after), *((one, after) if one.files == before.files else (before, one) for one in cut)]
    gains = [_gain(one, other, found, tasks, params, evaluation) for one, other in pairs]
    margin = evaluation.project.settings.evaluation.equivalent_within
    corrected = zip(gains, holm([one.p for one in gains]), holm([one.equivalence for one in gains]), strict=True)
    for gain, p, equal in corrected:
        gain.p, gain.equivalence = p, equal
        if gain.seeds == params.seeds:
            gain.said = PairedVerdict.at(p, equal).within(f"{100 * margin:g} points")
    return figures, gains


def _answers(evaluation: Evaluation, metric: str) -> tuple[dict[int, Floats], list[str]]:
    """The right answers of each model by its place, in the order of the rows, and the tasks of the rows."""
    rows = [] if evaluation.split is None else list(evaluation.split.rows.order_by("number", "turn"))
    places = {row.pk: place for place, row in enumerate(rows)}
    models = dict(EvaluatedModel.objects.filter(evaluation=evaluation).values_list("pk", "place"))
    found: dict[int, Floats] = {}
    for by, row, right in ScreenedAnswer.objects.filter(evaluation=evaluation).values_list("by", "row", metric):
        found.setdefault(models[by], np.zeros(len(rows)))[places[row]] = right
    return found, [row.task for row in rows]


def _arm(arm: Arm, found: Mapping[int, Floats], items: Sequence[Item]) -> ArmFigures:
    values = {seed: round(float(one.mean()), 4) for seed, one in sorted(found.items())}
    costs = [item.result.get("costs") or {} for item in items]
    return ArmFigures(
        name=arm.name,
        rows=arm.size,
        left_out=max((arm.size - _rows(one, arm) for one in costs), default=0),
        values=values,
        mean=round(float(np.mean(list(values.values()))), 4) if values else None,
        seconds=round(sum(item.result.get("seconds", 0.0) for item in items), 1),
        tokens=_total([one.get("tokens") for one in costs], int),
        cost=_total([one.get("cost") for one in costs], float),
        device=", ".join(sorted({str(one["device"]) for one in costs if "device" in one})),
    )


def _rows(costs: Mapping[str, object], arm: Arm) -> int:
    """How many rows the training has read to their end, all of them if the trainer does not tell."""
    told = costs.get("rows")
    return min(told, arm.size) if isinstance(told, int) and not isinstance(told, bool) else arm.size


def _total(given: Sequence[object], of: type) -> int | float | None:
    """The sum, or None if one of them is unknown."""
    known = [one for one in given if isinstance(one, int | float) and not isinstance(one, bool)]
    return of(sum(known)) if known and len(known) == len(given) else None


def _gain(
    before: Arm,
    after: Arm,
    found: Mapping[str, Mapping[int, Floats]],
    tasks: Sequence[str],
    params: UpliftParams,
    evaluation: Evaluation,
) -> Gain:
    """The gain over the seeds of which both arms have results of one kind; each row, or the figure, is a column."""
    one, other = found[before.name], found[after.name]
    seeds = sorted(seed for seed in one.keys() & other.keys() if one[seed].shape == other[seed].shape)
    gain = Gain(before=before.name, after=after.name, seeds=len(seeds), rows=0)
    if len(seeds) < 2 or len({one[seed].shape for seed in seeds}) > 1:
        return gain
    differences = np.array([other[seed] - one[seed] for seed in seeds])
    rows = differences.shape[1]
    margin = evaluation.project.settings.evaluation.equivalent_within
    known = difference_over_seeds(differences, tasks if rows == len(tasks) else [""], margin=margin)
    gain.rows, gain.delta, gain.p, gain.equivalence = rows, round(known.delta, 4), known.p, known.equivalence
    gain.low, gain.high = round(known.interval.low, 4), round(known.interval.high, 4)
    return gain


def metric_of(run: Run, metric: str) -> str:
    """Return the metric of the answers, or `FIGURE` if the trainer scored its models itself."""
    results = Item.objects.filter(run=run, stage="train", state=ItemState.DONE).values_list("result", flat=True)
    return FIGURE if any(result.get("figure") is not None for result in results) else metric


def held_out_notes(evaluation: Evaluation, exports: Mapping[str, str]) -> list[str]:
    """For each export by its name, say which rows of the split its newest check found, or that there is none."""
    notes = []
    for name, export in exports.items():
        check = ContaminationCheck.objects.filter(run__params__export=export).newest(evaluation.split)
        said = ContaminationRun().conclude(check.run) if check else "Not checked for rows of the split."
        notes.append(f"{name[0].upper()}{name[1:]}: {said}")
    return notes


def conclusion(gain: Gain, metric: str) -> str:
    """The answer to the question of the run, in one sentence."""
    words, over = WORDS[metric], f"over {counted(gain.seeds, 'seed')}"
    if gain.said == INCOMPLETE:
        return f"Not known, because trainings are missing: {gain.sentence}."
    if gain.said == PairedVerdict.NOT_KNOWN.value:
        return f"Not known whether {words} changes: {gain.sentence}, {over}."
    if gain.tone == "muted":
        return f"No difference in {words} that matters: {gain.sentence}, {gain.said}, {over}."
    sure, did = gain.said.split()[0], "gains" if (gain.delta or 0) > 0 else "loses"
    return f"Training on {gain.after} {sure} {did} {words} against {gain.before}: {gain.points}, {over}."
