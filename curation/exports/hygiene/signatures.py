"""Signatures: they tell whether two rows are the same, or nearly.

Near duplicates agree in two parts, compared separately: what is trained on with its prompt, and the agent's steps
before it. The text that two prompts share tells nothing: each word in which they differ counts as a word of the trained
text that differs. So a long shared prompt and equal commands do not make duplicates of different tasks, a few words
that differ in the prompts of a long answer do not hide a duplicate, and copies with other ids and times are duplicates.

A signature is stored. It is made when an export or a preview first needs it, and again after another decision on its
text. A rejected text is like other rejected texts only.
"""

import hashlib
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence, Set
from math import log2
from typing import NamedTuple

from curation.exports.models import SampleSignature
from curation.exports.rows.queries import DuelTexts, read_duel_texts, read_rollouts
from curation.review.decisions.outcome import Approval, Reviewed, standing_approvals
from curation.samples.models import Sample, SampleKind
from curation.trajectories.recorded import RecordedTexts, text_of
from curation.web.ids import IdList
from judging.contamination.normalise import normalised, without_ids
from judging.contamination.options import with_blanks
from judging.messages import message_text
from judging.near_duplicates import MINIMUM_BYTES, PERMUTATIONS, minima_of
from judging.scan.scan import Masks, rule_set_version, scan, texts_of

# Raise it when the inputs of a signature change: stored signatures of another version are made again.
VERSION = 6
WORDS = 3
# With less, one changed word is most of the text: such texts are only compared as a whole.
MIN_SHINGLES = 8
# Fewer shingles of a trained text count with larger shares of the prompt: short answers to similar tasks are common.
STRICT_BELOW = 64
# Numbers of minima of the trained text with its prompt, and of the steps.
PARTS = (PERMUTATIONS * 3 // 4, PERMUTATIONS // 4)


class Signature(NamedTuple):
    """`exact`: 8 bytes of a digest over the whole row. `near`: minima of the trained text with its prompt and of the
    steps, in the numbers of `PARTS`."""

    exact: bytes
    near: bytes


def signature(
    *, history: str, learned: Sequence[str], steps: Sequence[str] = (), shown: Sequence[str] = (), setting: str = ""
) -> Signature:
    """Return the signature of a row. Case and white space do not count.

    `setting` is the row's system prompt and its tools, `shown` the messages of users and tools, `steps` the agent's
    earlier messages that are not trained. `history` is all text before the trained part, in its order.
    """
    whole = hashlib.blake2b(" ".join(history.casefold().split()).encode("utf-8", "surrogatepass"), digest_size=8)
    whole.update("\0".join(["", *_words(learned)]).encode("utf-8", "surrogatepass"))
    of_learned, of_steps = (_shingles([without_ids(text) for text in texts]) for texts in (learned, steps))
    parts = (_with_prompt(of_learned, shown, setting), of_steps)
    near = b"".join(minima_of(part)[: count * MINIMUM_BYTES] for part, count in zip(parts, PARTS, strict=True))
    return Signature(whole.digest(), near)


def _with_prompt(shingles: Set[str], shown: Sequence[str], setting: str) -> set[str]:
    """Return each shingle with a digest of one share of the prompt's words, so that each word that differs changes the
    shingles of its share.

    The number of shares is a power of two near the number of shingles, and smaller for short texts. Each shingle rounds
    it in its own way, so that texts of nearly the same length have most shingles in common.
    """
    # Under another system prompt, or with other tools, everything else is another thing.
    around = _hash(" ".join(_words([normalised(setting, volatile=())])))
    # Numbers of a task tell, those that a terminal shows do not.
    prompt = [*map(without_ids, shown[:1]), *(normalised(text, volatile=()) for text in shown[1:])]
    hashes = [_hash(word) for word in _words(prompt)]
    count = len(shingles)
    length = log2(max(count * min(count / STRICT_BELOW, 1), 1))
    sums = {power: _sums(hashes, 1 << power) for power in (int(length), int(length) + 1)}
    found = set()
    for shingle in shingles:
        number = _hash(shingle)
        share = sums[int(length + (number >> 16) / 0x10000)]
        found.add(f"{around} {share[number % len(share)]} {shingle}")
    return found


def _sums(hashes: Sequence[int], count: int) -> list[int]:
    """Return the sum of the hashes in each of `count` shares."""
    sums = [0] * count
    for value in hashes:
        sums[value % count] += value
    return sums


def _hash(text: str) -> int:
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


def _shingles(texts: Sequence[str]) -> Set[str]:
    """Return the runs of `WORDS` words, or a short text as a whole."""
    words = _words(texts)
    shingles = {" ".join(words[start : start + WORDS]) for start in range(len(words) - WORDS + 1)}
    return shingles if len(shingles) >= MIN_SHINGLES else {" ".join(words)}


def _words(texts: Sequence[str]) -> list[str]:
    return with_blanks(" ".join(texts)).casefold().split()


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
    if len(found) < len(decided):
        missing = [pk for pk in ids if pk in decided and pk not in found]
        found.update((row.sample_id, row) for row in _store(missing, decided))
    return [found[pk] for pk in ids if pk in found]


def _store(ids: Sequence[int], decided: Mapping[int, Approval]) -> list[SignedSample]:
    """Make the signatures of some samples, and store them."""
    texts = {pk: decided[pk].text_key for pk in ids}
    # Of these the scan at the approval found nothing.
    clean = {pk for pk in ids if decided[pk].scan_rules == rule_set_version()}
    made = [_inverted(row) if decided[row.sample_id].rejects else row for row in _signed(ids, clean, texts)]
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
    return made


def read_near(ids: Sequence[int]) -> list[bytes]:
    """Return the minima of stored signatures, in the order of `ids`."""
    found = SampleSignature.objects.filter(sample_id__in=IdList(ids)).values_list("sample_id", "near")
    near = {pk: bytes(minima) for pk, minima in found}
    return [near[pk] for pk in ids]


def _signed(ids: Sequence[int], clean: Set[int], texts_of_approvals: Mapping[int, str]) -> Iterator[SignedSample]:
    trajectories = set(
        Sample.objects.filter(pk__in=IdList(ids), kind=SampleKind.TRAJECTORY).values_list("pk", flat=True)
    )
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


def _inverted(row: SignedSample) -> SignedSample:
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
        history="\n".join([texts.tools, *(text for _, text in rest)]),
        learned=[contents[number] for number in sorted(learned)],
        steps=[text for role, text in rest if role == "assistant"],
        shown=[text for role, text in rest if role not in ("assistant", *_SYSTEM)],
        setting="\n".join([texts.tools, *(text for role, text in rest if role in _SYSTEM)]),
    )


def _session_signature(recorded: RecordedTexts, *, is_clean: bool) -> Signature:
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
        history=_DIGITS.sub("0", "\n".join(text for role, text in texts if role != "learned")),
        learned=[text for role, text in texts if role == "learned"],
        steps=[text for role, text in texts if role == "assistant"],
        shown=shown,
        setting="\n".join([*texts_of(recorded.tools), *(text for role, text in texts if role in _SYSTEM)]),
    )
