"""Cost, latency and failures of a project's model calls, by day and endpoint."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import Avg, Case, Count, Q, QuerySet, Sum, When
from django.db.models.functions import TruncDate
from django.utils import timezone
from pydantic import Field

from curation.projects.models import Project
from curation.runs.models import Call, CallStatus
from curation.web.schemas import out
from curation.web.text.figures import exact_money

ANSWERED, UNKNOWN_COST = Q(status=CallStatus.OK), Q(cost=None)
FAILED = ~ANSWERED
ENDED = tuple(status.value for status in CallStatus if status != CallStatus.SENT)
SUMS = ("calls", "failed", "tokens_in", "tokens_out", "tokens_unknown_calls", "cost", "cost_unknown_calls")


@out
class CallDayOut:
    """The calls of one endpoint that began on one day. `latency_ms` is the mean of its answered calls."""

    day: str = Field(examples=["2026-11-21"])
    model: str = Field(examples=["judge-a"])
    calls: int = Field(examples=[270])
    failed: int = Field(examples=[2])
    cost: str = Field(examples=["0.41"])
    cost_unknown_calls: int = Field(examples=[0])
    latency_ms: float | None = Field(examples=[840.5])


@out
class UsageFigures:
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

    @property
    def known_cost(self) -> Decimal:
        return Decimal(self.cost or 0)


def calls_by_day(project: Project, since: datetime) -> list[CallDayOut]:
    """The calls that have ended, in the order of days, then names of endpoints."""
    counted = (
        _ended(project, since)
        .annotate(day=TruncDate("created_at"))
        .values_list("day", "endpoint_name")
        .annotate(
            calls=Count("id"),
            failed=Count("id", filter=FAILED),
            known=Sum("cost"),
            unknown=Count("id", filter=UNKNOWN_COST),
            latency=Avg("latency_ms", filter=ANSWERED),
        )
        .order_by("day", "endpoint_name")
    )
    return [
        CallDayOut(day.isoformat(), model, calls, failed, exact_money(cost or Decimal(0)), unknown, latency)
        for day, model, calls, failed, cost, unknown, latency in counted
    ]


def usage_by_day(project: Project, model: str, days: int) -> tuple[UsageFigures, list[UsageFigures]]:
    """Return the endpoint's usage in the last days, today included: of all, and of each day with calls."""
    today = timezone.localdate()
    midnights = [_midnight(today - timedelta(days=back)) for back in range(-1, days)]  # the newest first
    until, since = midnights[0], midnights[-1]
    # Cheaper than the database's dates, which SQLite asks Python for: the place in `midnights` of a day's end.
    day = Case(*(When(created_at__gte=start, then=place) for place, start in enumerate(midnights[1:])), default=0)
    rows = _ended(project, since).filter(endpoint_name=model, created_at__lt=until).annotate(day=day)
    latencies, first_tokens = _times(rows, "latency_ms"), _times(rows, "first_token_ms")
    counted = rows.values("day").annotate(
        calls=Count("id"),
        failed=Count("id", filter=FAILED),
        # Before the sums, which take the columns' names.
        tokens_unknown_calls=Count("id", filter=ANSWERED & Q(tokens_in=None)),
        cost_unknown_calls=Count("id", filter=UNKNOWN_COST),
        tokens_in=Sum("tokens_in", default=0),
        tokens_out=Sum("tokens_out", default=0),
        cost=Sum("cost", default=Decimal(0)),
    )
    by_day: dict[int, Mapping[str, Any]] = {found["day"]: found for found in counted}
    total: dict[str, Any] = {name: sum(found[name] for found in by_day.values()) for name in SUMS}
    total["cost"] = Decimal(total["cost"])
    return _usage(since, until, total, sum(latencies.values(), Counter()), sum(first_tokens.values(), Counter())), [
        _usage(midnights[place + 1], midnights[place], by_day[place], latencies[place], first_tokens[place])
        for place in sorted(by_day, reverse=True)
    ]


def _ended(project: Project, since: datetime) -> QuerySet[Call]:
    rows = Call.objects.filter(project=project, created_at__gte=since, run__deleting_at=None)
    return rows.exclude(status=CallStatus.SENT)


def _midnight(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time.min))


def _times(rows: QuerySet[Call], field: str) -> defaultdict[int, Counter[int]]:
    """Return how many answered calls took how many milliseconds, by day."""
    found: defaultdict[int, Counter[int]] = defaultdict(Counter)
    answered = rows.filter(ANSWERED, **{f"{field}__isnull": False})
    for day, milliseconds, calls in answered.values_list("day", field).annotate(calls=Count("id")):
        found[day][milliseconds] = calls
    return found


def _usage(
    since: datetime, until: datetime, sums: Mapping[str, Any], latencies: Counter[int], first_tokens: Counter[int]
) -> UsageFigures:
    return UsageFigures(
        since=since,
        until=until,
        latency_median_ms=_percentile(latencies, 50),
        latency_p95_ms=_percentile(latencies, 95),
        first_token_median_ms=_percentile(first_tokens, 50),
        first_token_p95_ms=_percentile(first_tokens, 95),
        **{name: sums[name] for name in SUMS}
        | {"cost": None if sums["cost_unknown_calls"] and not sums["cost"] else exact_money(sums["cost"])},
    )


def _percentile(times: Counter[int], percent: int) -> int | None:
    """Return the nearest rank: the shortest time that `percent` of the calls do not exceed; None without calls."""
    rank = (times.total() * percent + 99) // 100
    for milliseconds in sorted(times):
        rank -= times[milliseconds]
        if rank <= 0:
            return milliseconds
    return None
