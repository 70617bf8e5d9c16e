"""Phrases that admit to the record: "as the merged fix does", "the hidden record says"."""

import re
from collections.abc import Iterator

from judging.leaks.case import Case, Found
from judging.leaks.record import Place

ADMISSION = "admission"
_KIND = (
    r"(?:merged|actual|real|official|accepted|upstream|golden|gold|ground[- ]truth|oracle|hidden|known|original|true|"
    r"intended|final|eventual|landed|committed|released|canonical)"
)
_THING = r"(?:fix(?:es)?|patch|diff|pull[- ]request|PR|commit|change(?:set)?|solution|answer|merge)"
_SOURCE = r"(?:fix|patch|diff|pull[- ]request|PR|changeset|solution|record)"
_PULL = r"(?:pull[- ]request|PR)"
_SAYS = (
    r"(?:says?|said|shows?|tells?|does|did|adds?|added|changes?|changed|touche[sd]|touches|removes?|removed|moves?|moved|"
    r"introduce[sd]?|modifie[sd]|mentions?|mentioned|contains?|edits?|edited|renames?|renamed|replaces?|replaced|uses?|"
    r"used|made|makes?|puts?|lists?|names?|reveals?|indicates?|states?|describes?|has|is|begins?|only|also|was|were)"
)
_FROM = (
    r"(?:in|from|per|following|by|with|to|match(?:ing|es)?|see|mirror(?:s|ing)?|know|reproduce|apply|copy|replicate)"
)
_ACCORDING = r"(?:according to|per|based on|judging by|as described in|as shown in|as in)"
_GIVEN = r"(?:given|shown|told|provided with|handed|access to|seen|read)"
_HAD = r"(?:I|we)\s+(?:was|were|am|are|have been|had been|have|had)\s+(?:already\s+)?"
_DONE = r"(?:fixed|solved|changed|merged|resolved|added|moved)"
_PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:as|like|since|because|how|what|where|which)\s+(?:in\s+)?the\s+{_KIND}\s+{_THING}\b",
        rf"\b{_FROM}\s+the\s+(?:{_KIND}\s+)+{_THING}\b",
        rf"\bthe\s+(?:{_KIND}\s+)+{_THING}\s+(?:\w+ly\s+)?{_SAYS}\b",
        rf"\b{_ACCORDING}\s+(?:the|this|its)\s+(?:hidden\s+|merged\s+)?{_SOURCE}\b(?!\s+(?:template|file|in the))",
        rf"\b(?:according to|from|in)\s+the\s+{_PULL}(?:'s|’s)?\s*(?:description|title|body|diff|patch)?\b",
        rf"\bthe\s+{_PULL}(?:'s|’s)?\s+(?:description|title|body|author|diff|patch)\b",
        rf"\bthe\s+{_PULL}\s+(?:that|which|for|behind|resolving|fixing|closing)\b",
        rf"\bthe\s+{_PULL}\s+{_SAYS}\b",
        r"\b(?:the|this|that|my|a)\s+(?:hidden|secret|confidential|private)\s+"
        r"(?:record|information|context|notes?|data|details?)\b",
        r"\bthe\s+record\s+(?:says?|mentions?|tells?|states?|lists?|names?|reveals?|shows?|indicates?)\b",
        rf"\b{_HAD}{_GIVEN}\s+(?:the|a)\s+(?:\w+\s+){{0,2}}{_SOURCE}\b(?!\s+(?:script|command|file))",
        rf"\b(?:I|we)\s+(?:already\s+)?know\s+(?:the|from the)\s+(?:\w+\s+)?{_SOURCE}\b",
        r"\b(?:reference|gold(?:en)?|ground[- ]truth|oracle|model|hidden|secret)[- ]"
        r"(?:solution|patch|diff|answer|fix|commit)\b",
        rf"\bthe\s+(?:\w+\s+)?{_SOURCE}\s+(?:that\s+|which\s+)?{_HAD}{_GIVEN}\b",
        rf"\b(?:maintainers?|authors?|developers?)['’]s?\s+(?:{_KIND}\s+)+{_THING}\b",
        rf"\bhave\s+access\s+to\s+the\s+(?:\w+\s+)?{_SOURCE}\b",
        rf"\b(?:maintainers?|authors?|developers?|upstream)\s+(?:later|eventually|finally|actually)\s+{_DONE}\b",
        r"\b(?:in|as)\s+the\s+(?:commit|change|patch|diff)\s+that\s+(?:fixe[sd]|resolve[sd]|close[sd]|solve[sd])\b",
        rf"\bfollowing\s+the\s+(?:merged\s+)?{_THING}\b",
    )
)
_NAMED = re.compile(
    r"\b(?:fix|patch|diff|pull|PR|commit|change|solution|answer|record|hidden|secret|private|maintain|author|developer|"
    r"upstream|confidential|model|merge)",
    re.IGNORECASE,
)
_FIELDS = (("description", "description"), ("body", "description"), ("title", "title"), ("file", "files"))


def find(case: Case) -> Iterator[Found]:
    """Yield admissions. What the history itself speaks of (a pull request in the issue, say) is no admission."""
    if _NAMED.search(case.answer) is None:
        return
    for pattern in _PATTERNS:
        for match in pattern.finditer(case.answer):
            words = " ".join(match[0].lower().split())
            if words not in case.history.lower:
                yield Found(ADMISSION, match.span(), _place(case, words), "the record as a whole")


def _place(case: Case, words: str) -> Place:
    named = next((field for word, field in _FIELDS if word in words and case.record.texts[field]), "patch")
    return Place(named, 0)
