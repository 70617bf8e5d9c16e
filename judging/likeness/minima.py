"""MinHash signatures: the share of equal minima of two texts estimates the Jaccard similarity of their shingles.

A. Broder, "On the resemblance and containment of documents", Compression and Complexity of Sequences (1997).
"""

import functools
import zlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from datasketch import MinHash

PERMUTATIONS = 128


def minima_of(shingles: Iterable[str]) -> bytes:
    """Return the minima of a set of shingles: `PERMUTATIONS` numbers of 4 bytes, little endian."""
    minima = no_shingles().copy()
    minima.update_batch(shingle.encode("utf-8", "surrogatepass") for shingle in shingles)
    found: bytes = minima.digest().astype("<u4").tobytes()
    return found


@functools.cache
def no_shingles() -> "MinHash":
    """Return a signature to copy: its permutations take longer to draw than a text to sign."""
    from datasketch import MinHash  # it loads SciPy: half a second, which no process should pay at its start

    return MinHash(num_perm=PERMUTATIONS, hashfunc=zlib.crc32)


def near_matrix(stored: Sequence[bytes]) -> NDArray[np.uint32]:
    """Return the minima of stored minima as an array of shape (rows, `PERMUTATIONS`)."""
    return np.frombuffer(b"".join(stored), dtype="<u4").reshape(len(stored), PERMUTATIONS)
