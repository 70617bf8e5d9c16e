"""One answer under the leak lint, and what a rule may find in it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from judging.answers.blocks import fenced_blocks
from judging.leaks.history import HistoryText
from judging.leaks.record import Place, RecordText
from judging.leaks.spelling import name_parts
from judging.leaks.vocabulary import is_library_root, is_ordinary

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class LeakedToken:
    """Something in an answer that only the record can have given away.

    kind     the rule: a key of `judging.leaks.lint.RULES`
    spans    every place in the answer, as (start, end)
    place    the record's field: patch, description, files, title or instance_id; `offset` is the character there (for
             `files` in the paths joined by new lines)
    reveals  what the record says there, if the answer's own words differ from it
    """

    token: str
    kind: str
    spans: tuple[Span, ...]
    place: str
    offset: int
    reveals: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """What a rule yields: its words in the answer, and their place in the record."""

    kind: str
    span: Span
    place: Place
    reveals: str = ""


class Case:
    """An answer with its history and record. Rules read it and change nothing."""

    def __init__(self, answer: str, history: HistoryText, record: RecordText) -> None:
        self.answer = answer
        self.history = history
        self.record = record

    def part(self, text: str) -> "Case":
        """Return a case about another text, such as one that the answer encodes."""
        return Case(text, self.history, self.record)

    @cached_property
    def code(self) -> tuple[Span, ...]:
        """The spans of the answer's fenced blocks and tool calls."""
        calls = (match.span() for match in re.finditer(r"(?m)^\[tool call[^\]\n]*\][^\n]*", self.answer))
        return (*((block.start, block.end) for _, block in fenced_blocks(self.answer)), *calls)

    def in_code(self, span: Span) -> bool:
        return any(start <= span[0] and span[1] <= end for start, end in self.code)

    @cached_property
    def scripts(self) -> tuple[tuple[str, int], ...]:
        """The text of each block or call, with its offset. An answer without one is a script as a whole."""
        spans = self.code or ((0, len(self.answer)),)
        return tuple((self.answer[start:end], start) for start, end in spans)

    def is_secret(self, name: str) -> bool:
        """Whether the history, convention or a library in use does not explain a name of the record."""
        if is_ordinary(name) or self.history.knows(name) or self.is_library_name(name) or self.by_convention(name):
            return False
        return "." not in name or not self.history.knows_path(name)

    def is_library_name(self, name: str) -> bool:
        library = self.record.library_names.get(name)
        return library is not None and (is_library_root(library.root) or self.history.knows(library.root))

    def by_convention(self, name: str) -> bool:
        """Whether a name is what everyone would call the test of something that the history shows.

        `test_client.py`, `client_test.go`, `client.spec.ts`, `TestClient` and `test_connect` follow from `client` or
        `connect`.
        """
        tested = _TEST_NAME.fullmatch(name.rsplit("/", 1)[-1])
        if tested is None:
            return False
        subject = next(group for group in tested.groups() if group)
        return len(subject) >= 3 and self.history.shows_name(subject)

    def secrets(self) -> Iterator[tuple[str, Place]]:
        """Yield the record's names that are secret; asks the history about each, so only after a cheaper test."""
        return ((name, place) for name, place in self.record.names.items() if self.is_secret(name))

    def unknown_parts(self, name: str) -> list[str]:
        """Return the words of a name that the history does not have."""
        return [part for part in name_parts(name) if not self.history.knows_part(part)]


_TEST_NAME = re.compile(
    r"tests?_(\w+?)(?:\.\w+)?|(\w+?)_(?:tests?|spec)(?:\.\w+)?|([\w-]+?)\.(?:tests?|spec)\.\w+|Tests?([A-Z]\w*?)(?:\.\w+)?"
    r"|([A-Z]\w*?)(?:Tests?|Spec|TestCase)(?:\.\w+)?"
)
