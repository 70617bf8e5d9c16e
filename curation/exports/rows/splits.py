"""Splits by group: a seeded hash of the group's name alone decides, so new rows never move the ones that are there."""

import hashlib
from collections.abc import Mapping

_SPACE = 2**64


def split_of(group: str, *, seed: int, shares: Mapping[str, float]) -> str:
    """The split of a group: its hash, as a number in [0, 1), falls into the shares laid end to end.

    `shares` sum to 1. Whole groups fall, so with few or uneven groups the shares are met only roughly.
    """
    digest = hashlib.blake2b(f"{seed}\n{group}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    place = int.from_bytes(digest, "big") / _SPACE
    edge = 0.0
    names = [name for name, share in shares.items() if share > 0]
    for name in names:
        edge += shares[name]
        if place < edge:
            return name
    return names[-1]
