from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from ninja import Query, Router, Schema
from pydantic import Field

from curation.duels.judge_behaviour.charts import accuracy_chart, agreement_chart
from curation.duels.judge_behaviour.context import (
    JudgeOut,
    JudgesQuery,
    TriedOut,
    judges_of,
    runs_to_show,
    tried_verdicts,
)
from curation.duels.judge_behaviour.queries import PeopleOut
from curation.duels.score.panels import dimensions_of
from curation.duels.verdict.report import decision_of
from curation.projects.access import Access, enter, project_page
from curation.projects.models import Scope
from curation.samples.blind import has_hidden, refuse_pending, refuse_undecided
from curation.samples.models import Sample
from curation.web.lists.filters import url_query
from curation.web.schemas import Id
from curation.web.text.figures import money, number, percent
from judging.panel.rubric import in_order
from judging.planted_faults import ControlKind


class JudgeFigure(NamedTuple):
    """One figure with its name. `url` lists the duels, or the calls, behind it, and `behind` counts them (None in the
    result of an earlier version)."""

    name: str
    text: str
    url: str
    behind: int | None
    noun: str = "duel"


_PARTS = (
    ("first_half", "first half of the run"),
    ("second_half", "second half of the run"),
    ("leak", "with a leak flag"),
    ("no_leak", "without a leak flag"),
)
_CONTROLS = (
    (ControlKind.SAME, "of the same answer twice"),
    (ControlKind.FAULT, "with a planted fault"),
    (ControlKind.BRIBE, "with and without a bribe"),
    (ControlKind.PEOPLE, "that people decided"),
)


@project_page(Scope.READ, "GET", closed_to=has_hidden)
def judge_list(request: HttpRequest, access: Access) -> HttpResponse:
    refuse_undecided(access)
    query = JudgesQuery.from_query(request.GET)
    runs, run = runs_to_show(access.project, query)
    judges = judges_of(run) if run else []
    tried = tried_verdicts(run, query) if run else None
    context = {
        "run": run,
        "runs": runs,
        "judges": judges,
        "query": query,
        "figures": _figures(judges, access.project.slug, run.pk) if run else [],
        "matrix": _matrix(judges),
        "accuracy": accuracy_chart(judges),
        "agreement": agreement_chart(judges),
        "tried": None
        if tried is None
        else [(pair, [_outcome("The run", pair.before), _outcome("Tried", pair.after)]) for pair in tried],
        "dimensions": dimensions_of(run) if run else (),
        "weights": ", ".join(f"{name}={weight:g}" for name, weight in (query.weights or {}).items()),
        "api_path": f"/api/v1/projects/{access.project.slug}/judges",
    }
    return render(request, "duels/judge_behaviour/list.html", context)


router = Router(tags=["duels"])


class JudgesOut(Schema):
    run: Id | None = Field(examples=["12"], description="Null if no run has judged anything.")
    runs: list[Id] = Field(examples=[["12", "9"]], description="Runs with scores, the newest first.")
    judges: list[JudgeOut]
    verdicts: list[TriedOut] | None = Field(description="Null unless judges are left out or weights are given.")


@router.get("/projects/{slug}/judges", response=JudgesOut, summary="How each judge of a run behaved")
def list_judges(request: HttpRequest, slug: str, params: Query[JudgesQuery]) -> dict[str, object]:
    """With `without` or weights also the verdicts that they would give. Nothing is stored, no model is called.
    While you review blind, it opens when all samples are decided."""
    access = enter(request, slug, Scope.READ)
    refuse_pending(access, Sample.objects.of(access.project), "the page of judges")
    runs, run = runs_to_show(access.project, params)
    verdicts = tried_verdicts(run, params) if run else None
    return {"run": run, "runs": runs, "judges": judges_of(run) if run else [], "verdicts": verdicts}


def _figures(judges: Sequence[JudgeOut], slug: str, run: int) -> list[tuple[str, tuple[JudgeFigure, ...]]]:
    names = in_order(name for judge in judges for name in judge.figures.flips)
    columns = [tuple(_cells(judge, slug, run, names)) for judge in judges]
    return [(cells[0].name, cells) for cells in zip(*columns, strict=True)]


