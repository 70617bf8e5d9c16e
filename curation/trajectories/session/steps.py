"""A recorded trajectory as a terminal shows it: steps of a command and what came back, in windows.

A transcript of thousands of turns or a megabyte of output stays fast: a page holds the first and last steps, what lies
between is a gap that is opened on demand, and of a long text only its beginning is drawn.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.utils.safestring import SafeString

from curation.web.text.markup import code_html, found_spans, marked, visible, without_colours

# Where there are no more steps than this, all are shown.
WHOLE = 60
HEAD, TAIL, WINDOW = 30, 10, 40
# Said to the terminal and not to its shell.
LEAVING = ("exit", "panic")
# What is drawn of one text at first, and with each press of its button.
FIRST, FIRST_LINES, CHUNK = 4_000, 60, 16_000

Turn = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Stretch:
    """A piece of one turn's text from character `start` on; `next_start` None where it is the last."""

    html: SafeString
    start: int
    next_start: int | None
    left: int


@dataclass(frozen=True, slots=True)
class Place:
    """Where a step stands in `turns`: the index of its action, and of the orientation or output that it shows."""

    number: int
    action: int | None
    shown: int | None
    prompt: str

    @property
    def turns(self) -> tuple[int, ...]:
        return tuple(index for index in (self.action, self.shown) if index is not None)


@dataclass(frozen=True, slots=True)
class Step:
    """One step, drawn. `command` is None for the orientation, `output` for a command that nothing came back from."""

    place: Place
    command: Stretch | None
    output: Stretch | None
    exit_code: int | None
    seconds: float | None
    truncated: bool

    @property
    def failed(self) -> bool:
        return self.exit_code not in (None, 0)

    @property
    def took(self) -> float | None:
        """Seconds that are worth a reader's eye; most commands take a few milliseconds."""
        return self.seconds if self.seconds is not None and self.seconds >= 0.1 else None


@dataclass(frozen=True, slots=True)
class Gap:
    """Steps from `start` up to, and not with, `end` that are not drawn. Both its ends open where it is long."""

    start: int
    end: int

    @property
    def count(self) -> int:
        return self.end - self.start

    @property
    def long(self) -> bool:
        return self.count > WINDOW


@dataclass(frozen=True, slots=True)
class Part:
    """Steps in a row, or the gap between two such rows."""

    steps: tuple[Step, ...] = ()
    gap: Gap | None = None


def places_of(turns: Sequence[Turn]) -> list[Place]:
    """The steps of a transcript: each action with the output after it; whatever else is shown is a step by itself."""
    places: list[Place] = []
    prompt = ""
    index = 0
    while index < len(turns):
        action = index if turns[index].get("kind") == "action" else None
        at = index + (action is not None)
        shown = at if at < len(turns) and turns[at].get("kind") != "action" else None
        places.append(Place(len(places), action, shown, prompt if action is not None else ""))
        if shown is not None:
            prompt = str(turns[shown].get("prompt") or "")
        index = at + (shown is not None)
    return places


def opening(
    turns: Sequence[Turn], *, first: int = 0, until: int | None = None, around: int | None = None
) -> list[Part]:
    """The steps from number `first` to before `until` (the end): all, or head, tail and what is near `around`."""
    places = places_of(turns)
    end = len(places) if until is None else min(until, len(places))
    if end - first <= WHOLE:
        return _parts(turns, places, first, end, [(first, end)])
    spans = [(first, first + HEAD), (end - TAIL, end)]
    if around is not None:
        spans.append((around - WINDOW // 2, around + WINDOW // 2))
    return _parts(turns, places, first, end, spans)


def window(turns: Sequence[Turn], *, start: int, end: int, bottom: bool = False) -> list[Part]:
    """The first (or last) `WINDOW` steps of a gap, and what is left of it."""
    places = places_of(turns)
    start, end = max(start, 0), min(end, len(places))
    span = (end - WINDOW, end) if bottom else (start, start + WINDOW)
    return _parts(turns, places, start, end, [span])


def step_of_turn(turns: Sequence[Turn], turn: int) -> int | None:
    """The number of the step that holds the turn with this index."""
    return next((place.number for place in places_of(turns) if turn in place.turns), None)


def stretch_of(turns: Sequence[Turn], index: int, start: int, *, wanted: str = "") -> Stretch:
    """More of one turn's text, plain; what was searched for is marked."""
    text = text_of(turns[index])
    start = min(max(start, 0), len(text))
    return _stretch(text, start, start + CHUNK, wanted)


def text_of(turn: Turn) -> str:
    """A turn's text as a page shows it: without colours, and without the prompt, which stands before the command."""
    text = str(turn.get("text") or "")
    if turn.get("kind") == "action":
        return text
    return without_colours(text.removesuffix(str(turn.get("prompt") or "")))


def raw_text(turns: Iterable[Turn]) -> str:
    """The whole session as the terminal showed it: what was printed ends with the prompt that the command follows."""
    lines = (f"{t.get('text')}\n" if t.get("kind") == "action" else str(t.get("text") or "") for t in turns)
    return "".join(lines)


def _parts(
    turns: Sequence[Turn], places: Sequence[Place], first: int, end: int, spans: Iterable[tuple[int, int]]
) -> list[Part]:
    parts: list[Part] = []
    at = first
    for low, high in sorted(spans):
        start, stop = max(low, at), min(high, end)
        if start >= stop:
            continue
        if start > at:
            parts.append(Part(gap=Gap(at, start)))
        parts.append(Part(tuple(_step(turns, place) for place in places[start:stop])))
        at = stop
    return [*parts, Part(gap=Gap(at, end))] if at < end else parts


def _step(turns: Sequence[Turn], place: Place) -> Step:
    command = None if place.action is None else text_of(turns[place.action])
    shown: Turn = {} if place.shown is None else turns[place.shown]
    code, seconds = shown.get("exit_code"), shown.get("seconds")
    return Step(
        place,
        None if command is None else _beginning(command, is_command=True),
        _beginning(text_of(shown)) if text_of(shown) else None,
        code if isinstance(code, int) else None,
        float(seconds) if isinstance(seconds, int | float) else None,
        bool(shown.get("truncated")),
    )


def _beginning(text: str, *, is_command: bool = False) -> Stretch:
    """The whole text, or its first lines where it is long: then cut at a line's end, so that a screen is not torn."""
    if len(text) <= FIRST and text.count("\n") <= FIRST_LINES:
        is_shell = is_command and text.partition(" ")[0] not in LEAVING
        return Stretch(code_html(text) if is_shell else visible(text.rstrip("\n")), 0, None, 0)
    lines = text[:FIRST].splitlines(keepends=True)[: FIRST_LINES // 2]
    return _stretch(text, 0, max(sum(map(len, lines)), 1))


def _stretch(text: str, start: int, end: int, wanted: str = "") -> Stretch:
    end = min(end, len(text))
    rest, piece = len(text) - end, text[start:end]
    return Stretch(marked(piece, found_spans(piece, wanted), "found"), start, end if rest else None, rest)
