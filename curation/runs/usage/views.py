from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse
from ninja import Query, Router
from pydantic import Field

from curation.llm.endpoints.settings_endpoints import endpoint_of
from curation.llm.models import Endpoint
from curation.projects.access import Access, enter, project_page
from curation.projects.models import Scope
from curation.runs.calls.move import USAGE_DAYS
from curation.runs.usage.figures import ENDED, UsageFigures, usage_by_day
from curation.web.charts import DAY_MS, Figure, axis, bars, color, figure, lines
from curation.web.lists.filters import RequestQuery
from curation.web.lists.pages import Tab
from curation.web.schemas import answer
from curation.web.text.figures import counted, money

PERIODS = (7, 30, 90)


@project_page(Scope.RUN, "GET")
def model_usage(request: HttpRequest, access: Access, name: str) -> HttpResponse:
    params = UsageQuery.from_query(request.GET)
    endpoint = endpoint_of(access.project, name)
    total, days = usage_by_day(access.project, endpoint.name, params.days)
    rows = [_row(endpoint, day) for day in days]
    urls = {day.since.date(): _calls_url(endpoint, day, *ENDED) for day in days}
    last = total.until.date()
    context = {
        "endpoint": endpoint,
        "total": _row(endpoint, total),
        "rows": rows[::-1],
        "charts": usage_charts(days, urls, total.since.date() - timedelta(days=1), last) if days else [],
        "tabs": [
            Tab(counted(number, "day"), f"{request.path}?days={number}", number == params.days) for number in PERIODS
        ],
        "days": params.days,
        "may_change": access.may(Scope.ADMIN),
        "api_path": f"/api/v1/projects/{access.project.slug}/models/{endpoint.name}/usage?days={params.days}",
    }
    return render(request, "runs/usage/page.html", context)


def _row(endpoint: Endpoint, usage: UsageFigures) -> dict[str, object]:
    """Figures and the lists of calls behind them."""
    return {
        "usage": usage,
        "calls_url": _calls_url(endpoint, usage, *ENDED),
        "answered_url": _calls_url(endpoint, usage, "ok"),
        "failed_url": _calls_url(endpoint, usage, "error", "lost"),
        "unknown_url": _calls_url(endpoint, usage, *ENDED, cost_unknown="true"),
    }


def _calls_url(endpoint: Endpoint, usage: UsageFigures, *statuses: str, **more: str) -> str:
    query = {
        "status": ",".join(statuses),
        "model": endpoint.name,
        "created_after": usage.since.isoformat(),
        "created_before": usage.until.isoformat(),
        **more,
    }
    return f"{reverse('call-list', args=[endpoint.project.slug])}?{urlencode(query)}"


def usage_charts(
    days: Sequence[UsageFigures], urls: Mapping[date, str], first: date, last: date
) -> list[tuple[str, Figure]]:
    """The charts that have something to show, with their titles. A point opens the calls of its day."""
    dates = [day.since.date() for day in days]
    opened: dict[str, Any] = {"customdata": [urls[day] for day in dates]}
    shown = [str(day) for day in dates]

    def chart(traces: Sequence[Figure], title: str) -> Figure:
        span = axis("day", type="date", tickformat="%d %b", range=[str(first), str(last)])
        return figure(
            traces, barmode="stack", showlegend=len(traces) > 1, xaxis=span, yaxis=axis(title, rangemode="tozero")
        )

    def bar(name: str, values: Sequence[float], tone: str, hover: str) -> Figure:
        # Plotly guesses the width from the distance between two bars, so a single day needs one.
        marker = {"color": color(tone)}
        return bars(name, shown, values, hover=hover, width=0.8 * DAY_MS, marker=marker, **opened)

    def line(name: str, values: Sequence[int | None]) -> Figure:
        return lines(name, shown, [None if value is None else value / 1000 for value in values], "seconds", **opened)

    charts = []
    if any(day.known_cost for day in days):
        cost = bar("cost", [float(day.known_cost) for day in days], "chart-1", "%{hovertext}")
        cost["hovertext"] = [money(day.known_cost) for day in days]
        charts.append(("Cost per day", chart([cost], "US dollars")))
    latency = {
        "median": [day.latency_median_ms for day in days],
        "95th percentile": [day.latency_p95_ms for day in days],
        "first token, median": [day.first_token_median_ms for day in days],
    }
    if found := [line(name, values) for name, values in latency.items() if any(value is not None for value in values)]:
        charts.append(("Latency of answered calls", chart(found, "seconds")))
    answered = bar("answered", [day.calls - day.failed for day in days], "chart-1", "%{y} answered")
    failed = bar("failed", [day.failed for day in days], "bad", "%{y} failed")
    charts.append(("Calls per day", chart([answered, failed], "calls")))
    tokens = [
        bar("in", [day.tokens_in for day in days], "chart-1", "%{y} in"),
        bar("out", [day.tokens_out for day in days], "chart-2", "%{y} out"),
    ]
    if any(day.tokens_in for day in days):
        charts.append(("Tokens per day", chart(tokens, "tokens")))
    return charts


router = Router(tags=["models"])


class UsageQuery(RequestQuery):
    days: int = Field(30, ge=1, le=USAGE_DAYS, description="The last days, today included.")


@router.get(
    "/projects/{slug}/models/{endpoint:name}/usage",
    response=answer("UsageOut", total=UsageFigures, data=list[UsageFigures]),
    summary="Calls, cost and latency of a model by day",
)
def get_usage(request: HttpRequest, slug: str, name: str, params: Query[UsageQuery]) -> dict[str, object]:
    """`data` are the days with calls, in their order. Needs the scope `run`: on a day with few calls, the tokens of an
    answer tell a blind reviewer which one it is."""
    project = enter(request, slug, Scope.RUN).project
    total, days = usage_by_day(project, endpoint_of(project, name).name, params.days)
    return {"total": total, "data": days}


urlpatterns = [path("p/<slug:slug>/models/<endpoint:name>/usage/", model_usage, name="model-usage")]
