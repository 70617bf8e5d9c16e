"""The approval that counts now: the decision, the kept answer, the other answer, and the reviewers.

`DecisionQuerySet.standing_approvals` alone defines which approvals stand; `Sample.status` repeats it for lists, filters
and counts. A standing approval keeps the answer of one side, the challenger's unless the king's was picked, and names
the revision and the hash of the text that the person read. All code that needs the approved answer reads it here.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from django.db.models import OuterRef, QuerySet, Subquery

from curation.review.models import Action, Decision, Pick, Revision
from curation.review.queue.seats import kept_side
from curation.samples.models import Sample
from curation.samples.texts import AnsweredSide, answer_sha256
from curation.web.ids import IdList

# Looked up once: on an enumeration it costs more than the comparison, and there are as many as rows.
_CHALLENGER, _KING, _DRAW = (word.value for word in Pick)
_APPROVE = Action.APPROVE.value


class SampleOutcome(NamedTuple):
    """One sample's texts as they leave.

    `pick` says whose answer is kept; a draw keeps the challenger's and has no `rejected_text`. `chosen_text` is the
    latest revision of that answer where there is one; then `revision_id` names it and `replaced_text` is the model's
    answer that it replaced. `as_approved` says whether that is the text that was approved. Where no person approved the
    sample, `reviewers` is empty and `pick` the challenger.
    """

    pick: str
    chosen_text: str
    rejected_text: str | None
    replaced_text: str | None
    revision_id: int | None
    reviewers: tuple[str, ...]
    as_approved: bool


class Approval(NamedTuple):
    """A standing approval: the side that it keeps, the text that it names, the texts that the scan read, and its round,
    0 if one person decided (`Decision`). A standing rejection has the same fields, and names no text. Under a guarantee
    nobody looked, and `reviewer` started that."""

    pk: int
    action: str
    pick: str
    revision_id: int | None
    text_sha256: str
    prompt_sha256: str
    other_sha256: str
    scan_rules: str
    round: int
    guarantee_id: int | None
    reviewer: str

    @property
    def rejects(self) -> bool:
        return self.action != _APPROVE

    @property
    def text_key(self) -> str:
        """What tells whether a text is still the one that was decided. A rejected text cannot change: another one opens
        its sample again."""
        return f"rejection {self.pk}" if self.rejects else self.text_sha256


class Decider(NamedTuple):
    """Somebody who decided a sample that several people had to decide, and their decision."""

    decision: int
    reviewer: str
    action: str
    pick: str


class Reviewed:
    """The decisions on some samples, read for all of them at once in two queries; the other deciders of a sample are
    read on demand. With `rejections` a rejected sample has the outcome of its rejection."""

    def __init__(self, ids: Sequence[int], *, rejections: bool = False) -> None:
        self._approvals = standing_approvals(ids, rejections=rejections)
        self._revisions = latest_revisions(ids)

    def approval(self, sample_id: int) -> Approval | None:
        return self._approvals.get(sample_id)

    def deciders(self, sample_id: int) -> list[Decider]:
        """Everybody who decided the sample, the one who settled it last; empty where that one decided alone."""
        return self._deciders.get(sample_id, [])

    @cached_property
    def _deciders(self) -> dict[int, list[Decider]]:
        return deciders_of(self._approvals)

    def reviewers(self, sample_id: int) -> tuple[str, ...]:
        """The reviewers behind the approval, the one who settled it last. Those overruled by an adjudicator are not
        among them."""
        approval = self._approvals.get(sample_id)
        if approval is None or approval.guarantee_id is not None:
            return ()
        others = [row.reviewer for row in self.deciders(sample_id)[:-1]] if approval.round else []
        return (*others, approval.reviewer)

    @property
    def keeps_kings(self) -> bool:
        """Whether a person kept the king's answer of any of the samples."""
        return any(approval.pick == _KING for approval in self._approvals.values())

    def pick(self, sample_id: int) -> str:
        """The pick of the sample's approval, by default the challenger. A rejection is of the challenger's answer."""
        approval = self._approvals.get(sample_id)
        return (approval.pick if approval and approval.action == _APPROVE else "") or _CHALLENGER

    def outcome(self, sample_id: int, challenger: AnsweredSide, king: AnsweredSide | None) -> SampleOutcome:
        """The outcome of one of the samples, whose two answers the caller has read."""
        approval = self._approvals.get(sample_id)
        pick = self.pick(sample_id)
        original, other = (king or AnsweredSide(""), challenger) if pick == _KING else (challenger, king)
        revisions = self._revisions.get(sample_id)
        revision = revisions.get(kept_side(pick)) if revisions else None
        digest = answer_sha256(revision.text) if revision else original.sha256
        return SampleOutcome(
            pick=pick,
            chosen_text=revision.text if revision else original.text,
            rejected_text=None if pick == _DRAW or other is None else other.text,
            replaced_text=original.text if revision else None,
            revision_id=revision.pk if revision else None,
            reviewers=self.reviewers(sample_id),
            as_approved=approval is not None and approval.text_sha256 == digest,
        )


