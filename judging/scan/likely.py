"""Which searches a text is worth: a fixed string or a short pattern tells that most have nothing to find in it.

A clue is in every text with a value, and in every longer text that contains this text. So many short texts are asked
about together.
"""

import string
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

DIGITS, CAPITALS, HEX = string.digits, string.ascii_uppercase, string.hexdigits
WORD = string.ascii_letters + string.digits


class Search(Protocol):
    """A search whose clues are `anchors`, fixed strings in the text (in its lower case with `lower`), and `needs`.

    `needs` is true of every text with a value that has no anchor, with any text around it.
    """

    @property
    def anchors(self) -> tuple[str, ...]: ...
    @property
    def lower(self) -> bool: ...
    @property
    def needs(self) -> Callable[[str], object]: ...


S = TypeVar("S", bound=Search)


def likely(searches: Iterable[S], text: str) -> Sequence[S]:
    """Return the searches that may find something in the text, or in any part of it."""
    found: list[S] = []
    lower = ""
    for search in searches:
        if search.lower and not lower:
            lower = text.lower()
        searched = lower if search.lower else text
        # A loop, as most texts have no anchor of any search: `any` takes three times as long.
        for anchor in search.anchors:
            if anchor in searched:
                found.append(search)
                break
        else:
            if search.needs(text):
                found.append(search)
    return found


def run_of(characters: str, length: int, between: str = "") -> Callable[[str], bool]:
    """Return whether so many of these characters follow each other in a text, but for those of `between`, which do not
    count. True of any text that is not ASCII."""
    table = bytes(ord("x") if chr(code) in characters else ord(" ") for code in range(256))
    run, left_out = b"x" * length, between.encode()

    def has_run(text: str) -> bool:
        return not text.isascii() or run in text.encode().translate(table, left_out)

    return has_run


def never(text: str) -> bool:
    """Of a search that has anchors alone."""
    return False


def is_not_ascii(text: str) -> bool:
    return not text.isascii()
