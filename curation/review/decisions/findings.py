"""The scan's findings in the texts of one sample, their places, and their clearance by a person."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from django.db import transaction
from django.db.models import Q

from curation.duels.models import Duel, Opponent
from curation.projects.access import Access
from curation.review.decisions.outcome import latest_revisions
from curation.review.decisions.state import MAX_REASON, change, refuse_errors
from curation.review.models import Clearance, Pick
from curation.review.queue.lease import lock_sample
from curation.samples.models import SCANNED, Sample, SampleStatus
from curation.samples.scores import scanned_flags
from curation.samples.texts import AnsweredSide, reference_answer, scan_texts, text_sha256
from curation.trajectories.models import TrajectoryText
from curation.web.problems import FieldError, NotFound
from curation.web.text.storable import text_errors
from judging.scan.rules import Kind
from judging.scan.scan import ScanFinding, rule_set_version, texts_of

# The sides as `TextOfSample.part` names them.
CHALLENGER, KING = "challenger", "king"
# About a second of work, so that no writer waits long.
SCANNED_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class TextOfSample:
    """A text of the sample. `part` is history, tools, turn, challenger, king, `challenger reasoning`, comment or note;
    `index` is the message of the history, the turn of the session, or the id of the decision or revision."""

    part: str
    index: int
    text: str


@dataclass(frozen=True, slots=True)
class TextFinding:
    """One finding. `start` and `end` are characters of `text`, which is at `part` and `index`; `value_sha256` names the
    value without repeating it."""

    part: str
    index: int
    rule: str
    kind: Kind
    start: int
    end: int
    value_sha256: str
    cleared_by: str | None
    text: str = field(repr=False)


def findings_of(sample: Sample, *, first: str = CHALLENGER) -> list[TextFinding]:
    """Return the findings in everything of the sample that may leave, in the order of its texts: the history, the
    session, both answers as recorded and as last revised, that of the side `first` before the other, and the comments,
    reasons and notes of its reviewers."""
    places = list(_places(sample, first))
    found = scan_texts(place.text for place in places)
    cleared = {
        (rule, digest): name
        for rule, digest, name in Clearance.objects.filter(sample=sample).values_list(
            "rule", "value_sha256", "cleared_by__username"
        )
    }
    return [_found(place, finding, cleared) for place in places for finding in found.get(place.text, ())]


def flag_findings(sample: Sample) -> None:
    """Scan the sample's texts under the current rules, and set the flags of uncleared findings. Flags point reviewers
    to them and change no decision, so the version stays."""
    open_findings = (ScanFinding(row.rule, row.start, row.end) for row in findings_of(sample) if row.cleared_by is None)
    flags = sample.flags & ~SCANNED | scanned_flags(open_findings)
    rules = rule_set_version()
    if (flags, rules) != (sample.flags, sample.scan_rules):
        Sample.objects.filter(pk=sample.pk).update(flags=flags, scan_rules=rules)
        sample.flags, sample.scan_rules = flags, rules


def scan_undecided(*, at_most: int = SCANNED_AT_ONCE) -> int:
    """Scan undecided samples that were not scanned under the current rules, the oldest first, and return their number:
    those from before the scan, those scored again, and all of them after a change of the rules. Nobody touches them,
    so nothing else would. An approval and an export scan for themselves."""
    rules = rule_set_version()
    ids: list[int] = []
    for status in (SampleStatus.PENDING, SampleStatus.NEEDS_REFINE):
        # Two ranges, because an index cannot search for unequal values.
        for other in (Q(scan_rules__lt=rules), Q(scan_rules__gt=rules)):
            rows = Sample.objects.filter(other, status=status).order_by("scan_rules", "pk")
            ids += rows.values_list("pk", flat=True)[: at_most - len(ids)]
    for pk in ids:
        with transaction.atomic():
            sample = Sample.objects.select_for_update(of=("self",)).filter(pk=pk).first()
            if sample is not None:
                flag_findings(sample)
    return len(ids)


def _found(place: TextOfSample, finding: ScanFinding, cleared: dict[tuple[str, str], str]) -> TextFinding:
    digest = text_sha256(place.text[finding.start : finding.end])
    by = cleared.get((finding.rule, digest))
    return TextFinding(
        place.part, place.index, finding.rule, finding.kind, finding.start, finding.end, digest, by, place.text
    )


def _places(sample: Sample, first: str) -> Iterator[TextOfSample]:
    duel = Duel.objects.filter(sample=sample).with_histories().first()
    if duel is not None:
        for index, message in enumerate(duel.prompt.text.history):
            for text in texts_of(message):
                yield TextOfSample("history", index, text)
        yield from (TextOfSample("tools", 0, text) for text in texts_of(duel.prompt.text.tools))
        reference = reference_answer(duel.prompt.text.reference)
        rows = {CHALLENGER: duel.challenger, KING: duel.king}
        for side, row in sorted(rows.items(), key=lambda found: found[0] != first):
            if row is None and duel.opponent == Opponent.NONE:
                continue
            answer = AnsweredSide(row.text.text, row.text.thinking, row.text.tool_calls) if row else reference
            yield TextOfSample(side, 0, answer.text)
            yield from (TextOfSample(f"{side} reasoning", 0, text) for text in texts_of([answer.reasoning]) if text)
    revised = {
        KING if side == Pick.KING else CHALLENGER: revision
        for side, revision in latest_revisions([sample.pk]).get(sample.pk, {}).items()
    }
    for side, revision in sorted(revised.items(), key=lambda found: found[0] != first):
        yield TextOfSample(side, revision.pk, revision.text)
    for session in TrajectoryText.objects.only("steps").filter(trajectory__sample=sample):
        for index, turn in enumerate(session.turns):
            for text in texts_of(turn):
                yield TextOfSample("turn", index, text)
    # Decisions that wait for others are hidden from them, their findings too.
    for pk, comment, reason in sample.decisions.filter(settles=True).values_list("pk", "comment", "reason"):
        yield from (TextOfSample("comment", pk, text) for text in (comment, reason) if text)
    for pk, note in sample.revisions.seen_by(None).not_undone().exclude(note="").values_list("pk", "note"):
        yield TextOfSample("note", pk, note)


_DIGEST = re.compile(r"[0-9a-f]{64}")


def clear(*, access: Access, sample_id: int, rule: str, value_sha256: str, reason: str) -> Sample:
    """Clear one value of the sample for one rule, with the reason in the audit log. The flags then name the remaining
    findings.

    Refused: an empty reason, and a value that the scan does not find in the sample.
    """
    errors = text_errors("reason", reason, at_most=MAX_REASON)
    if not reason.strip():
        errors.append(FieldError("reason", "is empty; say why this text may be exported"))
    if not _DIGEST.fullmatch(value_sha256):
        errors.append(FieldError("value_sha256", "is the SHA-256 of the value, 64 hexadecimal digits"))
    refuse_errors(errors)
    with transaction.atomic():
        sample = lock_sample(access.project, sample_id)
        if not any((row.rule, row.value_sha256) == (rule, value_sha256) for row in findings_of(sample)):
            raise NotFound(f"The scan finds no {rule} with that hash in sample {sample.pk}.")
        values = {"reason": reason.strip(), "cleared_by": access.user}
        Clearance.objects.get_or_create(sample=sample, rule=rule, value_sha256=value_sha256, defaults=values)
        return _finish(access, sample, "sample.clear", rule=rule, value_sha256=value_sha256, reason=reason.strip())


def withdraw(*, access: Access, sample_id: int, rule: str, value_sha256: str) -> Sample:
    """Take a clearance back. `NotFound` where there is none."""
    with transaction.atomic():
        sample = lock_sample(access.project, sample_id)
        removed, _ = Clearance.objects.filter(sample=sample, rule=rule, value_sha256=value_sha256).delete()
        if not removed:
            raise NotFound(f"No {rule} with that hash is cleared in sample {sample.pk}.")
        return _finish(access, sample, "sample.withdraw_clearance", rule=rule, value_sha256=value_sha256)


def _finish(access: Access, sample: Sample, action: str, **data: str) -> Sample:
    flag_findings(sample)
    change(sample)
    access.record(action, str(sample.pk), data)
    return sample
