"""Calls, tokens and cost by endpoint, of calls that are rows and of those that were moved to files."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from django.db.models import Count, QuerySet, Sum

from curation.projects.models import Project
from curation.runs.models import Call, Run

# Of one endpoint. `priced` are the calls with a known cost, which is in US dollars.
Totals = Counter[str]
NAMES = ("calls", "priced", "tokens_in", "tokens_out", "cost")
SUMS = (
    Count("id"),
    Count("cost"),
    Sum("tokens_in", default=0),
    Sum("tokens_out", default=0),
    Sum("cost", default=Decimal(0)),
)


def totals_of(calls: QuerySet[Call]) -> dict[str, Totals]:
    return {
        name: Counter(dict(zip(NAMES, sums, strict=True)))
        for name, *sums in calls.order_by().values_list("endpoint_name").annotate(*SUMS)
    }


def totals_of_project(project: Project) -> dict[str, Totals]:
    """Return the totals by endpoint, in the order of names."""
    found: defaultdict[str, Totals] = defaultdict(Counter, totals_of(Call.objects.filter(project=project)))
    for run in Run.objects.filter(project=project, moved__isnull=False).only("moved"):
        for name, totals in run.moved_models.items():
            found[name].update(read_totals(totals))
    return dict(sorted(found.items()))


def written_totals(totals: Totals) -> dict[str, Any]:
    """Return totals as JSON, without loss."""
    return {**totals, "cost": str(totals["cost"])}


def read_totals(totals: Mapping[str, Any]) -> Totals:
    return Counter({**totals, "cost": Decimal(totals["cost"])})
