"""After each decision on a drawn sample: does the guarantee still hold?"""

from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.dispatch import receiver

from curation.guarantees.models import Guarantee
from curation.review.decisions.state import decided
from curation.review.guarantees.carry_out import soon
from curation.review.guarantees.proof import alive_of, proof_of
from curation.review.guarantees.withdraw import withdraw_guarantee
from curation.review.models import Decision
from curation.web.database.prepared import Prepared
from curation.web.ids import IdList

# Every decision makes this query, and few are about a drawn sample.
_first_about = Prepared(
    lambda sample: Guarantee.objects.filter(withdrawn_at=None, audit__draws__sample=sample), sample=int
)


@receiver(decided)
def recheck(lines: Sequence[Decision], **kwargs: Any) -> None:
    """Withdraw the guarantees that the changed looks no longer prove. In the transaction of the decisions."""
    ids = [line.sample_id for line in lines if line.guarantee_id is None]
    if not ids or (len(ids) == 1 and _first_about.first(sample=ids[0]) is None):
        return
    standing = Guarantee.objects.filter(withdrawn_at=None, audit__draws__sample_id__in=IdList(ids)).distinct()
    for guarantee in standing.select_related("project", "audit"):
        reason = _failure(guarantee)
        if reason and withdraw_guarantee(guarantee, by=None, reason=reason):
            transaction.on_commit(soon(guarantee.pk))


def _failure(guarantee: Guarantee) -> str:
    """Why the guarantee no longer holds; empty if it does."""
    if not proof_of(guarantee.audit).holds(guarantee):
        return "The looks of its audit no longer prove it: a decision on an audited sample was changed or undone."
    alive, alpha = alive_of(guarantee), guarantee.audit.alpha
    if alive.has_failed:
        return f"{alive.errors} errors among {alive.looked} samples that it kept for people: more than α = {alpha:g}."
    return ""
