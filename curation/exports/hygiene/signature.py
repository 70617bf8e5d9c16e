"""Signature: what tells whether two texts are the same, or nearly.

What is compared is what is learned: of a turn the last observation and the answer, so that the turns of one trajectory
are not duplicates by the history that they share; of a session its commands. Case and white space do not count.
"""

import functools
import hashlib
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from datasketch import MinHash

# Raise it with every change of what a signature is made of: stored signatures of another version are made again.
VERSION = 1
PERMUTATIONS = 128
WORDS = 3
# With less, one changed word is most of the text: such texts are only compared as a whole.
MIN_SHINGLES = 8


class Signature(NamedTuple):
    """`exact`: 8 bytes of a digest over the whole row, its history included. `near`: `PERMUTATIONS` minima of 4 bytes,
    little endian, over what is learned; empty for a short text."""

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
    minima = _no_shingles().copy()
    minima.update_batch(shingle.encode("utf-8", "surrogatepass") for shingle in shingles)
    return Signature(whole.digest(), minima.digest().astype("<u4").tobytes())


@functools.cache
def _no_shingles() -> "MinHash":
    from datasketch import MinHash  # it loads SciPy: half a second, which no process should pay at its start

    return MinHash(num_perm=PERMUTATIONS, hashfunc=zlib.crc32)


def near_matrix(stored: Sequence[bytes]) -> NDArray[np.uint32]:
    """Return the minima of stored signatures as an array of shape (rows, `PERMUTATIONS`)."""
    return np.frombuffer(b"".join(stored), dtype="<u4").reshape(len(stored), PERMUTATIONS)
