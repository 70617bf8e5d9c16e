"""MinHash signatures: the share of equal minima of two texts estimates the Jaccard similarity of their shingles.

A. Broder, "On the resemblance and containment of documents", Compression and Complexity of Sequences (1997).
"""

import zlib
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from datasketch import MinHash

PERMUTATIONS = 128
MINIMUM_BYTES = 4
_AT_ONCE = 8_192
Words = NDArray[np.uint32]


def minima_of(shingles: Iterable[str]) -> bytes:
    """Return the minima of a set of shingles: `PERMUTATIONS` numbers of 4 bytes, little endian."""
    minima: Words = minhash_of(shingles).digest()
    return minima.astype("<u4").tobytes()


def minhash_of(shingles: Iterable[str]) -> "MinHash":
    """Return the signature that datasketch's own indexes take."""
    found = _of_nothing().copy()
    hashed = [shingle.encode("utf-8", "surrogatepass") for shingle in shingles]
    for start in range(0, len(hashed), _AT_ONCE):
        found.update_batch(hashed[start : start + _AT_ONCE])
    return found


def near_matrix(stored: Sequence[bytes]) -> Words:
    """Return the minima of stored minima as an array of shape (rows, `PERMUTATIONS`)."""
    return np.frombuffer(b"".join(stored), dtype="<u4").reshape(len(stored), PERMUTATIONS)


@cache
def _of_nothing() -> "MinHash":
    """Minima are stored: another seed, scheme or hash makes those of before incomparable."""
    # With SciPy it takes a second and memory, which most processes never need.
    from datasketch import MinHash

    return MinHash(num_perm=PERMUTATIONS, seed=1, hashfunc=zlib.crc32, scheme="affine32")