def standing_approvals(ids: Sequence[int], *, rejections: bool = False) -> dict[int, Approval]:
    """The standing approval of each of the samples that has one, or with `rejections` its standing rejection, in one
    query."""
    of = Decision.objects.filter(sample_id__in=IdList(ids))
    rows = of.standing(Action.APPROVE, Action.REJECT) if rejections else of.standing_approvals()
    found = rows.values_list("sample_id", *Approval._fields[:-1], "reviewer__username")
    return {row[0]: Approval._make(row[1:]) for row in found}


def deciders_of(approvals: Mapping[int, Approval]) -> dict[int, list[Decider]]:
    """All deciders of each sample that several people decided, the one who settled it last: they agreed, or that one
    adjudicated."""
    opinions = Decision.objects.opinions().filter(sample_id__in=IdList(list(approvals)), settles=False).order_by("id")
    given: dict[int, list[tuple[int, Decider]]] = {}
    columns = ("sample_id", "round", "pk", "reviewer__username", "action", "pick")
    for sample_id, number, pk, reviewer, action, pick in opinions.values_list(*columns):
        given.setdefault(sample_id, []).append((number, Decider(pk, reviewer, action, pick)))
    settled = Decision.objects.filter(pk__in=[approvals[sample_id].pk for sample_id in given])
    found = {}
    for row in settled.select_related("reviewer"):
        # `before` has the round of several deciders, also for an adjudication, whose own round is 0.
        number = row.before.get("round")
        last = Decider(row.pk, row.reviewer.get_username(), row.action, row.pick)
        others = {one.reviewer: one for of, one in given[row.sample_id] if of == number and one.decision < row.pk}
        others.pop(last.reviewer, None)
        if others:
            found[row.sample_id] = [*others.values(), last]
    return found


def with_approved_revision(samples: QuerySet[Sample]) -> QuerySet[Sample]:
    """Annotates `approved_revision`: the revision that the standing approval of each sample names."""
    standing = Decision.objects.filter(sample=OuterRef("pk")).standing_approvals()
    return samples.annotate(approved_revision=Subquery(standing.values("revision_id")[:1]))


def latest_revision(sample: Sample, side: str, *, reader: int | None = None) -> Revision | None:
    """The latest revision of one side's answer that everybody sees, or this reader (a user's id)."""
    rows = Revision.objects.seen_by(reader).not_undone().filter(sample=sample, of=side)
    return rows.order_by("-number", "-id").first()


def latest_revisions(ids: Sequence[int], *, reader: int | None = None) -> dict[int, dict[str, Revision]]:
    """The latest revision of each side's answer that everybody sees, or this reader, by sample id and side."""
    latest: dict[int, dict[str, Revision]] = {}
    rows = Revision.objects.seen_by(reader).not_undone().filter(sample_id__in=IdList(ids)).order_by("number", "id")
    for row in rows:
        latest.setdefault(row.sample_id, {})[row.of] = row
    return latest
