"""The approval that counts now: which decision it is, which answer it keeps, which one it beat, and who approved.

A sample's standing decision is the last one that settles it and that nobody has undone; `Sample.status` repeats it for
lists, filters and counts. A standing approval keeps the answer of one side, the challenger's unless the king's was
picked, in the latest revision of that answer. Everything that asks what is approved reads it here.
"""

from collections.abc import Sequence
from typing import NamedTuple

from django.db.models import Case, CharField, OuterRef, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce

from curation.review.models import STATUS_AFTER, Action, Decision, Pick, Revision
from curation.samples.models import Sample
from curation.web.lists.id_list import IdList

# Looked up once: on an enumeration it costs more than the comparison, and there are as many as rows.
_APPROVE, _CHALLENGER, _KING, _DRAW = (word.value for word in (Action.APPROVE, *Pick))


class Outcome(NamedTuple):
    """One sample's texts as they leave.

    `pick` says whose answer is kept; a draw keeps the challenger's and has no `rejected_text`. `chosen_text` is the
    latest revision of that answer where there is one; then `revision_id` names it and `replaced_text` is the model's
    answer that it replaced. Where no person approved the sample, `reviewers` is empty and `pick` the challenger; the
    recipe decides whether such a sample may leave.
    """

    pick: str
    chosen_text: str
    rejected_text: str | None
    replaced_text: str | None
    revision_id: int | None
    reviewers: tuple[str, ...]


class LatestRevision(NamedTuple):
    """The last revision of one side's answer."""

    pk: int
    number: int
    text: str


class _Approval(NamedTuple):
    pick: str
    reviewer: str


def kept_side(pick: str) -> Pick:
    """The side whose answer an approval with this pick keeps; a draw and no pick keep the challenger's."""
    return Pick.KING if pick == _KING else Pick.CHALLENGER


class Reviewed:
    """What people decided on some samples, read for all of them at once in two queries."""

    def __init__(self, ids: Sequence[int]) -> None:
        self._approvals = _approvals(ids)
        self._revisions = latest_revisions(ids)

    @property
    def keeps_kings(self) -> bool:
        """Whether a person kept the king's answer of any of the samples."""
        return any(approval.pick == _KING for approval in self._approvals.values())

    def pick(self, sample_id: int) -> str:
        """The pick of the sample's approval, by default the challenger."""
        approval = self._approvals.get(sample_id)
        return (approval.pick if approval else "") or _CHALLENGER

    def outcome(self, sample_id: int, challenger: str, king: str | None) -> Outcome:
        """The outcome of one of the samples, whose two answers the caller has read."""
        approval = self._approvals.get(sample_id)
        pick = self.pick(sample_id)
        original, other = (king or "", challenger) if pick == _KING else (challenger, king)
        revisions = self._revisions.get(sample_id)
        revision = revisions.get(kept_side(pick)) if revisions else None
        return Outcome(
            pick=pick,
            chosen_text=revision.text if revision else original,
            rejected_text=None if pick == _DRAW else other,
            replaced_text=original if revision else None,
            revision_id=revision.pk if revision else None,
            reviewers=(approval.reviewer,) if approval else (),
        )


def _approvals(ids: Sequence[int]) -> dict[int, _Approval]:
    """The standing decision of each sample, where that is an approval, read in the order of the index."""
    rows = Decision.objects.filter(sample_id__in=IdList(ids)).not_undone().order_by("sample_id", "id")
    standing: dict[int, _Approval] = {}
    for sample_id, action, pick, reviewer in rows.values_list("sample_id", "action", "pick", "reviewer__username"):
        if action not in STATUS_AFTER:
            continue
        if action == _APPROVE:
            standing[sample_id] = _Approval(pick, reviewer)
        else:
            standing.pop(sample_id, None)
    return standing


def with_kept_revision(samples: QuerySet[Sample]) -> QuerySet[Sample]:
    """Annotates `kept_revision`: the revision that the standing decision of each sample keeps if it approves."""
    standing = Decision.objects.filter(sample=OuterRef("pk"), action__in=list(STATUS_AFTER)).not_undone()
    side = Case(When(pick=Pick.KING, then=Value(_KING)), default=Value(_CHALLENGER), output_field=CharField())
    revision = Revision.objects.filter(sample=OuterRef("pk"), of=OuterRef("kept_side")).order_by("-number")
    return samples.annotate(
        kept_side=Coalesce(Subquery(standing.order_by("-id").values(side=side)[:1]), Value(_CHALLENGER)),
        kept_revision=Subquery(revision.values("pk")[:1]),
    )


def latest_revision(sample: Sample, side: str) -> Revision | None:
    return Revision.objects.filter(sample=sample, of=side).order_by("-number").first()


def latest_revisions(ids: Sequence[int]) -> dict[int, dict[str, LatestRevision]]:
    """The latest revision of each side's answer, by sample id and side."""
    latest: dict[int, dict[str, LatestRevision]] = {}
    rows = Revision.objects.filter(sample_id__in=IdList(ids)).order_by("number")
    for sample_id, of, pk, number, text in rows.values_list("sample_id", "of", "pk", "number", "text"):
        latest.setdefault(sample_id, {})[of] = LatestRevision(pk, number, text)
    return latest
