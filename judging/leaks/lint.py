"""Leak lint: does an answer say something that only the hidden pull request contains?

Every rule is a module of `judging.leaks.rules`. A finding says the rule, the words of the answer and the place in the
record. Names that the history shows, convention suggests or libraries offer are no leaks.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from judging.leaks.case import LeakCase, LeakedToken, LeakFinding
from judging.leaks.history import HistoryText
from judging.leaks.record import PullRequestRecord, record_text
from judging.leaks.rules import (
    admissions,
    assembled,
    encoded,
    future,
    lines,
    names,
    patterns,
    rewordings,
    source,
    values,
)
from judging.leaks.tokens import IDENTIFIER, LITERAL, PATH, TEXT, unglued

# The kinds of findings, as people read them.
RULES = {
    PATH: "path that only the record has",
    IDENTIFIER: "name that only the record has",
    LITERAL: "quoted text of the record",
    TEXT: "sentence of the record",
    "foresight": "name that only the following command can reveal",
    "value": "number or value of the record",
    "title": "title of the record as the name of own work",
    "future": "command that fetches a later state of the repository",
    "line": "line number of a file that was never opened",
    "source": "source line that was never shown",
    "admission": "words that admit to the record",
    "assembled": "name of the record, put together from pieces",
    "encoded": "name of the record, encoded",
    "pattern": "pattern that fits a name of the record",
    "rewording": "rewording of the record",
    "leak_reader": "meaning of the record, found by the second reader",
}
_FURTHER: tuple[Callable[[LeakCase], Iterable[LeakFinding]], ...] = (
    names.find_imports,
    source.find_copies,
    values.find,
    rewordings.find_titles,
    future.find,
    lines.find,
    source.find,
    assembled.find,
    encoded.find,
    patterns.find,
    patterns.find_selectors,
    rewordings.find,
    admissions.find,
)
# A few copied words can be chance, so these kinds count by the score only.
_SOFT = (LITERAL, TEXT)
# Kinds whose words in the answer are those of the record.
PLAIN_COPIES = frozenset({PATH, IDENTIFIER, LITERAL, TEXT})


@dataclass(frozen=True, slots=True)
class LeakReport:
    """`score` = distinct leaked / distinct checkable tokens, from 0 to 1 (0 when nothing is checkable)."""

    score: float
    checkable: int
    leaked: tuple[LeakedToken, ...]

    def flagged(self, max_leak: float) -> bool:
        """Whether a person has to look: any finding besides copied texts, or a score above `max_leak`."""
        return self.score > max_leak or any(token.kind not in _SOFT for token in self.leaked)


def lint_leaks(answer: str, history: Sequence[str], record: PullRequestRecord) -> LeakReport:
    """Check one answer without its thinking against the record that its author should not have seen."""
    case = LeakCase(
        unglued(answer), HistoryText("\n".join(history), repository_words(record.instance_id)), record_text(record)
    )
    leaked: list[LeakedToken] = []
    checkable = 0
    for _, found in names.check(case):
        leaked += _tokens(case, found)
        checkable += 1
    for rule in _FURTHER:
        for leak in _tokens(case, rule(case)):
            if not _known_already(leak, leaked):
                leaked.append(leak)
                checkable += 1
    return LeakReport(len(leaked) / checkable if checkable else 0.0, checkable, tuple(leaked))


def _tokens(case: LeakCase, found: Iterable[LeakFinding]) -> Iterator[LeakedToken]:
    """Join findings that differ only in their place in the answer."""
    spans: dict[tuple[str, str, str, int, str], list[tuple[int, int]]] = {}
    for one in found:
        words = case.answer[one.span[0] : one.span[1]]
        spans.setdefault((words, one.kind, one.place.name, one.place.offset, one.reveals), []).append(one.span)
    for (words, kind, name, offset, reveals), places in spans.items():
        yield LeakedToken(words, kind, tuple(places), name, offset, "" if reveals == words else reveals)


def _known_already(leak: LeakedToken, leaked: Sequence[LeakedToken]) -> bool:
    """Whether earlier findings cover the same words of the answer; of a copied text, whether they meet it."""
    if leak.kind in _SOFT:
        others = [span for token in leaked if token.kind == LITERAL for span in token.spans]
        return any(start < end and at < to for start, to in leak.spans for at, end in others)
    if leak.kind == "rewording" and any(token.kind == TEXT and token.place == leak.place for token in leaked):
        return True  # the same sentence, word for word
    others = [span for token in leaked for span in token.spans]
    return all(any(at <= start and to <= end for at, end in others) for start, to in leak.spans)


def repository_words(instance_id: str) -> tuple[str, ...]:
    """Return the owner and the name of the repository from an instance id such as `owner__name-123`.

    The number or commit after them is part of the secret.
    """
    owner, _, rest = instance_id.lower().partition("__")
    name = re.sub(r"(?:-\d+(?:_\d+)?|\.[0-9a-f]{6,40}\b.*)$", "", rest or owner)
    return tuple(word for word in (owner if rest else "", name) if word)
