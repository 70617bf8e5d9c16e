"""Groups of duplicates: rows with the same digest, and rows that are nearly the same in all of their parts.

Near duplicates are found by MinHash and locality-sensitive hashing (Broder 1997; Leskovec, Rajaraman, Ullman, *Mining
of Massive Datasets*, section 3.4): the share of equal minima of two texts estimates the similarity of their shingles.
A row has minima of one text or of several, its parts; a band has some of each. Two rows with one text of Jaccard
similarity s share all hashes of at least one band with the probability 1 - (1 - s^8)^16, which is 0.99 at 0.85; rows
of several parts do if all of these are 0.85. Of these candidates those are joined whose share of equal minima reaches
the threshold in each part. Groups are transitive.
"""

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from datasketch import MinHash

PERMUTATIONS = 128
MINIMUM_BYTES = 4
_HASHED_AT_ONCE = 8_192
Words = NDArray[np.uint32]


def minima_of(shingles: Iterable[str]) -> bytes:
    """Return the minima of a set of shingles: `PERMUTATIONS` numbers of 4 bytes, little endian."""
    minima: Words = minhash_of(shingles).digest()
    return minima.astype("<u4").tobytes()


def minhash_of(shingles: Iterable[str]) -> "MinHash":
    """Return the signature that datasketch's own indexes take."""
    found = _of_nothing().copy()
    hashed = [shingle.encode("utf-8", "surrogatepass") for shingle in shingles]
    for start in range(0, len(hashed), _HASHED_AT_ONCE):
        found.update_batch(hashed[start : start + _HASHED_AT_ONCE])
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


BANDS = 16
# How many of a row's minima are those of each of its parts.
Parts = Sequence[int]
ONE_TEXT: Parts = (PERMUTATIONS,)
_AT_ONCE = 20_000
Ints = NDArray[np.int64]
Bands = NDArray[np.uint64]
# Returns the minima of rows by their numbers: all of them at once would not fit into memory.
ReadNear = Callable[[Ints], Sequence[bytes]]


class Groups:
    """Disjoint sets of rows 0 … `rows` - 1. The smallest row of a set names it."""

    def __init__(self, rows: int) -> None:
        self._parent = np.arange(rows, dtype=np.int64)

    def find(self, row: int) -> int:
        root = row
        while (above := int(self._parent[root])) != root:
            root = above
        while row != root:
            self._parent[row], row = root, int(self._parent[row])
        return root

    def join(self, first: int, second: int) -> None:
        low, high = sorted((self.find(first), self.find(second)))
        self._parent[high] = low

    def sets(self) -> dict[int, list[int]]:
        """Return the rows of each set with more than one, by its smallest row."""
        joined = np.flatnonzero(self._parent != np.arange(len(self._parent)))
        found: dict[int, list[int]] = {}
        for row in joined.tolist():
            root = self.find(row)
            found.setdefault(root, [root]).append(row)
        return found


def bands_of(near: Sequence[bytes], parts: Parts = ONE_TEXT) -> Bands:
    """Return one hash per band of stored minima, of shape (rows, `BANDS`); 0 for a row without minima."""
    bands = np.zeros((len(near), BANDS), dtype=np.uint64)
    long = [row for row, minima in enumerate(near) if minima]
    if long:
        split = np.split(near_matrix([near[row] for row in long]), np.cumsum(parts)[:-1], axis=1)
        columns = np.concatenate([part.reshape(len(long), BANDS, -1) for part in split], axis=2)
        hashed = np.zeros((len(long), BANDS), dtype=np.uint64)
        for column in range(columns.shape[2]):
            # FNV-1a over the minima of a band.
            hashed = (hashed ^ columns[:, :, column]) * np.uint64(0x100000001B3)
        bands[long] = hashed | np.uint64(1)
    return bands


def group_exact(groups: Groups, exact: NDArray[np.uint64]) -> None:
    """Join the rows with equal digests."""
    for first, row in _equal_neighbours(exact):
        groups.join(first, row)


def group_near(groups: Groups, bands: Bands, read_near: ReadNear, *, threshold: float, parts: Parts = ONE_TEXT) -> None:
    """Join the rows whose minima are equal in at least `threshold` of the permutations of each part.

    Of the rows that share a band each is compared with the first, so a band with many rows is not compared pair by
    pair.
    """
    pairs: set[tuple[int, int]] = set()
    for band in range(bands.shape[1]):
        for first, row in _equal_neighbours(bands[:, band]):
            if groups.find(first) != groups.find(row):
                pairs.add((first, row))
                if len(pairs) >= _AT_ONCE:
                    _join_similar(groups, pairs, read_near, threshold, parts)
                    pairs.clear()
    _join_similar(groups, pairs, read_near, threshold, parts)


def _equal_neighbours(keys: NDArray[np.uint64]) -> Iterator[tuple[int, int]]:
    """Yield (first row, row) for the rows of each key that more than one row has. Key 0 is no key."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    sizes = np.diff(np.r_[starts, len(ordered)])
    for start, size in zip(starts[sizes > 1].tolist(), sizes[sizes > 1].tolist(), strict=True):
        if ordered[start]:
            first, *others = order[start : start + size].tolist()
            for row in others:
                yield first, row


def _join_similar(
    groups: Groups, pairs: set[tuple[int, int]], read_near: ReadNear, threshold: float, parts: Parts
) -> None:
    if not pairs:
        return
    left, right = np.array(sorted(pairs), dtype=np.int64).T
    rows = np.unique(np.concatenate([left, right]))
    minima = near_matrix(read_near(rows))
    equal = minima[np.searchsorted(rows, left)] == minima[np.searchsorted(rows, right)]
    same = np.min([part.mean(axis=1) for part in np.split(equal, np.cumsum(parts)[:-1], axis=1)], axis=0)
    for first, second in zip(left[same >= threshold].tolist(), right[same >= threshold].tolist(), strict=True):
        groups.join(first, second)
