"""A recorded trajectory as terminal steps: a command and its output."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from curation.web.text.markup import code_html, marked, without_colours
from curation.web.text.transcript import (
    WINDOW,
    Excerpt,
    Fact,
    Form,
    Landmark,
    Piece,
    Position,
    Recorded,
    Source,
    Step,
    Transcript,
    summary_line,
)

# A session with no more steps than this is shown whole.
WHOLE = 60
# The first and the last steps of a longer one.
HEAD, TAIL = 30, 10
# Commands of the terminal and not of its shell.
ENDINGS = ("exit", "panic")
# A text with no more characters and lines is shown whole; of a longer one, half as many lines.
FIRST, FIRST_LINES = 4_000, 60
# Seconds; shorter commands show no time.
SLOW = 0.1


@dataclass(frozen=True, slots=True)
class Place:
    """The turns of a step: the index of its action, and of the orientation or output that follows it."""

    number: int
    action: int | None
    output: int | None
    prompt: str

    @property
    def turns(self) -> tuple[int, ...]:
        return tuple(index for index in (self.action, self.output) if index is not None)


class Session(Transcript[Step]):
    """The turns of a trajectory in deploy format, as `TrajectoryText` keeps them; `pk` is the trajectory's."""

    def __init__(self, turns: Sequence[Recorded], pk: int, *, at: Position | None = None) -> None:
        urls = ("trajectory-steps", "trajectory-turn", "trajectory-find", "trajectory-raw")
        super().__init__(turns, Source(pk, "step", *urls), at=at)
        self.places = places_of(turns)

    def __len__(self) -> int:
        return len(self.places)

    def opening(self, *, first: int = 0, until: int | None = None, around: int | None = None) -> Excerpt[Step]:
        """Return the steps `first` to `until`: all, or the first, the last and those near `around` or `at`."""
        if around is None and self.at is not None:
            around = self.step_of(self.at.turn)
        end = len(self) if until is None else min(until, len(self))
        if end - first <= WHOLE:
            return self.excerpt(first, end, [(first, end)])
        spans = [(first, first + HEAD), (end - TAIL, end)]
        if around is not None:
            spans.append((min(around - WINDOW // 2, end), min(around + WINDOW // 2, end)))
        return self.excerpt(first, end, spans)

    def entry(self, place: int, *, opened: bool = True) -> Step:
        step = self.places[place]
        command = None if step.action is None else self._beginning(step.action)
        output = self._beginning(step.output) if step.output is not None and self.text(step.output) else None
        return Step(
            number=step.number,
            turns=" ".join(map(str, step.turns)),
            prompt=step.prompt,
            command=command,
            output=output,
            note="what the terminal showed first" if output else "nothing but the prompt to begin with",
            facts=() if step.output is None else _facts(self.turns[step.output]),
        )

    def landmarks(self) -> Iterator[Landmark]:
        for step in self.places:
            shown = self.text(step.turns[0])
            failed = (
                [fact.text for fact in _facts(self.turns[step.output]) if fact.tone] if step.output is not None else []
            )
            is_command = step.action is not None
            yield Landmark(step.turns[0], f"step {step.number}", summary_line(shown), is_command, ", ".join(failed))

    def step_of(self, turn: int) -> int | None:
        """Return the number of the step that contains this turn."""
        return next((place.number for place in self.places if turn in place.turns), None)

    def texts(self, number: int) -> list[tuple[object, object]]:
        """Return the texts of a step, by which steps are equal: command and output, without exit codes and times."""
        return [(self.turns[index].get("kind"), self.turns[index].get("text")) for index in self.places[number].turns]

    def role(self, turn: int) -> str:
        return f"step {self.step_of(turn)}"

    def form(self, turn: int) -> Form:
        return "screen"

    def raw_text(self, turn: int) -> str:
        return str(self.turns[turn].get("text") or "")

    def text(self, turn: int) -> str:
        """Without colours, and without the prompt, which is shown before the next command."""
        text = self.raw_text(turn)
        if self.turns[turn].get("kind") == "action":
            return text
        return without_colours(text.removesuffix(str(self.turns[turn].get("prompt") or "")))

    def raw(self) -> str:
        """The whole session as the terminal showed it: each output ends with the prompt of the next command."""
        ends = ("\n" if turn.get("kind") == "action" else "" for turn in self.turns)
        return "".join(self.raw_text(index) + end for index, end in enumerate(ends))

    def _beginning(self, turn: int) -> Piece:
        """The whole text, or the first lines of a long one, cut at the end of a line."""
        text = self.text(turn)
        if len(text) <= FIRST and text.count("\n") <= FIRST_LINES:
            is_shell = self.turns[turn].get("kind") == "action" and text.partition(" ")[0] not in ENDINGS
            marks = self.marks(turn)
            return Piece(turn, code_html(text, marks) if is_shell else marked(text.rstrip("\n"), marks))
        if self.at and self.at.turn == turn:
            return self.piece(turn)
        lines = text[:FIRST].splitlines(keepends=True)[: FIRST_LINES // 2]
        return self.cut(turn, 0, max(sum(map(len, lines)), 1))


def places_of(turns: Sequence[Recorded]) -> list[Place]:
    """Group turns into steps: an action and the output after it; any other turn is a step of its own."""
    places: list[Place] = []
    prompt = ""
    index = 0
    while index < len(turns):
        action = index if turns[index].get("kind") == "action" else None
        at = index + (action is not None)
        output = at if at < len(turns) and turns[at].get("kind") != "action" else None
        places.append(Place(len(places), action, output, prompt if action is not None else ""))
        if output is not None:
            prompt = str(turns[output].get("prompt") or "")
        index = at + (output is not None)
    return places


def _facts(output: Recorded) -> tuple[Fact, ...]:
    code, seconds = output.get("exit_code"), output.get("seconds")
    facts = [Fact(f"exit {code}", "bad")] if isinstance(code, int) and code else []
    if output.get("truncated"):
        facts.append(Fact("output cut", "borderline"))
    if isinstance(seconds, int | float) and seconds >= SLOW:
        facts.append(Fact(f"{seconds:.1f}", unit="s"))
    return tuple(facts)
