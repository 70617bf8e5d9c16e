"""MinHash: signatures that stay comparable with stored ones."""

import random
import zlib

import pytest
from datasketch import MinHash

from judging.near_duplicates import PERMUTATIONS, minima_of, near_matrix


@pytest.mark.parametrize("count", [0, 1, 30, 20_000])
def test_minima_are_those_of_datasketch_which_stored_rows_have(count: int) -> None:
    draws = random.Random(count)
    shingles = [f"{draws.random()} ✓\ud800" for _ in range(count)]
    theirs = MinHash(num_perm=PERMUTATIONS, hashfunc=zlib.crc32, scheme="affine32")
    theirs.update_batch(shingle.encode("utf-8", "surrogatepass") for shingle in shingles)

    assert near_matrix([minima_of(shingles)]).tolist() == [theirs.digest().tolist()]


def test_the_share_of_equal_minima_estimates_the_jaccard_similarity() -> None:
    shared, own = [f"s{number}" for number in range(600)], [f"o{number}" for number in range(400)]
    one, other = near_matrix([minima_of(shared + own[:200]), minima_of(shared + own[200:])])

    assert float((one == other).mean()) == pytest.approx(0.6, abs=0.12)
