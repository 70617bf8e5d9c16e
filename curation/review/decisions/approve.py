"""Name the text that an approval keeps: its revision, and the hash of exactly the text that a person read. Then scan
it."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

from django.db.models import TextField
from django.db.models.functions import Cast

from curation.duels.models import Duel
from curation.duels.prompts.sessions import COLUMNS, Sessions, SharedText
from curation.review.decisions.outcome import AnsweredSide, kept_side, latest_revisions, reference_answer
from curation.review.models import Decision, Pick
from curation.samples.models import SampleKind
from curation.samples.scans import scan_texts
from curation.trajectories.models import TrajectoryText
from curation.trajectories.recorded import RecordedTexts
from curation.web.database.prepared import Prepared
from curation.web.ids import IdList
from curation.web.text.storable import read_column
from judging.answers.digest import answer_sha256
from judging.scan.scan import rule_set_version, texts_of

# Sessions are long, so only a few are in memory at once.
_AT_ONCE = 50


def name_approved_texts(approvals: Sequence[Decision]) -> None:
    """Set `revision`, `text_sha256` and the scan's result on approvals that are not yet written. The caller locks their
    samples. They are by one person, whose own revisions may be hidden from others."""
    turns = [line for line in approvals if line.sample.kind == SampleKind.TURN]
    # A revision would have raised the first version.
    revised_ids = [line.sample_id for line in turns if line.sample.version > 1 or line.sample.opinions]
    latest = latest_revisions(revised_ids, reader=approvals[0].reviewer_id) if revised_ids else {}
    for line in turns:
        revision = latest.get(line.sample_id, {}).get(kept_side(line.pick))
        if revision is not None:
            line.revision_id, line.text_sha256 = revision.pk, answer_sha256(revision.text)
    revised = {line.sample_id: latest[line.sample_id][kept_side(line.pick)].text for line in turns if line.revision_id}
    _name_and_scan_turns(turns, revised)
    _name_sessions([line for line in approvals if line.sample.kind == SampleKind.TRAJECTORY])


def _name_and_scan_turns(approvals: Sequence[Decision], revised: Mapping[int, str]) -> None:
    """Name the recorded answers and prompts, scan everything that an export may write of each sample, and note where
    nothing is found. `revised` are the approved texts that are revisions."""
    lines = {line.sample_id: line for line in approvals}
    rows = _texts_of(list(lines))
    while part := list(islice(rows, _AT_ONCE)):
        scanned: dict[int, list[str]] = {}
        for pk, shared, at, reference, *columns in part:
            challenger = AnsweredSide(*columns[:3])
            king = reference_answer(reference) if columns[3] is None else AnsweredSide(*columns[3:])
            kept, text, other = challenger, columns[0], king
            if kept_side(lines[pk].pick) == Pick.KING:
                kept, text, other = king, reference if columns[3] is None else columns[3], challenger
            if text is not None and pk not in revised:
                lines[pk].text_sha256 = kept.sha256
            lines[pk].prompt_sha256, lines[pk].other_sha256 = shared.prompt_sha256(at), other.sha256
            texts = [shared.messages[:at], read_column(shared.tools), challenger, king, revised.get(pk, "")]
            scanned[pk] = list(texts_of(texts))
        found = scan_texts(chain.from_iterable(scanned.values()))
        for pk, texts in scanned.items():
            if found.keys().isdisjoint(texts):
                lines[pk].scan_rules = rule_set_version()


def _texts_of(sample_ids: Sequence[int]) -> Iterator[tuple[Any, ...]]:
    """Yield the sample, its session, its position there, the reference, and the columns of both answers."""
    if len(sample_ids) == 1:
        row = _texts_of_one.first(sample=sample_ids[0])
        if row is not None and row[0] is not None:  # None: the messages are those of a trajectory
            messages, tools, at, pk, *rest = row
            yield pk, SharedText.read(messages, tools), at, *rest
            return
    sessions = Sessions()
    duels = Duel.objects.filter(sample_id__in=IdList(sample_ids)) if sample_ids else Duel.objects.none()
    rows = duels.values_list("prompt__text__session_id", *_COLUMNS).iterator(chunk_size=_AT_ONCE)
    while part := list(islice(rows, _AT_ONCE)):
        texts = sessions.read([row[0] for row in part])
        for session, at, pk, *rest in part:
            yield pk, texts[session], at, *rest


_SIDES = [f"{side}__text__{name}" for side in ("challenger", "king") for name in ("text", "thinking", "tool_calls")]
_COLUMNS = ("prompt__text__at", "sample_id", "prompt__text__reference", *_SIDES)
_SHARED = [Cast(f"prompt__text__session__{name}", TextField()) for name in COLUMNS]
# Every decision of one sample makes this query.
_texts_of_one = Prepared(lambda sample: Duel.objects.filter(sample=sample).values_list(*_SHARED, *_COLUMNS), sample=int)


def _name_sessions(approvals: Sequence[Decision]) -> None:
    lines = {line.sample_id: line for line in approvals}
    if not lines:
        return
    rows = TrajectoryText.objects.filter(trajectory__sample_id__in=IdList(list(lines)))
    columns = rows.values_list("trajectory__sample_id", *RecordedTexts._fields)
    for sample_id, *columns_of_text in columns.iterator(_AT_ONCE):
        recorded = RecordedTexts(*columns_of_text)
        lines[sample_id].text_sha256 = recorded.sha256
        if not scan_texts(recorded.texts()):
            lines[sample_id].scan_rules = rule_set_version()
