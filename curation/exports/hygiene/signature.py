"""Signature: tells whether two rows are the same, or nearly.

Near duplicates agree in two parts, compared separately: what is trained on with its prompt, and the agent's steps
before it. The text that two prompts share tells nothing: each word in which they differ counts as a word of the trained
text that differs. So a long shared prompt and equal commands do not make duplicates of different tasks, a few words
that differ in the prompts of a long answer do not hide a duplicate, and copies with other ids and times are duplicates.
"""

import hashlib
import zlib
from collections.abc import Sequence, Set
from dataclasses import dataclass
from math import log2
from typing import NamedTuple

from judging.contamination.normalise import normalised, without_ids
from judging.contamination.words import with_blanks
from judging.likeness.minima import MINIMUM_BYTES, PERMUTATIONS, minima_of

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


@dataclass(frozen=True, slots=True)
class SignedRow:
    """The texts of a row. `setting` is its system prompt and its tools, `shown` the messages of users and tools,
    `steps` the agent's earlier messages that are not trained. `history` is all text before the trained part, in its
    order."""

    history: str
    learned: Sequence[str]
    steps: Sequence[str] = ()
    shown: Sequence[str] = ()
    setting: str = ""


def signature(row: SignedRow) -> Signature:
    """Return the signature of a row. Case and white space do not count."""
    whole = hashlib.blake2b(" ".join(row.history.casefold().split()).encode("utf-8", "surrogatepass"), digest_size=8)
    whole.update("\0".join(["", *_words(row.learned)]).encode("utf-8", "surrogatepass"))
    learned, steps = (_shingles([without_ids(text) for text in texts]) for texts in (row.learned, row.steps))
    parts = (_with_prompt(learned, row), steps)
    near = b"".join(minima_of(part)[: count * MINIMUM_BYTES] for part, count in zip(parts, PARTS, strict=True))
    return Signature(whole.digest(), near)


def _with_prompt(shingles: Set[str], row: SignedRow) -> set[str]:
    """Return each shingle with a digest of one share of the prompt's words, so that each word that differs changes the
    shingles of its share.

    The number of shares is a power of two near the number of shingles, and smaller for short texts. Each shingle rounds
    it in its own way, so that texts of nearly the same length have most shingles in common.
    """
    # Under another system prompt, or with other tools, everything else is another thing.
    setting = _hash(" ".join(_words([normalised(row.setting, volatile=())])))
    opening, others = row.shown[:1], row.shown[1:]
    # Numbers of a task tell, those that a terminal shows do not.
    shown = [*map(without_ids, opening), *(normalised(text, volatile=()) for text in others)]
    hashes = [_hash(word) for word in _words(shown)]
    count = len(shingles)
    length = log2(max(count * min(count / STRICT_BELOW, 1), 1))
    sums = {power: _sums(hashes, 1 << power) for power in (int(length), int(length) + 1)}
    found = set()
    for shingle in shingles:
        number = _hash(shingle)
        share = sums[int(length + (number >> 16) / 0x10000)]
        found.add(f"{setting} {share[number % len(share)]} {shingle}")
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
