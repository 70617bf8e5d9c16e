"""The page of thresholds, and the part of it that follows the edges."""

from collections.abc import Sequence

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers

from curation.projects.access import Access, project_page
from curation.projects.models import Scope
from curation.review.thresholds.pages import (
    WIDTH,
    BinOut,
    Cells,
    ThresholdsQuery,
    change_view,
    precision_words,
    scores_view,
)
from curation.samples.blind import has_hidden, refuse_undecided
from curation.web.charts import Figure, axis, bars, color, error_bars, figure
from curation.web.lists.pages import Tab
from curation.web.problems import Problem
from curation.web.text.figures import percent


@project_page(Scope.READ, "GET", closed_to=has_hidden)
def threshold_page(request: HttpRequest, access: Access) -> HttpResponse:
    """Show the effect of the edges in the URL; nothing is saved."""
    project = access.project
    refuse_undecided(access)
    is_part = "HX-Request" in request.headers and "HX-History-Restore-Request" not in request.headers
    query, problem, change, cells = ThresholdsQuery(), None, None, None
    try:
        query = ThresholdsQuery.from_query(request.GET)
        cells = Cells.read(project, query, whole=not is_part)
        change = change_view(project, query, cells)
    except Problem as refused:
        problem = refused
    context: dict[str, object] = {
        "change": change,
        "words": None if change is None else (precision_words(change["saved"]), precision_words(change["tried"])),
        "problem": problem,
        "may_change": access.may(Scope.ADMIN),
        "blind": project.settings.review.blind,
        "query": query,
    }
    status = 200 if problem is None else 422
    if is_part:
        response = render(request, "review/thresholds/_change.html", context, status=status)
        response["HX-Replace-Url"] = f"{request.path}?{request.GET.urlencode()}"
    else:
        scores = scores_view(project, cells or Cells.read(project, query, whole=True))
        saved = project.settings.thresholds
        context |= {
            "scores": scores,
            "uncounted": scores["settled"] - scores["counted"],
            "chart": approval_chart(scores["bins"]),
            "edges": [
                (name, label, request.GET.get(name) or f"{getattr(saved, name):g}")
                for name, label in (("refined", "Refined from"), ("final", "Final from"))
            ],
            "tabs": [
                Tab(label, f"?decisions={word}", query.decisions == word)
                for word, label in (("single", "Decided one by one"), ("all", "All decisions"))
            ],
            "api_path": f"/api/v1/projects/{project.slug}/thresholds",
        }
        response = render(request, "review/thresholds/page.html", context, status=status)
    patch_vary_headers(response, ["HX-Request"])
    return response


def approval_chart(bins: Sequence[BinOut]) -> Figure:
    """Samples by score and status, and below them the share that people approved, with its intervals."""
    middles = [one.low + WIDTH / 2 for one in bins]
    counts = (
        ("approved", "good", [one.approved for one in bins]),
        ("rejected or to refine", "bad", [one.settled for one in bins]),
        ("pending", "line-strong", [one.pending for one in bins]),
    )
    traces = [
        bars(
            name,
            middles,
            values,
            hover="samples: %{y}, score: about %{x}",
            width=WIDTH * 0.92,
            marker={"color": color(token)},
            customdata=[one.url for one in bins],
        )
        for name, token, values in counts
    ]
    rated = [(one, one.rate, one.interval) for one in bins if one.rate is not None and one.interval is not None]
    scores = {"range": [0, 100], "dtick": 10, "fixedrange": True}
    if not rated:  # Plotly cannot place the scores below an axis without a point.
        samples = axis("samples", rangemode="tozero", fixedrange=True)
        return figure(traces, barmode="stack", xaxis=axis("score", **scores), yaxis=samples)
    rates = [rate for _, rate, _ in rated]
    intervals = [tuple(interval) for _, _, interval in rated]
    traces.append(
        {
            "type": "scatter",
            "mode": "markers",
            "name": "approval rate, 95 %",
            "x": [one.low + WIDTH / 2 for one, _, _ in rated],
            "y": rates,
            "yaxis": "y2",
            "marker": {"size": 7, "color": color("chart-1")},
            "error_y": error_bars(rates, intervals, token="chart-1"),  # noqa: S106 - a colour
            "text": [f"{percent(rate)} ({one.rated_approved:,} of {one.rated:,})" for one, rate, _ in rated],
            "hovertemplate": "%{text}<extra></extra>",
            "customdata": [one.url for one, _, _ in rated],
        }
    )
    return figure(
        traces,
        barmode="stack",
        xaxis=axis("score", anchor="y2", **scores),
        yaxis=axis("samples", rangemode="tozero", domain=[0.42, 1], fixedrange=True),
        yaxis2=axis(
            "approved",
            range=[-0.03, 1.03],
            tickvals=[0, 0.5, 1],
            ticktext=[percent(0), percent(0.5), percent(1)],
            domain=[0, 0.32],
            fixedrange=True,
        ),
    )
