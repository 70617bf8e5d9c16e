"""Cost and latency of a model by day: the page, the REST call, and the calls behind each figure."""

import re
from datetime import timedelta
from decimal import Decimal
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from curation.projects.models import Project, Role
from curation.runs.models import Call, Run
from curation.runs.usage.figures import usage_by_day
from curation.runs.usage.views import usage_charts
from tests.factories import make_endpoint, make_member, make_project, make_run, make_sample, make_user

pytestmark = pytest.mark.django_db
PRICED: dict[str, Any] = {"cost": Decimal("0.5"), "tokens_in": 10, "tokens_out": 2}


@pytest.fixture
def run(client: Client) -> Run:
    user = make_user("ada")
    client.force_login(user)
    project = make_project("shell", user=user)
    make_endpoint(project, "judge-a", model="openai/qwen")
    return make_run(project)


def call(run: Run, *, ago: int = 0, name: str = "judge-a", status: str = "ok", **values: Any) -> Call:
    row = Call.objects.create(
        project=run.project, run=run, endpoint_name=name, content_hash="x", status=status, **values
    )
    Call.objects.filter(pk=row.pk).update(created_at=timezone.now() - timedelta(days=ago))
    return row


def test_a_day_has_its_calls_errors_tokens_cost_and_percentiles(client: Client, run: Run) -> None:
    for number in range(1, 21):
        call(run, latency_ms=number * 100, first_token_ms=number if number > 10 else None, **PRICED)
    call(run, status="error", latency_ms=90_000, cost=None)
    call(run, status="lost")
    call(run, status="sent")
    call(run, name="other", **PRICED)
    call(run, ago=2, latency_ms=7000)
    call(run, ago=40, **PRICED)
    answer = client.get("/api/v1/projects/shell/models/judge-a/usage").json()
    before, today = answer["data"]
    assert (today["calls"], today["failed"], today["tokens_in"], today["tokens_out"]) == (22, 2, 200, 40)
    assert (today["cost"], today["cost_unknown_calls"], today["tokens_unknown_calls"]) == ("10", 2, 0)
    assert (today["latency_median_ms"], today["latency_p95_ms"]) == (1000, 1900)
    assert (today["first_token_median_ms"], today["first_token_p95_ms"]) == (15, 20)
    assert (before["calls"], before["cost"], before["cost_unknown_calls"], before["tokens_unknown_calls"]) == (
        1,
        None,
        1,
        1,
    )
    assert (before["latency_median_ms"], before["latency_p95_ms"], before["first_token_p95_ms"]) == (7000, 7000, None)
    total = answer["total"]
    assert (total["calls"], total["latency_median_ms"], total["latency_p95_ms"]) == (23, 1100, 2000)
    assert client.get("/api/v1/projects/shell/models/judge-a/usage?days=90").json()["total"]["calls"] == 24


def test_every_figure_opens_its_calls(client: Client, run: Run) -> None:
    for _ in range(3):
        call(run, latency_ms=100, **PRICED)
    call(run, status="error", latency_ms=5)
    call(run, status="sent")
    call(run, ago=1, status="lost")
    call(run, name="other", **PRICED)
    page = client.get("/p/shell/models/judge-a/usage/?days=7").content.decode()
    assert "$1.50 and 1 call of unknown cost" in page and "unknown (1 call of unknown cost)" in page
    links = [unescape(url) for url in re.findall(r'href="(/p/shell/calls/\?[^"]+)"', page)]
    counts = [client.get(url).content.decode().count('title="The exports that it reached"') for url in links]
    # calls, failed, tokens, cost and latency: of all, then of today and of yesterday
    assert counts[:5] == [5, 2, 3, 2, 3]
    assert counts[5:13] == [4, 1, 3, 3, 1, 3, 3, 3]
    assert counts[13:] == [1, 1, 0, 0, 1, 0, 0, 0]


def test_the_points_of_the_charts_open_the_calls_of_their_day(run: Run) -> None:
    call(run, latency_ms=1500, first_token_ms=300, **PRICED)
    total, days = usage_by_day(run.project, "judge-a", 7)
    today = timezone.localdate()
    charts = dict(usage_charts(days, {today: "/calls"}, today, today))
    assert list(charts) == ["Cost per day", "Latency of answered calls", "Calls per day", "Tokens per day"]
    assert [trace["y"] for trace in charts["Latency of answered calls"]["data"]] == [[1.5], [1.5], [0.3]]
    assert {tuple(trace["customdata"]) for chart in charts.values() for trace in chart["data"]} == {("/calls",)}
    assert total.calls == 1


def test_a_model_without_calls_says_so(client: Client, run: Run) -> None:
    assert "No calls in this period" in client.get("/p/shell/models/judge-a/usage/").content.decode()
    answer = client.get("/api/v1/projects/shell/models/judge-a/usage").json()
    assert (answer["data"], answer["total"]["calls"], answer["total"]["cost"]) == ([], 0, "0")


@pytest.mark.parametrize("query", ["days=0", "days=93", "days=x", "since=1"])
def test_what_cannot_be_read_is_refused(client: Client, run: Run, query: str) -> None:
    for path in ("/p/shell/models/judge-a/usage/", "/api/v1/projects/shell/models/judge-a/usage"):
        assert client.get(f"{path}?{query}").status_code == 400


def test_an_unknown_model_is_not_found(client: Client, run: Run) -> None:
    assert client.get("/p/shell/models/nobody/usage/").status_code == 404


def test_the_list_of_calls_is_refused_to_those_who_review_blind(client: Client, run: Run) -> None:
    call(run, **PRICED)
    project = Project.objects.get()
    make_sample(project)
    client.force_login(make_member(project, role=Role.REVIEWER))
    assert client.get("/p/shell/calls/").status_code == client.get("/api/v1/projects/shell/calls").status_code == 403
