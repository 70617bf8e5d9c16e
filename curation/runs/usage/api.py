from datetime import datetime

from django.http import HttpRequest
from ninja import Query, Router, Schema
from pydantic import Field

from curation.llm.endpoints.named import endpoint_of
from curation.projects.access import enter
from curation.projects.models import Scope
from curation.runs.calls.move import USAGE_DAYS
from curation.runs.usage.figures import EndpointUsage, usage_by_day
from curation.web.lists.params import RequestQuery
from curation.web.text.figures import exact_money

router = Router(tags=["models"])


class UsageQuery(RequestQuery):
    days: int = Field(30, ge=1, le=USAGE_DAYS, description="The last days, today included.")


class UsageFigures(Schema):
    """Calls that have ended. Tokens and cost are of the calls where they are known; latencies are of answered calls,
    the first token is of those that were streamed. Percentiles are the nearest rank; null without a call."""

    since: datetime = Field(examples=["2026-11-21T00:00:00Z"])
    until: datetime = Field(examples=["2026-11-22T00:00:00Z"])
    calls: int = Field(examples=[270])
    failed: int = Field(examples=[2], description="Errors and calls that were lost with their worker.")
    tokens_in: int = Field(examples=[120400])
    tokens_out: int = Field(examples=[9800])
    tokens_unknown_calls: int = Field(examples=[0], description="Answered without usage.")
    cost: str | None = Field(
        examples=["0.41"], description="US dollars; null if calls were made and no price is known."
    )
    cost_unknown_calls: int = Field(examples=[2])
    latency_median_ms: int | None = Field(examples=[840])
    latency_p95_ms: int | None = Field(examples=[2150])
    first_token_median_ms: int | None = Field(examples=[190])
    first_token_p95_ms: int | None = Field(examples=[420])

    @staticmethod
    def of(usage: EndpointUsage) -> "UsageFigures":
        figures = {name: getattr(usage, name) for name in UsageFigures.model_fields if name != "cost"}
        is_unknown = usage.cost_unknown_calls and not usage.cost
        return UsageFigures(**figures, cost=None if is_unknown else exact_money(usage.cost))


class UsageOut(Schema):
    """`data` are the days with calls, in their order."""

    total: UsageFigures
    data: list[UsageFigures]


@router.get(
    "/projects/{slug}/models/{endpoint:name}/usage",
    response=UsageOut,
    summary="Calls, cost and latency of a model by day",
)
def get_usage(request: HttpRequest, slug: str, name: str, params: Query[UsageQuery]) -> UsageOut:
    """Needs the scope `run`: on a day with few calls, the tokens of an answer tell a blind reviewer which one it is."""
    project = enter(request, slug, Scope.RUN).project
    total, days = usage_by_day(project, endpoint_of(project, name).name, params.days)
    return UsageOut(total=UsageFigures.of(total), data=[UsageFigures.of(day) for day in days])
