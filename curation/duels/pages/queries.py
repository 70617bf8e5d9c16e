"""Which duels and verdicts someone who reviews blind may read."""

from typing import Any, TypeVar

from django.db.models import Q, QuerySet

from curation.duels.models import Duel
from curation.projects.access import Access
from curation.samples.blind import has_hidden, reviews_blind, unblind
from curation.samples.models import SampleStatus
from curation.web.problems import Blind

R = TypeVar("R", bound="QuerySet[Any]")


def shown_to(access: Access, rows: R, duel: str = "") -> R:
    """The rows; for someone who reviews blind those of decided samples. `duel` is the lookup of their duel.

    A duel without a sample is not scored yet, and its sample will be pending. A control duel repeats an answer of
    another duel on its prompt, so it is shown when no sample is pending.
    """
    if not reviews_blind(access):
        return rows
    decided = Q(**{f"{duel}sample__status__in": [word for word in SampleStatus.values if word != SampleStatus.PENDING]})
    return rows.filter(decided if has_hidden(access) else decided | ~Q(**{f"{duel}control": ""}))


def look_at_duel(access: Access, duel: Duel) -> None:
    """Refuse a duel that `shown_to` leaves out; note that a curator or admin looked at a pending sample."""
    unblind(access, duel.sample)
    if duel.sample is not None or not reviews_blind(access):
        return
    if not duel.control:
        raise Blind(f"You review blind, and duel {duel.pk} is not scored yet. It opens when its sample is decided.")
    if has_hidden(access):
        raise Blind(
            f"You review blind, and duel {duel.pk} has an answer that is also in another duel. It opens when all "
            "samples of the project are decided."
        )
