"""How the exported rows were approved: by people, or under which guarantees."""

from collections import Counter

from curation.exports.files.counts import Counts
from curation.guarantees.models import Guarantee
from curation.web.text.figures import counted, percent


def approvals(counts: Counts) -> dict[str, object]:
    """Return the rows by the way of their approval, as the manifest has them."""
    guarantees = (
        Guarantee.objects.filter(pk__in=list(counts.unseen)).select_related("audit", "created_by").order_by("pk")
    )
    return {
        "people": sum(counts.rows.values()) - counts.unseen.total(),
        "guarantees": [
            {
                "id": str(row.pk),
                "rows": counts.unseen[row.pk],
                "alpha": row.audit.alpha,
                "delta": row.audit.delta,
                "score": row.audit.score,
                "threshold": row.threshold,
                "set_sha256": row.audit.set_sha256,
                "started_by": row.created_by.get_username(),
            }
            for row in guarantees
        ],
    }


def approvals_sentence(counts: Counts) -> str:
    """Return the same as a sentence of the dataset card, with one number for all guarantees of the same promise."""
    people = sum(counts.rows.values()) - counts.unseen.total()
    promises = Counter[tuple[float, float]]()
    for row in Guarantee.objects.filter(pk__in=list(counts.unseen)).select_related("audit"):
        promises[row.audit.alpha, row.audit.delta] += counts.unseen[row.pk]
    parts = [f"{counted(people, 'row')} approved by people"]
    for (alpha, delta), rows in sorted(promises.items()):
        promise = f"a guarantee of {percent(1 - delta, 1)} at α = {percent(alpha, 1)}"
        parts.append(f"{rows:,} under {promise}: nobody looked at these")
    return f"{', '.join(parts)}."
