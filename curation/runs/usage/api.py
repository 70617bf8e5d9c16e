from django.http import HttpRequest
from ninja import Query, Router
from pydantic import Field

from curation.llm.endpoints.named import endpoint_of
from curation.projects.access import enter
from curation.projects.models import Scope
from curation.runs.calls.move import USAGE_DAYS
from curation.runs.usage.figures import UsageFigures, usage_by_day
from curation.web.lists.filters import RequestQuery
from curation.web.schemas import answer

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
