"""Name the text that an approval keeps: its revision, and the hash of exactly what a person read."""

from collections.abc import Sequence

from curation.duels.models import Duel
from curation.review.decisions.outcome import Answered, kept_side, latest_revisions, reference_answer
from curation.review.models import Decision, Pick
from curation.samples.models import Kind
from curation.trajectories.models import TrajectoryText
from curation.web.lists.id_list import IdList
from judging.answers.digest import answer_sha256, session_sha256

# Sessions are long, so only a few are in memory at once.
_AT_ONCE = 50


def name_approved_texts(approvals: Sequence[Decision]) -> None:
    """Set `revision` and `text_sha256` of approvals that are not yet written, in three queries at most. The caller
    locks their samples."""
    turns = [line for line in approvals if line.sample.kind == Kind.TURN]
    # A revision would have raised the first version.
    latest = latest_revisions([line.sample_id for line in turns if line.sample.version > 1])
    as_recorded: list[Decision] = []
    for line in turns:
        revision = latest.get(line.sample_id, {}).get(kept_side(line.pick))
        if revision is None:
            as_recorded.append(line)
        else:
            line.revision_id, line.text_sha256 = revision.pk, answer_sha256(revision.text)
    _name_answers(as_recorded)
    _name_sessions([line for line in approvals if line.sample.kind == Kind.TRAJECTORY])


def _name_answers(approvals: Sequence[Decision]) -> None:
    for picked_king in (False, True):
        lines = {line.sample_id: line for line in approvals if (kept_side(line.pick) == Pick.KING) is picked_king}
        side = "king" if picked_king else "challenger"
        rows = Duel.objects.filter(sample_id__in=IdList(list(lines))) if lines else Duel.objects.none()
        columns = ["sample_id", *(f"{side}__text__{name}" for name in ("text", "thinking", "tool_calls"))]
        if picked_king:
            columns.append("prompt__text__reference")
        for sample_id, text, thinking, calls, *reference in rows.values_list(*columns).iterator(chunk_size=500):
            if text is not None:
                lines[sample_id].text_sha256 = Answered(text, thinking, calls).sha256
            elif reference and reference[0] is not None:
                lines[sample_id].text_sha256 = reference_answer(reference[0]).sha256


def _name_sessions(approvals: Sequence[Decision]) -> None:
    lines = {line.sample_id: line for line in approvals}
    if not lines:
        return
    rows = TrajectoryText.objects.filter(trajectory__sample_id__in=IdList(list(lines)))
    for sample_id, turns in rows.values_list("trajectory__sample_id", "turns").iterator(chunk_size=_AT_ONCE):
        lines[sample_id].text_sha256 = session_sha256(turns)
