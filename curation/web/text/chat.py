"""Chat messages as a transcript: the history of a prompt, the row of an evaluation, the raw messages of a rollout."""

import json
import re
from collections.abc import Iterator, Sequence

from curation.web.text.markup import without_colours
from curation.web.text.parts import LOOKED_AT, Form, form_of
from curation.web.text.transcript import (
    Excerpt,
    Landmark,
    Recorded,
    Source,
    Transcript,
    TranscriptTurn,
    TurnPosition,
    summary_line,
)
from judging.answers.blocks import bash_blocks
from judging.messages import content_of

# The last turns, which a page opens with.
LAST = 4
# Turns before and after one that must be shown.
AROUND = 2
# Characters; a longer turn starts folded where all turns are in the page.
FOLDED_OVER = 3000
# The exit code in a command's output, and signs of failure in an output without one.
_RETURNED = re.compile(r"<returncode>\s*(-?\d+)|\b(?:exit code|exit status|returncode)[:=]?\s+(-?\d+)", re.IGNORECASE)
# The wrapper of an output, which its summary leaves out.
_TAGS = re.compile(r"<returncode>.*?</returncode>|</?output>")
_FAILED = re.compile(
    r"^(?:Traceback \(most recent call last\)|\S*(?:Error|Exception): .*|.*: command not found"
    r"|.*: No such file or directory|.*[Pp]ermission denied.*|(?:fatal|error|ERROR): .*|FAILED .*|.*timed out.*)$",
    re.MULTILINE,
)


class Chat(Transcript[TranscriptTurn]):
    """Messages as the OpenAI API has them.

    In an `agent`'s history the first user message is the task, which is shown first, and later ones are output of
    commands.
    """

    def __init__(
        self,
        messages: Sequence[Recorded],
        source: Source | None = None,
        *,
        agent: bool = True,
        at: TurnPosition | None = None,
    ) -> None:
        super().__init__(messages, source, at=at)
        users = (index for index, message in enumerate(messages) if message.get("role") == "user")
        self._task = next(users, None) if agent else None
        self._agent = agent
        self._texts: dict[int, str] = {}
        self._order = sorted(range(len(messages)), key=lambda index: index != self._task)

    def __len__(self) -> int:
        return len(self.turns)

    def entry(self, place: int, *, opened: bool) -> TranscriptTurn:
        index = self._order[place]
        return self.turn(index, body=self.piece(index) if opened else None, opened=opened)

    def role(self, turn: int) -> str:
        role = str(self.turns[turn].get("role") or "user")
        if not self._agent or role in ("assistant", "system"):
            return role
        return "task" if turn == self._task else "output"

    def form(self, turn: int) -> Form:
        if self.role(turn) == "output":
            return form_of(self.text(turn))
        return "blocks" if self.role(turn) == "assistant" else "text"

    def raw_text(self, turn: int) -> str:
        """The text with tool calls as JSON below it."""
        message = self.turns[turn]
        calls = message.get("tool_calls")
        return content_of(message) + (f"\n{json.dumps(calls, indent=1, ensure_ascii=False)}" if calls else "")

    def text(self, turn: int) -> str:
        if turn not in self._texts:
            text = self.raw_text(turn)
            self._texts[turn] = text if self.role(turn) == "assistant" else without_colours(text)
        return self._texts[turn]

    def raw(self) -> str:
        """Each turn under its number and role."""
        heads = (f"=== {turn} {message.get('role', '')} ===" for turn, message in enumerate(self.turns))
        return "\n\n".join(f"{head}\n{self.raw_text(turn)}" for turn, head in enumerate(heads))

    def opening(self) -> Excerpt[TranscriptTurn]:
        """The task, the last turns and those near `at`, opened."""
        task = 0 if self._task is None else 1
        spans = [(0, task), (len(self) - LAST, len(self))]
        if self.at:
            place = self._order.index(self.at.turn)
            spans.append((place - AROUND, place + AROUND + 1))
        return self.excerpt(0, len(self), spans, opened=True)

    def landmarks(self) -> Iterator[Landmark]:
        for index in range(len(self)):
            text, role = self.text(index), self.role(index)
            blocks = bash_blocks(text) if role == "assistant" else ()
            shown = blocks[0].script.strip() or text if blocks else _TAGS.sub(" ", text[:1000])
            calls = bool(self.turns[index].get("tool_calls"))
            error = failure_in(text) if role in ("output", "tool") else ""
            marks = ("command",) if blocks or calls else ()
            yield Landmark(index, role, summary_line(shown), marks, error)

    def complete(self) -> list[TranscriptTurn]:
        """All turns with their whole texts, for pages that load nothing; the last two are opened unless long."""
        return [self.whole(index) for index in range(len(self))]

    def whole(self, index: int) -> TranscriptTurn:
        late = index >= len(self) - 2 and len(self.text(index)) <= FOLDED_OVER
        return self.turn(index, body=self.cut(index, 0, len(self.text(index))), opened=late)


def failure_in(output: str) -> str:
    """Return how a command's output says that it failed: by its exit code, else by a line that reports an error."""
    if len(output) > 2 * LOOKED_AT:
        output = f"{output[:LOOKED_AT]}\n{output[-LOOKED_AT:]}"
    returned = _RETURNED.search(output)
    if returned is not None:
        code = int(returned[1] or returned[2])
        return f"exit {code}" if code else ""
    return "error" if _FAILED.search(output) else ""
