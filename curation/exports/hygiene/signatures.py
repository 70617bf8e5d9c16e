"""The stored signatures of approved and of rejected samples. One is made when an export or a preview first needs it,
and again after another decision on its text. A rejected text is like other rejected texts only."""

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from curation.exports.hygiene.signature import VERSION, Signature, SignedRow, signature
from curation.exports.models import SampleSignature
from curation.exports.rows.queries import DuelTexts, read_duel_texts, read_rollouts
from curation.review.decisions.outcome import Reviewed, standing_approvals
from curation.samples.models import Kind, Sample
from curation.trajectories.recorded import Recorded, text_of
from curation.web.lists.id_list import IdList
from judging.messages import message_text
from judging.scan.mask import Masks
from judging.scan.scan import rule_set_version, scan, texts_of

_DIGITS = re.compile(r"\d+")
_SYSTEM = ("system", "developer")


class SignedSample(NamedTuple):
    sample_id: int
    exact: bytes
    near: bytes
    stored: bytes = b""


def signed_samples(ids: Sequence[int]) -> list[SignedSample]:
    """Return the signatures of decided samples, in the order of `ids`, which ascend; without those that have no decided
    text."""
    decided = standing_approvals(ids, rejections=True)
    texts = {pk: one.text_key for pk, one in decided.items()}
    stored = SampleSignature.objects.filter(sample_id__in=IdList(ids), version=VERSION)
    columns = stored.values_list("sample_id", "text_sha256", "exact", "near")
    found = {
        pk: SignedSample(pk, bytes(exact), bytes(near)) for pk, key, exact, near in columns if texts.get(pk) == key
    }
    missing = [pk for pk in ids if pk in texts and pk not in found]
    # Of these the scan at the approval found nothing.
    clean = {pk for pk, one in decided.items() if one.scan_rules == rule_set_version()}
    signed = _make(missing, clean, texts) if missing else ()
    made = [_apart(row) if decided[row.sample_id].rejects else row for row in signed]
    SampleSignature.objects.bulk_create(
        [
            SampleSignature(
                sample_id=row.sample_id,
                version=VERSION,
                text_sha256=texts[row.sample_id],
                stored=row.stored,
                exact=row.exact,
                near=row.near,
            )
            for row in made
        ],
        update_conflicts=True,
        unique_fields=["sample"],
        update_fields=["version", "text_sha256", "stored", "exact", "near"],
        batch_size=500,
    )
    found.update((row.sample_id, row) for row in made)
    return [found[pk] for pk in ids if pk in found]


def read_near(ids: Sequence[int]) -> list[bytes]:
    """Return the minima of stored signatures, in the order of `ids`."""
    found = SampleSignature.objects.filter(sample_id__in=IdList(ids)).values_list("sample_id", "near")
    near = {pk: bytes(minima) for pk, minima in found}
    return [near[pk] for pk in ids]


def _make(ids: Sequence[int], clean: Set[int], texts_of_approvals: Mapping[int, str]) -> Iterator[SignedSample]:
    trajectories = set(Sample.objects.filter(pk__in=IdList(ids), kind=Kind.TRAJECTORY).values_list("pk", flat=True))
    turns = [pk for pk in ids if pk not in trajectories]
    reviewed = Reviewed(turns, rejections=True)
    for pk, texts in zip(turns, read_duel_texts(turns, kings=reviewed.keeps_kings), strict=True):
        if texts is not None:
            chosen = reviewed.outcome(pk, texts.challenger, texts.king).chosen_text
            yield SignedSample(pk, *_turn_signature(texts, chosen, is_clean=pk in clean))
    sessions = sorted(trajectories)
    for pk, rollout in zip(sessions, read_rollouts(sessions), strict=True):
        if rollout is not None:
            is_approved = rollout.recorded.sha256 == texts_of_approvals[pk]
            signed = _session_signature(rollout.recorded, is_clean=pk in clean)
            yield SignedSample(pk, *signed, rollout.digest if is_approved else b"")


def _apart(row: SignedSample) -> SignedSample:
    """Return the signature with its bits turned: it is as like other turned ones as before, and like no others."""
    return row._replace(exact=_turned(row.exact), near=_turned(row.near))


def _turned(digest: bytes) -> bytes:
    return bytes(byte ^ 0xFF for byte in digest)


def _masked(texts: Sequence[str]) -> list[str]:
    """Return the texts of a row with a placeholder for everything that the scan finds."""
    masks = Masks()
    return [masks.apply(text, scan(text), lambda _: True) for text in texts]


def _turn_signature(texts: DuelTexts, chosen: str, *, is_clean: bool) -> Signature:
    """Sign a turn. Messages of its history that are trained on as well make it a session."""
    messages = [message for message in texts.history if isinstance(message, dict)]
    contents = [*map(message_text, messages), chosen]
    if not is_clean:
        contents = _masked(contents)
    roles = [str(message.get("role")) for message in messages]
    learned = {*(number for number, message in enumerate(messages) if message.get("train")), len(messages)}
    rest = [(roles[number], text) for number, text in enumerate(contents) if number not in learned]
    return signature(
        SignedRow(
            history="\n".join([texts.tools, *(text for _, text in rest)]),
            learned=[contents[number] for number in sorted(learned)],
            steps=[text for role, text in rest if role == "assistant"],
            shown=[text for role, text in rest if role not in ("assistant", *_SYSTEM)],
            setting="\n".join([texts.tools, *(text for role, text in rest if role in _SYSTEM)]),
        )
    )


def _session_signature(recorded: Recorded, *, is_clean: bool) -> Signature:
    """Sign a session. Its history is what the agent was shown, without digits: times and process ids differ from run to
    run."""
    messages, positions = recorded.said()
    contents = [text_of(message) for message in messages]
    learned = set(recorded.learned)
    roles = [
        "learned" if step in learned and message["role"] == "assistant" else message["role"]
        for step, message in zip(positions, messages, strict=True)
    ]
    texts = list(zip(roles, contents if is_clean else _masked(contents), strict=True))
    shown = [text for role, text in texts if role not in ("learned", "assistant", *_SYSTEM)]
    return signature(
        SignedRow(
            history=_DIGITS.sub("0", "\n".join(text for role, text in texts if role != "learned")),
            learned=[text for role, text in texts if role == "learned"],
            steps=[text for role, text in texts if role == "assistant"],
            shown=shown,
            setting="\n".join([*texts_of(recorded.tools), *(text for role, text in texts if role in _SYSTEM)]),
        )
    )
