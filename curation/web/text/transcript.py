"""A transcript on a page: its first and last entries, gaps that load on demand, long texts in pieces, and find.

A *turn* is one recorded text, known by its index. An *entry* is one item on the page: a chat message (`chat.Chat`) or a
terminal step, which is a command and its output. The templates are in `templates/transcript/`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, Literal, TypeVar

from django.utils.safestring import SafeString

from curation.web.text.markup import Mark, found_spans, marked, render_text, shifted, visible
from curation.web.text.scan_marks import scan_marks

# Entries that one press of a gap's button loads.
WINDOW = 40
# Characters of one text that a page draws at once.
CHUNK = 16_000
# Characters of a text's summary line, and of the text before the first match.
LINE, BEFORE = 160, 400
MOST_FOUND = 50
TONES = {"task": "user", "user": "user", "system": "system", "assistant": "assistant"}

Recorded = Mapping[str, object]
Entry = TypeVar("Entry")
Form = Literal["blocks", "text", "terminal", "screen"]


@dataclass(frozen=True, slots=True)
class Position:
    """A character of one turn's text that a page must show, or its line, counted from 1."""

    turn: int
    start: int = 0
    line: int = 0


@dataclass(frozen=True, slots=True)
class Source:
    """Where a page loads the rest of a transcript: the URL names of its fragments, called with project and `pk`."""

    pk: int
    noun: str
    window: str
    turn: str
    find: str
    raw: str


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of one turn's text, from character `start`. `next_start` is None for the last part; `left` in characters.

    `form`: an answer's `blocks`, plain `text`, a `terminal` box, or the `screen` of a session, which has no box.
    `line` is the number of its first line.
    """

    turn: int
    html: SafeString
    form: Form = "screen"
    start: int = 0
    next_start: int | None = None
    left: int = 0
    line: int = 1


@dataclass(frozen=True, slots=True)
class Turn:
    """A chat message or a search result. `body` is None if it loads when the turn is opened; `size` in characters;
    `note` is shown beside the role. Of a search result, `first` is the character of the first of its `matches`."""

    index: int
    role: str
    line: SafeString
    size: int
    body: Piece | None = None
    opened: bool = False
    matches: int = 0
    first: int = 0
    note: str = ""

    @property
    def tone(self) -> str:
        return TONES.get(self.role, "output")


@dataclass(frozen=True, slots=True)
class Fact:
    """A remark beside a step's command, such as its exit code."""

    text: str
    tone: str = ""
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """A command in a terminal and its output. `note` is shown where there is no command; `turns` are the indexes of the
    recorded texts, with spaces between."""

    number: int
    command: Piece | None
    output: Piece | None
    prompt: str = ""
    note: str = ""
    facts: tuple[Fact, ...] = ()
    error: SafeString | None = None
    details: tuple[tuple[str, SafeString], ...] = ()
    turns: str = ""

    @property
    def link(self) -> str:
        """The turn by which links name the step."""
        return self.turns.partition(" ")[0]


@dataclass(frozen=True, slots=True)
class Gap:
    """The entries from `start` to before `end`, not loaded yet. A long gap opens at both ends."""

    window: ClassVar[int] = WINDOW
    start: int
    end: int

    @property
    def count(self) -> int:
        return self.end - self.start

    @property
    def long(self) -> bool:
        return self.count > WINDOW


@dataclass(frozen=True, slots=True)
class Part(Generic[Entry]):
    """Consecutive entries, or the gap between them and the next ones."""

    entries: tuple[Entry, ...] = ()
    gap: Gap | None = None


@dataclass(frozen=True, slots=True)
class Excerpt(Generic[Entry]):
    """The part of a transcript that a page shows, of `total` entries and `size` characters."""

    parts: list[Part[Entry]]
    total: int
    size: int
    source: Source | None


@dataclass(frozen=True, slots=True)
class Landmark:
    """One line of an outline: a turn, its type, and whether it is a command or an error."""

    turn: int
    role: str
    line: SafeString
    is_command: bool = False
    error: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """The first turns that contain `wanted`, and the number of all that do."""

    wanted: str
    turns: list[Turn]
    total: int


