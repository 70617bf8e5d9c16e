"""How common English words are in the documentation of programs. `words.txt` has 4,000, the most frequent first.

They were counted in the comments and docstrings of 424 Python packages, by the number of packages that have a word.
"""

import re
from functools import cache
from pathlib import Path

VERY_COMMON = 900


@cache
def ranks() -> dict[str, int]:
    """Return the rank of each common word and of each stem, from 0."""
    found: dict[str, int] = {}
    for rank, word in enumerate((Path(__file__).parent / "words.txt").read_text("utf-8").split()):
        found.setdefault(word, rank)
        found.setdefault(stem(word), rank)
    return found


def is_common(word: str, upto: int = 4000) -> bool:
    """Whether a word, or another form of it, is among the `upto` most common ones."""
    lower = word.lower()
    rank = min(ranks().get(lower, upto), ranks().get(stem(lower), upto))
    return rank < upto


@cache
def _prefixes() -> frozenset[str]:
    return frozenset(word[:length] for word in ranks() for length in range(4, len(word) + 1))


def begins_common(piece: str) -> bool:
    """Whether a piece is the beginning of a common word (`serializ`)."""
    return piece.lower() in _prefixes()


_ENDINGS = re.compile(
    r"(?:isation|ization|ations?|ements?|ingly|edly|ings?|ions?|ness|ments?|ers?|ors?|ies|ied|ely|ly|ed|es|e|s|y)$"
)


@cache
def stem(word: str) -> str:
    """Cut the usual endings of a lower-case word, so that `decoded` and `decoding` are equal."""
    if len(word) < 5:
        return word.removesuffix("s") if len(word) == 4 else word
    cut = _ENDINGS.sub("", word)
    return cut if len(cut) >= 4 else word[: max(4, len(cut))]
