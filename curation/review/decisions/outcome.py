"""The result of review: the answer that is kept, the one it beat, and who decided. For exports and the review pages."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from curation.duels.models import Duel, PromptText
from curation.review.models import Action, Decision, Pick, Revision
from curation.samples.models import Sample
from curation.web.lists.id_list import Among
from judging.messages import content_of

CHUNK = 1_000
_CANDIDATE, _OPPONENT, _DRAW = Pick.CANDIDATE.value, Pick.OPPONENT.value, Pick.DRAW.value
_APPROVE = Action.APPROVE.value
_SETTLING = frozenset({_APPROVE, Action.REJECT.value, Action.REFINE.value, Action.QUEUE.value})


class Outcome(NamedTuple):
    """One sample's texts as they leave.

    `pick` says whose answer is kept; a draw keeps the candidate and has no `rejected_text`. `chosen_text` is the
    latest revision of that answer where there is one; then `revision_id` names it and `replaced_text` is the model's
    answer that it replaced. Where no person approved the sample, `reviewers` is empty and `pick` the candidate; whether
    such a sample may leave is the recipe's matter.
    """

    pick: str
    chosen_text: str
    rejected_text: str | None
    replaced_text: str | None
    revision_id: int | None
    reviewers: tuple[str, ...]


def outcomes(samples: Iterable[Sample] | Iterable[int]) -> dict[int, Outcome]:
    """Outcomes by sample id, for samples that come from a duel; four queries per 1,000 samples, whatever they hold."""
    ids = [sample.pk if isinstance(sample, Sample) else sample for sample in samples]
    found: dict[int, Outcome] = {}
    for start in range(0, len(ids), CHUNK):
        found |= _outcomes(ids[start : start + CHUNK])
    return found


class _Approval(NamedTuple):
    pick: str
    reviewer: str


class _Revised(NamedTuple):
    pk: int
    text: str


class Reviewed:
    """What people decided on some samples, read for all of them at once; two queries, whatever they hold."""

    def __init__(self, ids: Sequence[int]) -> None:
        self._approvals = _approvals(ids)
        self._revisions = _latest_revisions(ids)

    @property
    def keeps_opponents(self) -> bool:
        """Whether a person kept the opponent's answer of any of the samples."""
        return any(approval.pick == _OPPONENT for approval in self._approvals.values())

    def outcome(self, sample_id: int, candidate: str, opponent: str | None) -> Outcome:
        """The outcome of one of the samples, whose two answers the caller has read."""
        approval = self._approvals.get(sample_id)
        pick = (approval.pick if approval else "") or _CANDIDATE
        kept_side = _OPPONENT if pick == _OPPONENT else _CANDIDATE
        original, other = (opponent or "", candidate) if kept_side == _OPPONENT else (candidate, opponent)
        revisions = self._revisions.get(sample_id)
        revision = revisions.get(kept_side) if revisions else None
        return Outcome(
            pick=pick,
            chosen_text=revision.text if revision else original,
            rejected_text=None if pick == _DRAW else other,
            replaced_text=original if revision else None,
            revision_id=revision.pk if revision else None,
            reviewers=(approval.reviewer,) if approval else (),
        )


def _outcomes(ids: Sequence[int]) -> dict[int, Outcome]:
    """Plain columns and one parameter for all ids, as everywhere that many samples are read."""
    reviewed = Reviewed(ids)
    rows = Duel.objects.filter(sample_id__in=Among(ids)).values_list(
        "sample_id", "prompt_id", "king_id", "challenger__text__text", "king__text__text"
    )
    duels = list(rows)
    references = reference_texts([prompt_id for _, prompt_id, king_id, _, _ in duels if king_id is None])
    return {
        sample_id: reviewed.outcome(sample_id, candidate, references.get(prompt_id, "") if king_id is None else king)
        for sample_id, prompt_id, king_id, candidate, king in duels
        if sample_id is not None
    }


def _approvals(ids: Sequence[int]) -> dict[int, _Approval]:
    """The standing decision of each sample, where that is an approval: the last one that nobody has undone. They come
    in the order of the index, so that nothing is sorted.

    What was undone is passed over here and not in the query: SQLite would answer `IS NULL` by that column's index,
    which holds nearly all decisions there are.
    """
    rows = Decision.objects.filter(sample_id__in=Among(ids)).order_by("sample_id", "id")
    columns = ("sample_id", "action", "pick", "undone_by_id", "reviewer__username")
    standing: dict[int, _Approval] = {}
    for sample_id, action, pick, undone, reviewer in rows.values_list(*columns):
        if undone is not None or action not in _SETTLING:
            continue
        if action == _APPROVE:
            standing[sample_id] = _Approval(pick, reviewer)
        else:
            standing.pop(sample_id, None)
    return standing


def _latest_revisions(ids: Sequence[int]) -> dict[int, dict[str, _Revised]]:
    latest: dict[int, dict[str, _Revised]] = {}
    rows = Revision.objects.filter(sample_id__in=Among(ids)).order_by("number")
    for sample_id, of, pk, text in rows.values_list("sample_id", "of", "pk", "text"):
        latest.setdefault(sample_id, {})[of] = _Revised(pk, text)
    return latest


def reference_texts(prompt_ids: Sequence[int]) -> dict[int, str]:
    """The source's own turn as text, by prompt; no query where none is asked for."""
    if not prompt_ids:
        return {}
    rows = PromptText.objects.filter(prompt_id__in=Among(prompt_ids)).values_list("prompt_id", "reference")
    return {prompt_id: content_of(reference) for prompt_id, reference in rows}
