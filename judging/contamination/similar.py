"""Near-duplicates: texts that have most of their words in common, or of which one is the beginning of the other."""

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from judging.near_duplicates import PERMUTATIONS, minhash_of

if TYPE_CHECKING:
    from datasketch import MinHash

# Rows that agree in a band are compared word by word: 0.56 of those that share 0.4 of their rare word pairs, 0.99 of
# those that share 0.6.
BANDS = 32
# Weighted Jaccard indexes of two prompts: if their answers are similar, and if they are the same.
SIMILAR_FROM, SIMILAR_WITH_ANSWER = 0.7, 0.5
SIMILAR_ANSWERS = 0.5
# Fewer rare pairs, or words of a beginning, say too little.
FEWEST_PAIRS, FEWEST_WORDS = 3, 8
LAST_WORDS = 3
# A text with other last words must be so much longer: else it only ends in another way.
LONGER_BY = 1.2
# A pair of words in more of the rows than this belongs to their template.
RARE = 0.1
_ROLES = frozenset(f"{role}:" for role in ("system", "developer", "user", "assistant", "tool", "function"))


class SimilarTexts:
    """The texts of an evaluation, to find those that a training text resembles.

    Word pairs weigh log((n + 1) / rows with the pair), so a template's text, repeated in all rows, counts for nearly
    nothing (K. Spärck Jones, Journal of Documentation 28 (1972)). Candidates come from MinHash (A. Broder, 1997).
    """

    def __init__(self, texts: Sequence[str]) -> None:
        from datasketch import MinHashLSH

        self._pairs = [pairs_of(text) for text in texts]
        self._rows_with = Counter(pair for pairs in set(map(frozenset, self._pairs)) for pair in pairs)
        self._rows = len(set(map(frozenset, self._pairs)))
        self._index = MinHashLSH(num_perm=PERMUTATIONS, params=(BANDS, PERMUTATIONS // BANDS))
        for number, pairs in enumerate(self._pairs):
            if (minhash := self._minhash(pairs)) is not None:
                self._index.insert(number, minhash)

    def candidates(self, text: str) -> Iterator[tuple[int, float]]:
        """Yield the number of each text that may resemble this one, with their weighted Jaccard index."""
        pairs = pairs_of(text)
        minhash = self._minhash(pairs)
        for number in sorted(self._index.query(minhash)) if minhash is not None else ():
            yield number, self._weighted_jaccard(pairs, self._pairs[number])

    def _weighted_jaccard(self, one: set[str], other: set[str]) -> float:
        whole = sum(map(self._weight, one | other))
        return sum(map(self._weight, one & other)) / whole if whole else 0.0

    def _weight(self, pair: str) -> float:
        return math.log((self._rows + 1) / max(1, self._rows_with[pair]))

    def _minhash(self, pairs: set[str]) -> "MinHash | None":
        """Return the signature of the rare pairs; None where they are too few."""
        most = max(1, RARE * self._rows)
        rare = [pair for pair in pairs if self._rows_with[pair] <= most]
        return minhash_of(rare) if len(rare) >= FEWEST_PAIRS else None


class PrefixIndex:
    """The texts of an evaluation, to find those that begin with a training text, or that it begins with.

    A text that ends where a message ends is an earlier turn of the conversation and not cut short. The last words of a
    text that was cut are left out: they may be half a word, or a label whose line is otherwise taken out.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        begins = [(_shortened(text), number) for number, text in enumerate(texts)]
        self._whole = sorted((text, number) for number, text in enumerate(texts))
        self._begins = sorted((begin, number) for begin, number in begins if begin)

    def matches(self, text: str) -> Iterator[int]:
        begin = _shortened(text)
        if begin:
            for place in range(bisect_left(self._whole, (begin, -1)), len(self._whole)):
                found, number = self._whole[place]
                if not found.startswith(begin):
                    break
                if _is_cut(found, text):
                    yield number
        for number in self._that_begin(text):
            if _is_cut(text, self._texts[number]):
                yield number

    def _that_begin(self, text: str) -> Iterator[int]:
        """Yield the texts whose shortened form this text begins with, the longest first."""
        rest = text
        while rest:
            place = bisect_right(self._begins, (rest, len(self._texts))) - 1
            if place < 0:
                return
            found = self._begins[place][0]
            if not rest.startswith(found):
                rest = rest[: _shared(rest, found)]
                continue
            for same in range(bisect_left(self._begins, (found, -1)), place + 1):
                yield self._begins[same][1]
            rest = found[:-1]


def pairs_of(text: str) -> set[str]:
    """Return the neighbouring words of a text, and the words of one that is a single word."""
    words = text.split()
    return {" ".join(pair) for pair in zip(words, words[1:], strict=False)} or set(words)


def similar_answers(one: str, other: str) -> bool:
    """Whether two answers share half of their words, or one is a beginning of the other."""
    mine, theirs = set(one.split()), set(other.split())
    return len(mine & theirs) >= SIMILAR_ANSWERS * len(mine | theirs) or is_beginning(one, other)


def is_beginning(one: str, other: str) -> bool:
    """Whether one of two different texts begins with the other, which has three words or more."""
    short, long = sorted((one, other), key=len)
    return len(short) < len(long) and long.startswith(short) and len(short.split()) > 2


def _shortened(text: str) -> str:
    """The text without its last words; empty if too little is left."""
    words = text.split(" ")[:-LAST_WORDS]
    return " ".join(words) if len(words) >= FEWEST_WORDS else ""


def _is_cut(long: str, short: str) -> bool:
    """Whether a longer text, which begins with all but the last words of a shorter one, goes on where that was cut."""
    if len(long) <= len(short):
        return False
    if not long.startswith(short):
        return len(long) >= LONGER_BY * len(short)
    rest = long[len(short) :].split(maxsplit=1)
    return bool(rest) and rest[0] not in _ROLES


def _shared(one: str, other: str) -> int:
    """The length of the beginning that two texts share."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low
