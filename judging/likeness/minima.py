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
    found = _of_nothing().copy()
    hashed = [shingle.encode("utf-8", "surrogatepass") for shingle in shingles]
    for start in range(0, len(hashed), _AT_ONCE):
        found.update_batch(hashed[start : start + _AT_ONCE])
    minima: Words = found.digest()
    return minima.astype("<u4").tobytes()


def near_matrix(stored: Sequence[bytes]) -> Words:
    """Return the minima of stored minima as an array of shape (rows, `PERMUTATIONS`)."""
    return np.frombuffer(b"".join(stored), dtype="<u4").reshape(len(stored), PERMUTATIONS)


class BandIndex:
    """Finds the minima that agree in all numbers of at least one band.

    J. Leskovec, A. Rajaraman, J. Ullman, *Mining of Massive Datasets*, section 3.4. Texts of Jaccard similarity s are
    found with the probability 1 - (1 - s ** (`PERMUTATIONS` / bands)) ** bands.
    """

    def __init__(self, bands: int) -> None:
        self._size = PERMUTATIONS // bands * MINIMUM_BYTES
        self._rows: dict[tuple[int, bytes], list[int]] = {}

    def add(self, row: int, minima: bytes) -> None:
        for band in self._bands(minima):
            self._rows.setdefault(band, []).append(row)

    def find(self, minima: bytes) -> list[int]:
        """Return the rows in ascending order."""
        return sorted({row for band in self._bands(minima) for row in self._rows.get(band, ())})

    def _bands(self, minima: bytes) -> Iterable[tuple[int, bytes]]:
        return ((start, minima[start : start + self._size]) for start in range(0, len(minima), self._size))


@cache
def _of_nothing() -> "MinHash":
    """Minima are stored: another seed, scheme or hash makes those of before incomparable."""
    # With SciPy it takes a second and memory, which most processes never need.
    from datasketch import MinHash

    return MinHash(num_perm=PERMUTATIONS, seed=1, hashfunc=zlib.crc32, scheme="affine32")
