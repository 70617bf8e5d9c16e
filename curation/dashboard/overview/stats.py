"""The figures of a project: what the overview shows and `GET /projects/{slug}/stats` answers."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.core.cache import cache
from django.db.models import Count, F, FloatField, IntegerField, QuerySet, Sum
from django.db.models.functions import Cast, Floor, TruncDate
from django.utils import timezone

from curation.dashboard.overview.trajectory_stats import TrajectoryStats, trajectory_stats
from curation.duels.models import Answer, Duel, Prompt, Side
from curation.exports.models import Export
from curation.projects.models import Project
from curation.review.models import DECIDING, Decision
from curation.runs.models import Call, Run
from curation.samples.models import Bucket, Sample, Status
from curation.scenarios.models import Status as Proven
from curation.trajectories.rollout.balance import TerminalBalance

Json = dict[str, Any]
KEPT_SECONDS = 15
BIN = 5
DAYS = 14


@dataclass(frozen=True, slots=True)
class Stats:
    """`funnel` from source to export; `histogram` counts samples per `BIN` points of score; costs are US dollars.

    `scenarios` by status and `outcomes` of trajectories; `balance` of the kept ones, as shares.

    `at` is when the figures were counted: at a million samples they are kept for some seconds.
    """

    funnel: dict[str, int]
    buckets: dict[str, int]
    statuses: dict[str, int]
    histogram: list[int]
    scenarios: dict[str, int]
    outcomes: dict[str, int]
    balance: TerminalBalance
    pace: list[Json]
    seconds_per_decision: float | None
    cost: str
    cost_unknown_calls: int
    cost_by_model: list[Json]
    at: str


def project_stats(project: Project) -> Stats:
    """The figures, at most `KEPT_SECONDS` old."""
    key = f"stats:{project.pk}"
    found = cache.get(key)
    if not isinstance(found, Stats):
        found = _count(project)
        cache.set(key, found, KEPT_SECONDS)
    return found


def stats_json(project: Project) -> Json:
    return asdict(project_stats(project))


def _count(project: Project) -> Stats:
    samples = Sample.objects.of(project).order_by()
    buckets = _by(samples, "bucket", Bucket.values)
    statuses = _by(samples, "status", Status.values)
    rolled = trajectory_stats(project)
    runs = Run.objects.filter(project=project).aggregate(cost=Sum("cost"), unknown=Sum("cost_unknown_calls"))
    return Stats(
        funnel=_funnel(project, buckets, statuses, rolled),
        buckets=buckets,
        statuses=statuses,
        histogram=_histogram(samples),
        scenarios=rolled.scenarios,
        outcomes=rolled.outcomes,
        balance=rolled.balance,
        pace=_pace(project),
        seconds_per_decision=_seconds(project),
        cost=f"{runs['cost'] or Decimal(0):f}",
        cost_unknown_calls=runs["unknown"] or 0,
        cost_by_model=_cost_by_model(project),
        at=timezone.now().isoformat(),
    )


def _by(samples: QuerySet[Sample], field: str, values: list[str]) -> dict[str, int]:
    counted = dict(samples.values_list(field).annotate(n=Count("id")))
    return {value: counted.get(value, 0) for value in values}


def _funnel(
    project: Project, buckets: dict[str, int], statuses: dict[str, int], rolled: TrajectoryStats
) -> dict[str, int]:
    answers = Answer.objects.filter(prompt__project=project, refusal="").order_by()
    newest = Export.objects.filter(project=project, ready=True).order_by("-id").first()
    steps: dict[str, Callable[[], int]] = {
        "prompts": Prompt.objects.of(project).count,
        "answered by king": answers.filter(side=Side.KING).values("prompt").distinct().count,
        "challenged": answers.filter(side=Side.CHALLENGER).values("prompt").distinct().count,
        "duels": Duel.objects.of(project).count,
        "parsed": lambda: sum(buckets.values()) - buckets[Bucket.UNPARSED],
        "final or refined": lambda: buckets[Bucket.FINAL] + buckets[Bucket.REFINED],
        "scenarios": lambda: sum(rolled.scenarios.values()),
        "scenarios admitted": lambda: rolled.scenarios[Proven.ADMITTED],
        "trajectories": lambda: sum(rolled.outcomes.values()),
        "trajectories kept": lambda: rolled.balance.kept,
        "decided": lambda: sum(statuses.values()) - statuses[Status.PENDING],
        "approved": lambda: statuses[Status.APPROVED],
        "in the last export": lambda: _exported(newest),
    }
    return {name: count() for name, count in steps.items()}


def _exported(export: Export | None) -> int:
    """The samples that the newest export holds: one may stand in rows of several formats, and in many preferences."""
    return int(export.counts.get("exported", 0)) if export else 0


def _histogram(samples: QuerySet[Sample]) -> list[int]:
    """Counts for [0, 5), [5, 10), … [95, 100]."""
    bin_of = Cast(Floor(F("score_key") / float(BIN), output_field=FloatField()), IntegerField())
    counted = dict(samples.filter(score_key__gte=0).annotate(bin=bin_of).values_list("bin").annotate(n=Count("id")))
    bins = [counted.get(index, 0) for index in range(100 // BIN)]
    bins[-1] += counted.get(100 // BIN, 0)
    return bins


def _pace(project: Project) -> list[Json]:
    """Decisions per day and reviewer over the last two weeks."""
    since = timezone.now() - timedelta(days=DAYS)
    decisions = Decision.objects.filter(
        sample__project=project, action__in=DECIDING, undone_by=None, created_at__gte=since
    )
    counted = decisions.annotate(day=TruncDate("created_at")).values("day", "reviewer__username")
    rows = counted.annotate(n=Count("id")).order_by("day", "reviewer__username")
    return [{"day": row["day"].isoformat(), "reviewer": row["reviewer__username"], "n": row["n"]} for row in rows]


def _seconds(project: Project) -> float | None:
    """Median seconds of the last 200 decisions; the mean would tell of one lunch break."""
    rows = Decision.objects.filter(sample__project=project, action__in=DECIDING, seconds__isnull=False)
    seconds = sorted(
        value for value in rows.order_by("-id").values_list("seconds", flat=True)[:200] if value is not None
    )
    return seconds[len(seconds) // 2] if seconds else None


def _cost_by_model(project: Project) -> list[Json]:
    rows = Call.objects.filter(project=project).order_by().values("endpoint_name")
    found = rows.annotate(
        calls=Count("id"),
        known=Sum("cost"),
        tokens_in=Sum("tokens_in"),
        tokens_out=Sum("tokens_out"),
        priced=Count("cost"),
    )
    return [
        {
            "model": row["endpoint_name"],
            "calls": row["calls"],
            "tokens_in": row["tokens_in"] or 0,
            "tokens_out": row["tokens_out"] or 0,
            "cost": f"{row['known'] or Decimal(0):f}",
            "cost_unknown_calls": row["calls"] - row["priced"],
        }
        for row in found.order_by("endpoint_name")
    ]
