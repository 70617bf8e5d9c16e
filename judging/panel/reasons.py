"""A judge's reason with the answers by their names: it knew them only as answer 1 and answer 2.

Only words that can be nothing else are taken: "answer 1", "Response B", "the second answer", and "the first reads …"
where the reason counts nothing else before it. "The former" goes by the order of words, so it stays as it is, and so
do quotes and code, which are words of the answers.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

_NOUN = "(?:[Aa]nswer|[Rr]esponse|[Rr]eply|[Cc]andidate|[Ss]olution|[Aa]ssistant|[Aa]gent|ANSWER|RESPONSE)"
_ONE, _TWO = "1|A|one", "2|B|two"
_ORDINAL = "(?:[Ff]irst|[Ss]econd|1st|2nd|FIRST|SECOND)"
_NUMBER = (
    rf"""(?:\(|\[|["'])?(?:{_ONE}|{_TWO})(?:(?<=[(\[]\w)[)\]]|(?<=["']\w)["'])?"""
    r"(?![\w-]|[.,]\d|\s+(?:of|questions?)\b)"
)
_SIGN = r"(?:[\s_-]*(?:#|[Nn]o\.\s?|[Nn]umber\s)?)"
_AND = r"\s*(?:,\s*)?(?:and|or|nor|&|/|vs\.?|versus|than|over)\s*"
_THE = r"(?:\b[Tt]he\s+)?"
_NOT_BARE = "lines|steps|tests|files|commands|blocks|rows|bytes|words|hits|matches|results|pages|characters|attempts"
_BARE = (
    rf"\b[Tt]he\s+(?:[Ff]irst|[Ss]econd)(?=\s*(?:[.,;:!?)]|$)|\s+(?!(?:{_NOT_BARE})\b)(?:[a-z]+s|had|did|would|will|can|"
    r"could|may|might|should|only|also|just|merely|simply|even|still|never|already|directly|and|or|but|than|over|"
    r"because|since|while)\b)"
)
_NAMED = re.compile(
    rf"{_THE}\b{_NOUN}s?{_SIGN}{_NUMBER}(?:{_AND}#?{_NUMBER})?"
    rf"|{_THE}\b{_ORDINAL}(?:{_AND}(?:the\s+)?{_ORDINAL})?\s+{_NOUN}s?\b"
    rf"|(?P<bare>{_BARE})"
)
_WHICH = re.compile(
    rf"(?<![A-Za-z0-9])(?:(?P<one>{_ONE}|[Ff]irst|FIRST|1st)|(?:{_TWO}|[Ss]econd|SECOND|2nd))(?![A-Za-z0-9])"
)
_QUOTED = re.compile(r"`[^`]*`|\"[^\"]*\"|“[^”]*”")
# "It has two blocks; the first is empty": the first of something else.
_COUNTED = re.compile(rf"\b(?:two|2|both|several|three|3|pair of)\s+(?!{_NOUN}s?\b)(?!orders\b)\w+", re.IGNORECASE)
_NEW_SENTENCE = re.compile(r"(?:^|[.!?:]\s+|\n)[\s*_\"'(]*$")


class ReasonPiece(NamedTuple):
    """A part of a reason. `said` is the judge's own text if `text` replaces it, else empty."""

    text: str
    said: str = ""


def name_answers(reason: str, first: str, second: str) -> list[ReasonPiece]:
    """Cut a reason into pieces in which the answers have names, such as king and challenger, by the order shown."""
    return [piece for piece in _pieces(reason, first, second) if piece.text]


def named_text(reason: str, first: str, second: str) -> str:
    return "".join(piece.text for piece in name_answers(reason, first, second))


def _pieces(reason: str, first: str, second: str) -> Iterator[ReasonPiece]:
    quotes = [match.span() for match in _QUOTED.finditer(reason)]
    counted = _COUNTED.search(reason)
    position = 0
    for match in _NAMED.finditer(reason):
        start, end = match.span()
        if any(one < start and end < two and (start, end) != (one + 1, two - 1) for one, two in quotes):
            continue
        if match["bare"] and counted and counted.start() < start:
            continue
        said = match.group()
        which = list(_WHICH.finditer(said))
        names = [f"the {first if each['one'] else second}" for each in which]
        text = names[0]
        if len(names) > 1:
            between = re.search(r"and|nor|or|&|/|vs\.?|versus|than|over", said[which[0].end() : which[1].start()])
            text = f"{names[0]} {between.group() if between else 'and'} {names[1]}"
        if said[0].isupper() and _NEW_SENTENCE.search(reason[:start]):
            text = text[0].upper() + text[1:]
        yield ReasonPiece(reason[position:start])
        yield ReasonPiece(text, said)
        position = end
    yield ReasonPiece(reason[position:])
