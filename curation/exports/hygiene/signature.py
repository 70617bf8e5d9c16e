"""Signature: what tells whether two texts are the same, or nearly.

What is compared is what is learned: of a turn the last observation and the answer, so that the turns of one trajectory
are not duplicates by the history that they share; of a session its commands. Case and white space do not count, nor do
the values of secrets and personal data: rows that differ in them alone are the same once they are masked.
"""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from judging.likeness.minima import minima_of

# Raise it with every change of what a signature is made of: stored signatures of another version are made again.
VERSION = 2
WORDS = 3
# With less, one changed word is most of the text: such texts are only compared as a whole.
MIN_SHINGLES = 8


class Signature(NamedTuple):
    """`exact`: 8 bytes of a digest over the whole row, its history included. `near`: the minima of what is learned
    (`judging.likeness.minima`), empty for a short text."""

    exact: bytes
    near: bytes


def signature(*, history: str, learned: Sequence[str]) -> Signature:
    """Return the signature of a row: `history` is all text before what is learned."""
    words = " ".join(learned).casefold().split()
    whole = hashlib.blake2b(" ".join(history.casefold().split()).encode("utf-8", "surrogatepass"), digest_size=8)
    whole.update("\0".join(["", *words]).encode("utf-8", "surrogatepass"))
    shingles = {" ".join(words[start : start + WORDS]) for start in range(len(words) - WORDS + 1)}
    if len(shingles) < MIN_SHINGLES:
        return Signature(whole.digest(), b"")
    return Signature(whole.digest(), minima_of(shingles))
