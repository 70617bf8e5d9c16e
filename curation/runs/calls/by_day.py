"""Cost, latency and failures of a project's model calls, by day and endpoint."""

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from django.db.models import Avg, Count, Q, Sum
from django.db.models.functions import TruncDate

from curation.projects.models import Project
from curation.runs.models import Call, CallStatus


@dataclass(frozen=True, slots=True)
class CallDay:
    """The calls of one endpoint that began on one day. `failed` counts errors and lost calls; `cost` is in US dollars,
    of the calls whose price is known; `latency_ms` is the mean of answered calls, None without one."""

    day: date
    model: str
    calls: int
    failed: int
    cost: Decimal
    cost_unknown_calls: int
    latency_ms: float | None


def calls_by_day(project: Project, since: datetime) -> list[CallDay]:
    """The calls that have ended, in the order of days, then names of endpoints."""
    rows = Call.objects.filter(project=project, created_at__gte=since).exclude(status=CallStatus.SENT)
    counted = (
        rows.annotate(day=TruncDate("created_at"))
        .values_list("day", "endpoint_name")
        .annotate(
            calls=Count("id"),
            failed=Count("id", filter=~Q(status=CallStatus.OK)),
            known=Sum("cost"),
            unknown=Count("id", filter=Q(cost=None)),
            latency=Avg("latency_ms", filter=Q(status=CallStatus.OK)),
        )
        .order_by("day", "endpoint_name")
    )
    return [
        CallDay(day, model, calls, failed, cost or Decimal(0), unknown, latency)
        for day, model, calls, failed, cost, unknown, latency in counted
    ]
