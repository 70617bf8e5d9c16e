"""What a run left out, by stage and reason: prompts without a record, refused answers, readings that failed."""

from django.db.models import Count

from curation.runs.kinds import Json
from curation.runs.models import Item, ItemState, Run

MOST_REASONS = 50


def left_out(run: Run) -> Json:
    """`{stage: {reason: items}}`, the most frequent reasons first."""
    rows = Item.objects.filter(run=run, state__in=[ItemState.SKIPPED, ItemState.FAILED]).order_by()
    counted = rows.values("stage", "reason").annotate(n=Count("id")).order_by("-n", "stage", "reason")
    found: dict[str, dict[str, int]] = {}
    for row in counted[:MOST_REASONS]:
        found.setdefault(row["stage"], {})[row["reason"]] = row["n"]
    return found