class Transcript(ABC, Generic[Entry]):
    """`turns` as recorded. Subclasses define an entry and how a turn's text is read.

    With `at`, the opening has that turn, and its text from shortly before that character.
    """

    def __init__(self, turns: Sequence[Recorded], source: Source | None = None, *, at: Position | None = None) -> None:
        self.turns = turns
        self.source = source
        self.at = at if at is not None and at.turn < len(turns) else None

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def entry(self, place: int, *, opened: bool) -> Entry: ...

    @abstractmethod
    def role(self, turn: int) -> str: ...

    @abstractmethod
    def form(self, turn: int) -> Form: ...

    @abstractmethod
    def raw_text(self, turn: int) -> str:
        """Return a turn's text exactly as recorded."""

    @abstractmethod
    def text(self, turn: int) -> str:
        """Return a turn's text as pages show and search it."""

    @abstractmethod
    def raw(self) -> str:
        """Return the whole transcript as a plain text file."""

    @abstractmethod
    def opening(self) -> Excerpt[Entry]:
        """Return the first view of a page."""

    @abstractmethod
    def landmarks(self) -> Iterator[Landmark]:
        """Yield one line for each entry, in recorded order."""

    def window(self, start: int, end: int, *, bottom: bool = False) -> Excerpt[Entry]:
        """Return the first (or last) `WINDOW` entries of a gap, and the gap that remains."""
        start, end = max(start, 0), min(end, len(self))
        return self.excerpt(start, end, [(end - WINDOW, end) if bottom else (start, start + WINDOW)])

    def excerpt(
        self, start: int, end: int, spans: Iterable[tuple[int, int]], *, opened: bool = False
    ) -> Excerpt[Entry]:
        """Return the entries of `start` to `end` that are in one of the spans, with gaps for the others."""
        parts: list[Part[Entry]] = []
        at = start
        for low, high in [*sorted(spans), (end, end)]:
            first, last = max(low, at), min(high, end)
            if first > at:
                parts.append(Part(gap=Gap(at, min(first, end))))
                at = min(first, end)
            if first < last:
                parts.append(Part(tuple(self.entry(place, opened=opened) for place in range(first, last))))
                at = last
        size = sum(len(self.raw_text(turn)) for turn in range(len(self.turns)))
        return Excerpt(parts, len(self), size, self.source)

    def turn(self, index: int, *, body: Piece | None = None, opened: bool = False) -> Turn:
        text = self.text(index)
        note = "trained" if self.turns[index].get("train") else ""
        return Turn(index, self.role(index), summary_line(text), len(text), body, opened, note=note)

    def piece(self, turn: int, start: int = 0, *, wanted: str = "") -> Piece:
        """Return up to `CHUNK` characters of a turn's text; by default from shortly before the required place: the
        first match, or `at`."""
        text = self.text(turn)
        spans = found_spans(text, wanted)
        first = spans[0][0] if spans else self._shown_from(turn, text)
        start = min(max(start, 0), len(text)) or _line_before(text, first)
        return self.cut(turn, start, start + CHUNK, wanted=wanted)

    def cut(self, turn: int, start: int, end: int, *, wanted: str = "") -> Piece:
        """Return a turn's text from `start` to `end`, with the matches of `wanted` or the findings of the scan marked.
        An answer is rendered only as a whole and without matches."""
        text, form = self.text(turn), self.form(turn)
        marks = [] if wanted else self.marks(turn)
        end = min(end, len(text))
        left = len(text) - end
        if form == "blocks":
            if not (start or left or wanted):
                return Piece(turn, render_text(text, marks), "blocks")
            form = "text"
        part = text[start:end]
        spans = found_spans(part, wanted) if wanted else shifted(marks, start)
        line = text.count("\n", 0, start) + 1
        return Piece(turn, marked(part, spans, "found"), form, start, end if left else None, left, line)

    def marks(self, turn: int) -> list[Mark]:
        """Return the findings of the scan in a turn and the line of a link, in characters of its text. A transcript
        without a source is shown beside others, and its marks would have the ids of theirs."""
        if self.source is None:
            return []
        found = scan_marks(self.turns[turn], self.text(turn), self.mark_prefix(turn))
        if self.at is None or self.at.turn != turn or not self.at.line:
            return found
        start, end = line_span(self.text(turn), self.at.line)
        return sorted([*found, *_around(found, Mark(start, end, "linked", f"turn-{turn}-line-{self.at.line}"))])

    def _shown_from(self, turn: int, text: str) -> int:
        """Return the character of a turn that must be shown."""
        if self.at is None or self.at.turn != turn:
            return 0
        return line_span(text, self.at.line)[0] if self.at.line else self.at.start

    def mark_prefix(self, turn: int) -> str:
        """Return the prefix of the ids of a turn's marks."""
        return f"scan-{self.source.noun}-{self.source.pk}-{turn}" if self.source else ""

    def find(self, wanted: str) -> Found:
        """Search all turns, ignoring case."""
        folded = wanted.casefold()
        found = [turn for turn in range(len(self.turns)) if folded and folded in self.text(turn).casefold()]
        return Found(wanted, [self._match(turn, wanted) for turn in found[:MOST_FOUND]], len(found))

    def _match(self, turn: int, wanted: str) -> Turn:
        text = self.text(turn)
        spans = found_spans(text, wanted)
        at = max(spans[0][0] - LINE // 4, 0) if spans else 0
        first = spans[0][0] if spans else 0
        return Turn(turn, self.role(turn), summary_line(text[at:]), len(text), matches=len(spans), first=first)


def summary_line(text: str) -> SafeString:
    """The beginning of a text on one line."""
    return visible(" ".join(text[: 2 * LINE].split())[:LINE])


def _line_before(text: str, shown: int) -> int:
    """Start at a line shortly before the character `shown`, or at 0 if the first piece shows it anyway."""
    if shown < CHUNK // 2:
        return 0
    at = shown - BEFORE
    return text.rfind("\n", at - BEFORE, at) + 1 or at


def line_span(text: str, line: int) -> tuple[int, int]:
    """Return where a line, counted from 1, begins and ends; the end of the text if it has fewer."""
    start = 0
    for _ in range(line - 1):
        start = text.find("\n", start) + 1
        if start == 0:
            return len(text), len(text)
    end = text.find("\n", start)
    return start, len(text) if end < 0 else end


def _around(found: Sequence[Mark], wanted: Mark) -> Iterator[Mark]:
    """Cut a mark at the others, which keep their ids; the first part has its id."""
    start, anchor = wanted.start, wanted.anchor
    for begin, end in [*((mark.start, mark.end) for mark in found), (wanted.end, wanted.end)]:
        if start < min(begin, wanted.end):
            yield wanted._replace(start=start, end=min(begin, wanted.end), anchor=anchor)
            anchor = ""
        start = max(start, end)
