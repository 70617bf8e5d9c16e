"""The page of judges."""

from collections.abc import Iterator
from typing import NamedTuple

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from curation.duels.judges.pages import JudgesQuery, JudgesView, JudgeView, PairView, judges_view
from curation.duels.verdict.report import number, percent
from curation.projects.access import Access, project_page
from curation.projects.models import Scope
from curation.web.lists.filters import url_query
from judging.panel.rubric import DIMENSIONS
from judging.statistics.controls import Kappa


class Cell(NamedTuple):
    """One figure with its name; `url` lists the duels behind it, or the calls."""

    name: str
    text: str
    url: str = ""


@require_GET
@project_page(Scope.READ)
def judge_list(request: HttpRequest, access: Access) -> HttpResponse:
    query = JudgesQuery.from_query(request.GET)
    view = judges_view(access.project, query)
    weights = query.weights or {}
    context = {
        "view": view,
        "query": query,
        "figures": _figures(view, access.project.slug),
        "matrix": _matrix(view.judges),
        "tried": None if view.pairs is None else [(pair, _outcomes(pair)) for pair in view.pairs],
        "weights": [(name, weights.get(name)) for name in DIMENSIONS],
        "api_path": f"/api/v1/projects/{access.project.slug}/judges",
    }
    return render(request, "duels/judges/list.html", context)


def _figures(view: JudgesView, slug: str) -> list[tuple[str, tuple[Cell, ...]]]:
    """Return each figure with its cells, one for each judge."""
    if view.run is None:
        return []
    columns = [tuple(_cells(judge, slug, view.run.pk)) for judge in view.judges]
    return [(cells[0].name, cells) for cells in zip(*columns, strict=True)]


def _cells(judge: JudgeView, slug: str, run: int) -> Iterator[Cell]:
    figures, people = judge.figures, judge.people
    path = reverse("duel-list", args=[slug])

    def listed(**conditions: str) -> str:
        return f"{path}?{url_query([('run', str(run)), ('judge', figures['name']), *conditions.items()])}"

    yield Cell("Duels", str(figures["n"]), listed(said="parsed"))
    yield Cell("Win rate", percent(figures["win_rate"]), listed(said="challenger"))
    halves = figures.get("halves") or (None, None)
    yield Cell("Win rate, first half → second half", " → ".join(map(percent, halves)), listed(said="challenger"))
    leak, clean = figures.get("by_leak") or (None, None)
    yield Cell("Win rate with a leak flag", percent(leak), listed(said="challenger", flags="leak,leak_reader"))
    yield Cell("Win rate without a leak flag", percent(clean), listed(said="challenger"))
    expected = figures.get("first_expected")
    range_ = f" (expected {percent(expected['low'])} to {percent(expected['high'])})" if expected else ""
    yield Cell("Prefers the first answer", percent(figures.get("first_share")) + range_, listed(said="first"))
    flips = figures.get("flips") or {}
    for name in DIMENSIONS:
        yield Cell(f"Flips: {name}", percent(flips.get(name)), listed(said="flip", dimension=name))
    yield Cell("Draws", percent(figures.get("draw_rate")), listed(said="draw"))
    yield Cell("Points for an answer twice as long", number(figures.get("length_slope"), 1), listed(said="parsed"))
    yield Cell("Parsed per attempt", percent(figures["parse_rate"]), listed(said="unparsed"))
    yield Cell("κ with people", _kappa(people.kappa), listed(said="people"))
    yield Cell("Right by people", percent(people.accuracy), listed(said="against_people"))
    controls = f"{percent(figures.get('control_accuracy'))} ({figures.get('controls', 0)} duels)"
    yield Cell("Right on control duels", controls, listed(control="true"))
    cost = "unknown" if judge.per_verdict is None else f"${judge.per_verdict:.6f}"
    calls = reverse("run-calls", args=[slug, run])
    yield Cell("Cost per parsed verdict", cost if figures.get("calls") else "no calls of its own", calls)


def _kappa(kappa: Kappa) -> str:
    range_ = f", {number(kappa.interval.low, 2)} to {number(kappa.interval.high, 2)}" if kappa.interval else ""
    return f"{number(kappa.kappa, 2)}{range_} ({kappa.n} duels)"


def _matrix(judges: tuple[JudgeView, ...]) -> list[tuple[str, list[str]]]:
    names = [judge.figures["name"] for judge in judges]
    shares = [judge.figures.get("agreement") or {} for judge in judges]
    return [(name, [percent(share.get(other)) for other in names]) for name, share in zip(names, shares, strict=True)]


def _outcomes(pair: PairView) -> list[tuple[str, str, str, str]]:
    """Return (name, margin, LCB, word) before and after."""
    before, after = pair.before, pair.after
    return [
        _outcome("The run", before.get("margin"), before.get("lcb"), before.get("accepted"), before),
        _outcome("Tried", after.margin, after.lcb, after.accepted, {"undecided_without": after.undecided_without}),
    ]


def _outcome(name: str, margin: object, lcb: object, accepted: object, rest: object) -> tuple[str, str, str, str]:
    undecided = isinstance(rest, dict) and rest.get("undecided_without")
    word = "Accepted" if accepted else "Undecided" if undecided else "Not accepted"
    return name, number(margin, 1), number(lcb, 1), word
