"""The page of judges: figures by judge, and the verdicts without some judges or with other weights."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from pydantic import Field

from curation.duels.judges.queries import WithPeople, gates_without, judged_runs, with_people
from curation.duels.models import Verdict
from curation.duels.score.panels import dimensions_of
from curation.duels.verdict.report import sentences_of
from curation.duels.verdict.stage import Contestant, keys_of, pair_of
from curation.llm.models import Endpoint
from curation.projects.models import Project
from curation.runs.kinds import Json
from curation.runs.models import Run
from curation.web.ids import find
from curation.web.lists.filters import RequestQuery, Words
from curation.web.problems import FieldError, Invalid
from judging.panel.rubric import complete
from judging.statistics.acceptance import GateResult

MOST_WEIGHT = 1000.0


class JudgesQuery(RequestQuery):
    """The run and what to try: judges to leave out and weights of dimensions."""

    run: str | None = Field(None, description="A run with scores; the newest one if missing.")
    panel: str | None = Field(None, description="Only runs with scores of this panel.")
    without: Words = Field((), description="Judges to leave out.")
    weight: Words = Field((), description="Weights of dimensions as `correctness=2,progress=0`; the others weigh 1.")

    @property
    def left_out(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for group in self.without for name in group))

    @property
    def weights(self) -> dict[str, float] | None:
        """Raises `Invalid` for a word that is not `dimension=number`."""
        found = {}
        for word in (word for group in self.weight for word in group):
            name, _, number = word.partition("=")
            try:
                found[name.strip()] = float(number)
            except ValueError:
                found[name.strip()] = -1.0
            if not 0 <= found[name.strip()] <= MOST_WEIGHT:
                raise Invalid.at("weight", f"A weight is `dimension=number` from 0 to {MOST_WEIGHT:g}, not {word!r}.")
        return found or None


@dataclass(frozen=True, slots=True)
class JudgeFigures:
    """A judge's figures in the run's result, with those that depend on people's decisions.

    `deleted`: no model of the project has its name. `per_verdict` is in dollars: the run's calls of the judge by the
    verdicts of them that parsed; None if there are none, or the cost of a call is unknown.
    """

    figures: Json
    people: WithPeople
    deleted: bool
    per_verdict: Decimal | None

    @property
    def sentences(self) -> list[str]:
        return sentences_of(self.figures)


@dataclass(frozen=True, slots=True)
class PairView:
    """A pair's gate as the run decided it, and as it is without some judges or with other weights."""

    challenger: Contestant
    opponent: Contestant
    before: Mapping[str, object]
    after: GateResult


@dataclass(frozen=True, slots=True)
class JudgesView:
    """`run` is None if no run has judged anything. `pairs` is None unless judges are left out or weights are given."""

    runs: tuple[Run, ...]
    run: Run | None
    judges: tuple[JudgeFigures, ...]
    pairs: tuple[PairView, ...] | None


def judges_view(project: Project, query: JudgesQuery) -> JudgesView:
    """Raise `NotFound` for an unknown run, `Invalid` for judges outside the panel or weights that are all 0."""
    runs = judged_runs(project, query.panel)
    if query.run is not None:
        run = find(Run.objects.of(project).filter(pk__in=[each.pk for each in runs]), query.run, "run of judges")
    elif runs:
        run = runs[0]
    else:
        return JudgesView((), None, (), None)
    figures = run.result["judges"]
    names = [judge["name"] for judge in figures]
    _check(run, query, names)
    known = set(Endpoint.objects.filter(project=project, name__in=names).values_list("name", flat=True))
    people = with_people(run, names)
    judges = tuple(
        JudgeFigures(judge, people[judge["name"]], judge["name"] not in known, _per_verdict(run, judge))
        for judge in figures
    )
    tried = query.left_out or query.weights
    return JudgesView(tuple(runs), run, judges, tuple(_pairs(run, names, query)) if tried else None)


def _check(run: Run, query: JudgesQuery, names: list[str]) -> None:
    unknown = [name for name in query.left_out if name not in names]
    if unknown:
        raise Invalid(
            f"{', '.join(unknown)} did not judge in this run; {', '.join(names)} did.",
            errors=[FieldError("without", "not a judge of this run")],
        )
    if set(query.left_out) == set(names):
        raise Invalid(
            "Every judge is left out. Keep at least one.", errors=[FieldError("without", "leave at least one judge")]
        )
    dimensions = dimensions_of(run)
    if unknown := sorted(set(query.weights or ()) - set(dimensions)):
        detail = f"The run's rubric has no dimension {', '.join(unknown)}; it has {', '.join(dimensions)}."
        raise Invalid.at("weight", detail)
    if not any((complete(query.weights, dimensions) or {"": 1.0}).values()):
        raise Invalid(
            "All weights are 0. Give at least one dimension more than 0.",
            errors=[FieldError("weight", "give one dimension more than 0")],
        )


def _pairs(run: Run, names: list[str], query: JudgesQuery) -> Iterator[PairView]:
    before = {keys_of(pair_of(verdict)): verdict for verdict in run.result.get("verdicts", ()) if verdict["challenger"]}
    for pair, after in gates_without(run, names, query.left_out, query.weights):
        yield PairView(*pair, before.get(keys_of(pair), {}), after)


def _per_verdict(run: Run, judge: Json) -> Decimal | None:
    useful = Verdict.objects.filter(run=run, judge=judge["name"], parsed=True).count()
    cost = judge.get("cost")
    return Decimal(cost) / useful if useful and cost is not None else None
