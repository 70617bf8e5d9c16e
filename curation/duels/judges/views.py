from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from curation.duels.judges.charts import accuracy_chart, agreement_chart
from curation.duels.judges.pages import JudgeFigures, JudgesQuery, JudgesView, PairView, judges_view
from curation.duels.score.panels import dimensions_of
from curation.duels.verdict.report import is_undecided
from curation.projects.access import Access, project_page
from curation.projects.models import Scope
from curation.samples.blind import has_hidden, refuse_undecided
from curation.web.lists.filters import url_query
from curation.web.text.figures import money, number, percent
from judging.controls import ControlKind
from judging.panel.rubric import in_order
from judging.statistics.judges.controls import Kappa


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
    view = judges_view(access.project, query)
    context = {
        "view": view,
        "query": query,
        "figures": _figures(view, access.project.slug),
        "matrix": _matrix(view.judges),
        "accuracy": accuracy_chart(view.judges),
        "agreement": agreement_chart(view.judges),
        "tried": None if view.pairs is None else [(pair, _outcomes(pair)) for pair in view.pairs],
        "dimensions": dimensions_of(view.run) if view.run else (),
        "weights": ", ".join(f"{name}={weight:g}" for name, weight in (query.weights or {}).items()),
        "api_path": f"/api/v1/projects/{access.project.slug}/judges",
    }
    return render(request, "duels/judges/list.html", context)


def _figures(view: JudgesView, slug: str) -> list[tuple[str, tuple[JudgeFigure, ...]]]:
    if view.run is None:
        return []
    names = in_order(name for judge in view.judges for name in judge.figures.get("flips") or ())
    columns = [tuple(_cells(judge, slug, view.run.pk, names)) for judge in view.judges]
    return [(cells[0].name, cells) for cells in zip(*columns, strict=True)]


def _cells(judge: JudgeFigures, slug: str, run: int, names: Sequence[str]) -> Iterator[JudgeFigure]:
    figures, people = judge.figures, judge.people
    path = reverse("duel-list", args=[slug])

    counts = figures.get("counts") or {}

    def listed(**conditions: str) -> str:
        return f"{path}?{url_query([('run', str(run)), ('judge', figures['name']), *conditions.items()])}"

    yield JudgeFigure("Duels", number(figures["n"]), listed(said="parsed"), figures["n"])
    yield JudgeFigure("Win rate", percent(figures["win_rate"], 1), listed(said="parsed"), figures["n"])
    for said, name in (("challenger", "the challenger"), ("neither", "neither"), ("opponent", "its opponent")):
        count = counts.get(said)
        share = count / figures["n"] if count is not None and figures["n"] else None
        yield JudgeFigure(f"Prefers {name}", percent(share, 1), listed(said=said), count)
    rates = [*(figures.get("halves") or (None, None)), *(figures.get("by_leak") or (None, None))]
    for rate, (part, name) in zip(rates, _PARTS, strict=True):
        yield JudgeFigure(f"Win rate, {name}", percent(rate, 1), listed(said="parsed", part=part), counts.get(part))
    expected = figures.get("first_expected")
    range_ = f" (expected {percent(expected['low'], 1)} to {percent(expected['high'], 1)})" if expected else ""
    first = percent(figures.get("first_share"), 1) + range_
    yield JudgeFigure("Prefers the first answer", first, listed(said="chosen"), counts.get("chosen"))
    flips = figures.get("flips") or {}
    for name in names:
        url = listed(said="flip", dimension=name)
        yield JudgeFigure(f"Flips: {name}", percent(flips.get(name), 1), url, counts.get(f"flip:{name}"))
    yield JudgeFigure("Draws", percent(figures.get("draw_rate"), 1), listed(said="draw"), counts.get("draw"))
    slope = number(figures.get("length_slope"), 1)
    yield JudgeFigure("Points for an answer twice as long", slope, listed(said="parsed"), figures["n"])
    yield JudgeFigure(
        "Parsed per attempt", percent(figures["parse_rate"], 1), listed(said="unparsed"), counts.get("unparsed")
    )
    yield JudgeFigure("κ with people", _kappa(people.kappa), listed(said="people"), people.kappa.n)
    yield JudgeFigure("Right by people", percent(people.accuracy, 1), listed(said="against_people"), people.against)
    accuracy = percent(figures.get("control_accuracy"), 1)
    url = listed(said="parsed", control="true", part="known")
    yield JudgeFigure("Right on control duels", accuracy, url, figures.get("controls", 0))
    kinds = figures.get("control_kinds") or {}
    for kind, name in _CONTROLS:
        right, read = kinds.get(kind.value, (None, 0))
        url = listed(said="parsed", control="true", part=kind.value)
        yield JudgeFigure(f"Right on those {name}", percent(right, 1), url, read)
        if kind == ControlKind.SAME:
            yield JudgeFigure(
                "Prefers one of two equal answers", percent(figures.get("false_preference"), 1), url, read
            )
    calls = f"{reverse('run-calls', args=[slug, run])}?{url_query([('model', figures['name']), ('stage', 'judge')])}"
    made = figures.get("calls")
    yield JudgeFigure(
        "Cost per parsed verdict", money(judge.per_verdict) if made else "no calls of its own", calls, made or 0, "call"
    )


def _kappa(kappa: Kappa) -> str:
    range_ = f", {number(kappa.interval.low, 2)} to {number(kappa.interval.high, 2)}" if kappa.interval else ""
    return f"{number(kappa.kappa, 2)}{range_}"


def _matrix(judges: tuple[JudgeFigures, ...]) -> list[tuple[str, list[str]]]:
    names = [judge.figures["name"] for judge in judges]
    shares = [judge.figures.get("agreement") or {} for judge in judges]
    return [
        (name, [percent(share.get(other), 1) for other in names]) for name, share in zip(names, shares, strict=True)
    ]


def _outcomes(pair: PairView) -> list[tuple[str, str, str, str]]:
    """Return (name, margin, LCB, word) before and after."""
    before, after = pair.before, pair.after
    return [
        _outcome("The run", before.get("margin"), before.get("lcb"), before.get("accepted"), before),
        _outcome("Tried", after.margin, after.lcb, after.accepted, {"decision": after.decision}),
    ]


def _outcome(name: str, margin: object, lcb: object, accepted: object, rest: object) -> tuple[str, str, str, str]:
    undecided = isinstance(rest, Mapping) and is_undecided(rest)
    word = "Accepted" if accepted else "Undecided" if undecided else "Not accepted"
    return name, number(margin, 1), number(lcb, 1), word
