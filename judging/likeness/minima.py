"""MinHash signatures: the share of equal minima of two texts estimates the Jaccard similarity of their shingles.

A. Broder, "On the resemblance and containment of documents", Compression and Complexity of Sequences (1997).
"""

import zlib
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

PERMUTATIONS = 128
# Minima are stored: a change of the seed, or of how shingles are hashed, makes those of before incomparable.
_SEED = 1
_AT_ONCE = 8_192
Words = NDArray[np.uint32]


def minima_of(shingles: Iterable[str]) -> bytes:
    """Return the minima of a set of shingles: `PERMUTATIONS` numbers of 4 bytes, little endian."""
    hashes = np.array([zlib.crc32(shingle.encode("utf-8", "surrogatepass")) for shingle in shingles], dtype=np.uint32)
    mixed = _mixed(hashes)[:, None]
    minima = np.full(PERMUTATIONS, 0xFFFFFFFF, dtype=np.uint32)
    for start in range(0, len(mixed), _AT_ONCE):
        permuted = mixed[start : start + _AT_ONCE] * _FACTORS + _TERMS
        np.minimum(minima, permuted.min(axis=0), out=minima)
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
        self._size = PERMUTATIONS // bands * 4
        self._rows: dict[tuple[int, bytes], list[int]] = {}

    def add(self, row: int, minima: bytes) -> None:
        for band in self._bands(minima):
            self._rows.setdefault(band, []).append(row)

    def find(self, minima: bytes) -> list[int]:
        """Return the rows in ascending order."""
        return sorted({row for band in self._bands(minima) for row in self._rows.get(band, ())})

    def _bands(self, minima: bytes) -> Iterable[tuple[int, bytes]]:
        return ((start, minima[start : start + self._size]) for start in range(0, len(minima), self._size))


def _permutations() -> tuple[Words, Words]:
    """Return the factors and terms of h → factor · h + term mod 2³², which are permutations because factors are odd."""
    draws = np.random.RandomState(_SEED)
    factors = draws.randint(0, 1 << 31, PERMUTATIONS, dtype=np.uint32) * np.uint32(2) + np.uint32(1)
    return factors, draws.randint(0, 1 << 32, PERMUTATIONS, dtype=np.uint32)


def _mixed(hashes: Words) -> Words:
    """Spread each bit over all others, as the last step of MurmurHash3 does (A. Appleby, 2011)."""
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        hashes = (hashes ^ (hashes >> np.uint32(shift))) * np.uint32(factor)
    return hashes ^ (hashes >> np.uint32(16))


_FACTORS, _TERMS = _permutations()
