from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse

from curation.llm.endpoints.named import endpoint_of
from curation.llm.models import Endpoint
from curation.projects.access import Access, project_page
from curation.projects.models import Scope
from curation.runs.usage.api import UsageQuery
from curation.runs.usage.charts import usage_charts
from curation.runs.usage.figures import ENDED, EndpointUsage, usage_by_day
from curation.web.lists.pages import Tab
from curation.web.text.figures import counted

PERIODS = (7, 30, 90)


@dataclass(frozen=True, slots=True)
class UsageRow:
    """Figures and the lists of calls behind them."""

    usage: EndpointUsage
    calls_url: str
    answered_url: str
    failed_url: str
    unknown_url: str

    @property
    def day(self) -> datetime:
        return self.usage.since


@project_page(Scope.RUN, "GET")
def model_usage(request: HttpRequest, access: Access, name: str) -> HttpResponse:
    params = UsageQuery.from_query(request.GET)
    endpoint = endpoint_of(access.project, name)
    total, days = usage_by_day(access.project, endpoint.name, params.days)
    rows = [_row(endpoint, day) for day in days]
    urls = {row.day.date(): row.calls_url for row in rows}
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


def _row(endpoint: Endpoint, usage: EndpointUsage) -> UsageRow:
    return UsageRow(
        usage,
        calls_url=_calls_url(endpoint, usage, *ENDED),
        answered_url=_calls_url(endpoint, usage, "ok"),
        failed_url=_calls_url(endpoint, usage, "error", "lost"),
        unknown_url=_calls_url(endpoint, usage, *ENDED, cost_unknown="true"),
    )


def _calls_url(endpoint: Endpoint, usage: EndpointUsage, *statuses: str, **more: str) -> str:
    query = {
        "status": ",".join(statuses),
        "model": endpoint.name,
        "created_after": usage.since.isoformat(),
        "created_before": usage.until.isoformat(),
        **more,
    }
    return f"{reverse('call-list', args=[endpoint.project.slug])}?{urlencode(query)}"


urlpatterns = [path("p/<slug:slug>/models/<endpoint:name>/usage/", model_usage, name="model-usage")]
