"""The texts that a span can be about."""

from curation.review.decisions.outcome import latest_revisions
from curation.review.decisions.revise import original_text
from curation.review.models import Pick, Revision
from curation.samples.models import Sample, SampleKind
from curation.trajectories.models import TrajectoryText
from curation.web.ids import id_number, number
from curation.web.problems import Invalid

# The sides of a duel as spans name them.
SIDES = {"challenger": Pick.CHALLENGER, "king": Pick.KING}
FIELDS = {pick: name for name, pick in SIDES.items()}
# No revision named: the newest text. `None` names the text as recorded.
NEWEST = object()


def text_of(sample: Sample, field: str, revision: object, reader: int) -> tuple[str, str | None] | None:
    """The text that a span of this reader (a user's id) is about, and the id of its revision; None where the sample has
    no such text, or where only another person sees it."""
    if sample.kind == SampleKind.TRAJECTORY:
        name, _, index = field.partition(":")
        turns, at = turn_texts(sample), number(index)
        if name != "turn" or at is None or at >= len(turns) or revision not in (NEWEST, None):
            return None
        return turns[at], None
    side = SIDES.get(field)
    if side is None:
        return None
    latest = latest_revisions([sample.pk], reader=reader).get(sample.pk, {}).get(side) if revision is NEWEST else None
    if latest is not None:
        return latest.text, str(latest.pk)
    if revision in (NEWEST, None):
        try:
            return original_text(sample, side), None
        except Invalid:
            return None
    pk = id_number(revision) if isinstance(revision, str) else None
    row = Revision.objects.seen_by(reader).filter(sample=sample, of=side, pk=pk or 0).first()
    return (row.text, str(row.pk)) if row else None


def turn_texts(sample: Sample) -> list[str]:
    """The turns of a trajectory's sample; `turn:N` names one."""
    text = TrajectoryText.objects.only("steps").filter(trajectory__sample=sample).first()
    return [turn["text"] for turn in text.turns] if text else []
