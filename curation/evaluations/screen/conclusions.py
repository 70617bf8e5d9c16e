"""A static screen's conclusion about each model: verdict, weaknesses, targets, and the time that training takes."""

from collections.abc import Mapping, Sequence

from pydantic import Field

from curation.evaluations.metrics import STATIC
from curation.evaluations.models import Evaluation, EvaluationKind
from curation.evaluations.screen.figures import Row, number
from curation.projects.settings.evaluation import EvaluationSettings as Rules
from curation.web.schemas import out
from curation.web.text.figures import counted, percent
from judging.commands.rules import FIGURES, conclusions

LABELS = {metric.name: metric.label for metric in STATIC}
SECONDS_PER_HOUR = 3600


@out
class TargetOut:
    """The gap between a figure and its target: shares from 0 to 1; `missing` is 0 if the target is reached."""

    metric: str
    value: float
    target: float
    missing: float

    @property
    def words(self) -> str:
        have = f"{LABELS[self.metric]} {percent(self.value)}"
        return f"{have}, {100 * self.missing:.0f} points to {percent(self.target)}" if self.missing else f"{have} ✓"


@out
class ConclusionOut:
    """By the rules of the settings `evaluation.weaknesses`, `evaluation.train` and `evaluation.targets`."""

    model: str
    verdict: str = Field(description="The figures in a sentence.")
    weaknesses: list[str] = Field(description="All rules that apply.")
    train: str = Field(examples=["yes: the best of this screen"], description="The first rule that applies.")
    alike: bool = Field(description="Its `exact` rate cannot be told from that of the best model.")
    targets: list[TargetOut] = Field()
    generations: int = Field(description="Answers of one epoch of training.")
    hours: float = Field(description="Their time one after another, at the measured latency.")

    @property
    def seconds(self) -> float:
        return self.hours * SECONDS_PER_HOUR


def conclusions_of(evaluation: Evaluation, rows: Sequence[Row]) -> list[ConclusionOut]:
    """Return the conclusions of a static screen by the project's rules of today; live episodes have none."""
    is_static = evaluation.kind == EvaluationKind.STATIC
    return conclude(rows, evaluation.project.settings.evaluation) if is_static else []


def conclude(rows: Sequence[Row], rules: Rules) -> list[ConclusionOut]:
    """A row that lacks answers concludes nothing, and is the best of none."""
    whole = [row for row in rows if number(row, "n") and not row.get("incomplete")]
    best = max(whole, key=lambda row: (number(row, "exact"), number(row, "xtr"), -number(row, "lat")), default={})
    tied = [row["exact"] for row in whole].count(best.get("exact")) > 1
    return [_conclusion(row, best, rules, tied=tied) if row in whole else _incomplete(row) for row in rows]


def _incomplete(row: Row) -> ConclusionOut:
    lacks, n = int(number(row, "rows_missing")), int(number(row, "n"))
    verdict = f"Not known: {counted(lacks, 'row')} of {lacks + n:,} {'has' if lacks == 1 else 'have'} no result."
    return ConclusionOut(str(row["model"]), verdict, [], "not known: rows are missing", False, [], 0, 0.0)


def _conclusion(row: Row, best: Row, rules: Rules, *, tied: bool) -> ConclusionOut:
    figures = {**_figures(row), **{f"best_{name}": value for name, value in _figures(best).items()}}
    generations = rules.group_size * rules.training_prompts * rules.training_turns
    alike = row is not best and _interval(row)[1] >= _interval(best)[0]
    return ConclusionOut(
        model=str(row["model"]),
        verdict=_verdict(row, is_best=row is best, alike=alike, tied=tied),
        weaknesses=list(conclusions(rules.weaknesses, figures)),
        train=next(iter(conclusions(rules.train, figures)), "no rule applies"),
        alike=alike,
        targets=[
            TargetOut(name, figures[name], target, round(max(0.0, target - figures[name]), 4))
            for name, target in rules.targets.items()
        ],
        generations=generations,
        hours=round(generations * number(row, "lat") / SECONDS_PER_HOUR, 2),
    )


def _figures(row: Row) -> Mapping[str, float]:
    """The figures as rules read them: errors and cut answers as shares of the rows."""
    n = number(row, "n")
    return {name: number(row, name) / (n if name in ("errors", "cut") else 1) for name in FIGURES}


def _interval(row: Row) -> tuple[float, float]:
    intervals = row["intervals"]
    low, high = intervals["exact"] if isinstance(intervals, dict) else (0.0, 1.0)
    return float(low), float(high)


def _verdict(row: Row, *, is_best: bool, alike: bool, tied: bool) -> str:
    low, high = _interval(row)
    rate = f"{percent(number(row, 'exact'))} of {counted(int(number(row, 'n')), 'answer')} are exact"
    likely = f"between {percent(low)} and {percent(high)} on other rows"
    most = "as many as of another model" if tied else "the most of all"
    place = f", {most}" if is_best else "; these rows cannot separate it from the best" if alike else ""
    return f"{rate} ({likely}){place}; {number(row, 'lat'):.1f} s each."
