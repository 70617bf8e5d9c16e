"""Signature: tells whether two rows are the same, or nearly.

Near duplicates agree in three parts, compared separately: the trained part, the steps before it, and the text around
both. The trained part of a turn is the last observation and the answer, of a session all its trained messages. So
neither a common history nor a common last step makes duplicates, and copies with other ids and times are duplicates.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from judging.contamination.normalise import normalised, without_ids
from judging.likeness.minima import MINIMUM_BYTES, PERMUTATIONS, minima_of

# Raise it when the inputs of a signature change: stored signatures of another version are made again.
VERSION = 4
WORDS = 3
# With less, one changed word is most of the text: such texts are only compared as a whole.
MIN_SHINGLES = 8
# Numbers of minima of the trained part, of the steps, and of the text around both.
PARTS = (PERMUTATIONS // 2, PERMUTATIONS // 4, PERMUTATIONS // 4)


class Signature(NamedTuple):
    """`exact`: 8 bytes of a digest over the whole row. `near`: minima of the trained part, of the steps and of the text
    around both, in the numbers of `PARTS`; empty for a row whose parts are all short."""

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
    # Under another system prompt, or with other tools, everything else is another thing.
    setting = " ".join(_words([normalised(row.setting, volatile=())]))
    shown = _shingles([normalised(text, volatile=()) for text in row.shown])
    if max(len(learned), len(steps)) < MIN_SHINGLES:
        return Signature(whole.digest(), b"")
    parts = (learned, steps, {f"{setting}\0{shingle}" for shingle in shown})
    near = b"".join(minima_of(part)[: count * MINIMUM_BYTES] for part, count in zip(parts, PARTS, strict=True))
    return Signature(whole.digest(), near)


def _shingles(texts: Sequence[str]) -> set[str]:
    """Return the runs of `WORDS` words, or a short text as a whole."""
    words = _words(texts)
    shingles = {" ".join(words[start : start + WORDS]) for start in range(len(words) - WORDS + 1)}
    return shingles if len(shingles) >= MIN_SHINGLES else {" ".join(words)}


def _words(texts: Sequence[str]) -> list[str]:
    return " ".join(texts).casefold().split()
