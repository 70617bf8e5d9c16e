"""What review made of samples: the answer that is kept, the one it beat, and who said so. Exports read nothing else."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from curation.duels.models import Duel, PromptText
from curation.review.models import Action, Decision, Pick, Revision
from curation.samples.models import Sample

CHUNK = 1_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """One sample's texts as they leave.

    `pick` says whose answer is kept; a draw keeps the candidate and has no `rejected_text`. `chosen_text` is the
    latest revision of that answer where there is one; then `revision_id` names it and `replaced_text` is the model's
    answer that it replaced. Where no person approved the sample, `reviewers` is empty, `decided_at` None and `pick`
    the candidate; whether such a sample may leave is the recipe's matter.
    """

    pick: str
    chosen_text: str
    rejected_text: str | None
    replaced_text: str | None
    revision_id: int | None
    reviewers: tuple[str, ...]
    decided_at: datetime | None


def outcomes(samples: Iterable[Sample] | Iterable[int]) -> dict[int, Outcome]:
    """Outcomes by sample id, for samples that come from a duel; four queries per 1,000 samples, whatever they hold."""
    ids = [sample.pk if isinstance(sample, Sample) else sample for sample in samples]
    found: dict[int, Outcome] = {}
    for start in range(0, len(ids), CHUNK):
        found |= _outcomes(ids[start : start + CHUNK])
    return found


def _outcomes(ids: Sequence[int]) -> dict[int, Outcome]:
    approvals = _approvals(ids)
    revisions = _latest_revisions(ids)
    duels = (
        Duel.objects.filter(sample_id__in=ids)
        .select_related("challenger__text", "king__text")
        .only("sample_id", "prompt_id", "challenger__text__text", "king__text__text")
    )
    rows = list(duels)
    references = reference_texts([duel.prompt_id for duel in rows if duel.king_id is None])
    found = {}
    for duel in rows:
        opponent = duel.king.text.text if duel.king else references.get(duel.prompt_id, "")
        candidate = duel.challenger.text.text
        if duel.sample_id is not None:
            sample_id = duel.sample_id
            found[sample_id] = _outcome(candidate, opponent, approvals.get(sample_id), revisions.get(sample_id, {}))
    return found


def _outcome(candidate: str, opponent: str, approval: Decision | None, revisions: dict[str, Revision]) -> Outcome:
    pick = (approval.pick if approval else "") or Pick.CANDIDATE.value
    kept_side = Pick.OPPONENT.value if pick == Pick.OPPONENT else Pick.CANDIDATE.value
    original, other = (opponent, candidate) if kept_side == Pick.OPPONENT else (candidate, opponent)
    revision = revisions.get(kept_side)
    return Outcome(
        pick=pick,
        chosen_text=revision.text if revision else original,
        rejected_text=None if pick == Pick.DRAW else other,
        replaced_text=original if revision else None,
        revision_id=revision.pk if revision else None,
        reviewers=(approval.reviewer.get_username(),) if approval else (),
        decided_at=approval.created_at if approval else None,
    )


def _approvals(ids: Sequence[int]) -> dict[int, Decision]:
    """The standing decision of each sample, where that is an approval: the last one that nobody has undone."""
    standing: dict[int, Decision] = {}
    settling = (Action.APPROVE, Action.REJECT, Action.REFINE, Action.QUEUE)
    rows = Decision.objects.filter(sample_id__in=ids, action__in=settling, undone_by=None)
    for row in rows.select_related("reviewer").order_by("id"):
        standing[row.sample_id] = row
    return {sample_id: row for sample_id, row in standing.items() if row.action == Action.APPROVE}


def _latest_revisions(ids: Sequence[int]) -> dict[int, dict[str, Revision]]:
    latest: dict[int, dict[str, Revision]] = {}
    for row in Revision.objects.filter(sample_id__in=ids).order_by("number"):
        latest.setdefault(row.sample_id, {})[row.of] = row
    return latest


def reference_texts(prompt_ids: Sequence[int]) -> dict[int, str]:
    """The source's own turn as text, by prompt; no query where none is asked for."""
    if not prompt_ids:
        return {}
    rows = PromptText.objects.filter(prompt_id__in=prompt_ids).values_list("prompt_id", "reference")
    return {prompt_id: message_text(reference) for prompt_id, reference in rows}


def message_text(message: object) -> str:
    """The text of a chat message, whose content is a string or a list of parts; what is no text is left out."""
    content = message.get("content") if isinstance(message, dict) else message
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return "\n".join(part for part in parts if isinstance(part, str))
    return ""