def _cells(judge: JudgeOut, slug: str, run: int, names: Sequence[str]) -> Iterator[JudgeFigure]:
    figures, people = judge.figures, judge.people
    path = reverse("duel-list", args=[slug])

    counts = figures.counts

    def listed(**conditions: str) -> str:
        return f"{path}?{url_query([('run', str(run)), ('judge', judge.name), *conditions.items()])}"

    yield JudgeFigure("Duels", number(figures.n), listed(said="parsed"), figures.n)
    yield JudgeFigure("Win rate", percent(figures.win_rate, 1), listed(said="parsed"), figures.n)
    for said, name in (("challenger", "the challenger"), ("neither", "neither"), ("opponent", "its opponent")):
        count = counts.get(said)
        share = count / figures.n if count is not None and figures.n else None
        yield JudgeFigure(f"Prefers {name}", percent(share, 1), listed(said=said), count)
    rates = [*figures.halves, *figures.by_leak]
    for rate, (part, name) in zip(rates, _PARTS, strict=True):
        yield JudgeFigure(f"Win rate, {name}", percent(rate, 1), listed(said="parsed", part=part), counts.get(part))
    expected = figures.first_expected
    range_ = f" (expected {percent(expected.low, 1)} to {percent(expected.high, 1)})" if expected else ""
    first = percent(figures.first_share, 1) + range_
    yield JudgeFigure("Prefers the first answer", first, listed(said="chosen"), counts.get("chosen"))
    for name in names:
        url = listed(said="flip", dimension=name)
        yield JudgeFigure(f"Flips: {name}", percent(figures.flips.get(name), 1), url, counts.get(f"flip:{name}"))
    yield JudgeFigure("Draws", percent(figures.draw_rate, 1), listed(said="draw"), counts.get("draw"))
    slope = number(figures.length_slope, 1)
    yield JudgeFigure("Points for an answer twice as long", slope, listed(said="parsed"), figures.n)
    yield JudgeFigure(
        "Parsed per attempt", percent(figures.parse_rate, 1), listed(said="unparsed"), counts.get("unparsed")
    )
    yield JudgeFigure("κ with people", _kappa(people), listed(said="people"), people.n)
    yield JudgeFigure("Right by people", percent(people.accuracy, 1), listed(said="against_people"), people.against)
    accuracy = percent(figures.control_accuracy, 1)
    url = listed(said="parsed", control="true", part="known")
    yield JudgeFigure("Right on control duels", accuracy, url, figures.controls)
    for kind, name in _CONTROLS:
        right, read = figures.control_kinds.get(kind.value, (None, 0))
        url = listed(said="parsed", control="true", part=kind.value)
        yield JudgeFigure(f"Right on those {name}", percent(right, 1), url, read)
        if kind == ControlKind.SAME:
            yield JudgeFigure("Prefers one of two equal answers", percent(figures.false_preference, 1), url, read)
    calls = f"{reverse('run-calls', args=[slug, run])}?{url_query([('model', judge.name), ('stage', 'judge')])}"
    yield JudgeFigure(
        "Cost per parsed verdict",
        money(judge.cost_per_verdict) if figures.calls else "no calls of its own",
        calls,
        figures.calls,
        "call",
    )


def _kappa(people: PeopleOut) -> str:
    ends = " to ".join(number(end, 2) for end in people.kappa_interval or ())
    return f"{number(people.kappa, 2)}, {ends}" if ends else number(people.kappa, 2)


def _matrix(judges: Sequence[JudgeOut]) -> list[tuple[str, list[str]]]:
    names = [judge.name for judge in judges]
    return [(judge.name, [percent(judge.figures.agreement.get(other), 1) for other in names]) for judge in judges]


def _outcome(name: str, gate: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """Return the name with the gate's margin, LCB and decision."""
    return name, number(gate.get("margin"), 1), number(gate.get("lcb"), 1), decision_of(gate).capitalize()
