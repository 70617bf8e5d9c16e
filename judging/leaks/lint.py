"""Leak lint: does an answer name something that only the hidden pull request contains?

A checkable token leaks when it occurs in the record (patch, description, files, title) but in no message of the
history, is no ordinary word and no tool name, and is not what a search proposed by the answer, with a pattern from the
history, would print.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from judging.leaks.record import (
    HistoryText,
    Place,
    PullRequestRecord,
    RecordText,
    is_generic_path,
    is_same_path,
    normal_path,
)
from judging.leaks.text import copied_sentences, copied_strings
from judging.leaks.tokens import IDENTIFIER, LITERAL, PATH, AnswerToken, answer_tokens, search_patterns
from judging.leaks.vocabulary import (
    COMMON_FLAGS,
    CONVENTIONAL_FILES,
    GENERIC_FILES,
    is_library_root,
    is_ordinary,
)
from judging.shell.words import word_set

# Too common as search patterns: a search for them would print half of the repository.
_VAGUE = word_set("class function import const return error test tests file files name value data self type")
# A string of at least this many words is a copy, even of words that the history has.
_LONG_LITERAL = 5


@dataclass(frozen=True, slots=True)
class LeakedToken:
    """A token that only the record contains.

    kind    path, identifier, literal (a string of the patch, error texts among them) or text (a copied passage)
    spans   every place in the answer, as (start, end)
    place   the record's field: patch, description, files or title; `offset` is the character there (for `files` in
            the paths joined by new lines)
    """

    token: str
    kind: str
    spans: tuple[tuple[int, int], ...]
    place: str
    offset: int


@dataclass(frozen=True, slots=True)
class LeakReport:
    """`score` = distinct leaked / distinct checkable tokens, from 0 to 1 (0 when nothing is checkable)."""

    score: float
    checkable: int
    leaked: tuple[LeakedToken, ...]

    def flagged(self, max_leak: float) -> bool:
        """Whether a person has to look: any leaked path or identifier, or a score above `max_leak`."""
        return self.score > max_leak or any(token.kind in (PATH, IDENTIFIER) for token in self.leaked)


def lint_leaks(answer: str, history: Sequence[str], record: PullRequestRecord) -> LeakReport:
    """Check one answer without its thinking against the record that its author should not have seen."""
    repository = _repository_words(record.instance_id)
    lint = _Lint(answer, HistoryText("\n".join(history), repository), RecordText(record), repository)
    leaked: list[LeakedToken] = []
    checkable = 0
    for token in answer_tokens(answer):
        if not lint.is_checkable(token):
            continue
        place = lint.place_of_leak(token)
        # Every quoted text and plain word is looked at, but only leaks and code count as checkable.
        checkable += place is not None or (token.code_form and token.kind != LITERAL)
        if place is not None:
            leaked.append(LeakedToken(token.text, token.kind, token.spans, place.name, place.offset))
    copied = [*copied_strings(answer, lint.record, lint.history), *copied_sentences(answer, lint.record, lint.history)]
    for text, kind, span, place in copied:
        if not any(_inside(span, other) for token in leaked for other in token.spans if token.kind == LITERAL):
            leaked.append(LeakedToken(text, kind, (span,), place.name, place.offset))
            checkable += 1
    return LeakReport(len(leaked) / checkable if checkable else 0.0, checkable, tuple(leaked))


class _Lint:
    def __init__(self, answer: str, history: HistoryText, record: RecordText, repository: frozenset[str]) -> None:
        self.history = history
        self.record = record
        self.repository = repository
        self.searched = search_patterns(answer)
        self.honest_patterns = tuple(
            word for word in self.searched if len(word) >= 4 and word.lower() not in _VAGUE and history.knows_word(word)
        )

    def is_checkable(self, token: AnswerToken) -> bool:
        if token.kind == PATH:
            path = normal_path(token.text)
            return bool(path) and not is_generic_path(path) and path not in self.repository | CONVENTIONAL_FILES
        if token.kind == IDENTIFIER:
            if token.text in COMMON_FLAGS or is_ordinary(token.text) or token.text.lower() in self.repository:
                return False
            return "." not in token.text or not is_library_root(token.text.split(".", 1)[0])
        return True

    def place_of_leak(self, token: AnswerToken) -> Place | None:
        if token.kind == PATH:
            return self._leaked_path(normal_path(token.text))
        if token.kind == LITERAL:
            return self._leaked_literal(token.text)
        if not token.code_form:
            return None if self.history.knows_word(token.text) else self.record.defines(token.text)
        return self._leaked_name(token.text)

    def _leaked_path(self, path: str) -> Place | None:
        for part in _path_ends(path):
            place = self.record.find_path(part)
            if place is not None:
                whole = next((known for known in self.record.paths if is_same_path(path, known)), path)
                known = self.history.knows_path(path) or self.history.knows_path(whole)
                return None if known or self._would_be_found(part) else place
        return None

    def _leaked_name(self, name: str) -> Place | None:
        if name.startswith("--"):
            parts = name.strip("-").split("-")
            return None if len(parts) < 2 or self.history.knows(name) else self.record.find(name)
        place = self._dotted_place(name) if "." in name else self.record.find(name)
        if place is None or self.history.knows(name) or self._would_be_found(name):
            return None
        if name in self.searched and self.history.knows_phrase(name):
            return None
        return place

    def _dotted_place(self, name: str) -> Place | None:
        """A dotted name leaks as a whole only if its parts are not all known; a module may be written as a path."""
        parts = [part for part in name.split(".") if not is_ordinary(part)]
        if all(self.history.knows(part) or part in ("self", "cls", "this") for part in parts):
            return None
        as_path = name.replace(".", "/")
        for known in self.record.paths:
            if is_same_path(as_path, re.sub(r"\.\w+$", "", known)):
                return None if self.history.knows_path(known) else self.record.find_verbatim(known)
        root = name.split(".", 1)[0]
        return None if root in ("self", "cls", "this") else self.record.find(name)

    def _leaked_literal(self, text: str) -> Place | None:
        plain = text.strip()
        words = [word for word in re.findall(r"[A-Za-z_]{2,}", plain) if not is_ordinary(word)]
        if len(plain) < 6 or len(words) < 2 or plain in self.history.text:
            return None
        # A few words that the history knows, in a new combination, are an honest edit or search.
        if len(words) < _LONG_LITERAL and all(self.history.knows_word(word) for word in words):
            return None
        return self.record.find_verbatim(plain)

    def _would_be_found(self, token: str) -> bool:
        """Whether a proposed search with a pattern from the history prints this token in the repository as it was."""
        return any(p in token for p in self.honest_patterns) and self.record.was_there_before(token)


def _path_ends(path: str) -> tuple[str, ...]:
    """The path itself, then its file name and its folder, which can each be a leak."""
    folder, _, name = path.rpartition("/")
    ends = [path]
    if folder and "." in name and name not in GENERIC_FILES:
        ends.append(name)
    if "/" in folder and not is_generic_path(folder):
        ends.append(folder)
    return tuple(ends)


def _repository_words(instance_id: str) -> frozenset[str]:
    """Owner and name of the repository as an instance id such as `owner__name-123` spells them: never a secret."""
    return frozenset(re.findall(r"[a-z0-9]+(?:[_-][a-z0-9]+)*?(?=__|-\d|\.|$)", instance_id.lower()))


def _inside(span: tuple[int, int], other: tuple[int, int]) -> bool:
    return span[0] < other[1] and other[0] < span[1]
