"""The history before a turn, in windows: a transcript of thousands of turns or a megabyte of output stays fast."""

import json
from dataclasses import dataclass
from typing import cast

from django.utils.safestring import SafeString

from curation.duels.models import PromptText
from curation.samples.models import Sample
from curation.web.text.markup import Segment, Span, answer_segments, found_spans, marked, visible, without_colours
from judging.messages import content_of

OPEN_TURNS = 4
WINDOW = 40
CHUNK = 16_000
LINE = 160
MAX_HITS = 50

Message = dict[str, object]


@dataclass(frozen=True, slots=True)
class Body:
    """A stretch of one turn's text: `segments` of an assistant's turn, or `html` of what a terminal or person said."""

    segments: list[Segment]
    html: SafeString | None
    start: int
    next_start: int | None
    left: int


@dataclass(frozen=True, slots=True)
class Turn:
    """One message. `tone` is user, system, assistant or output; `body` is None where it is loaded on demand."""

    index: int
    tone: str
    role: str
    line: SafeString
    size: int
    body: Body | None = None
    hits: int = 0


@dataclass(frozen=True, slots=True)
class Window:
    """Turns in order; `folded` of them lie above, and the next window ends at the index `before`."""

    turns: list[Turn]
    before: int
    folded: int


@dataclass(frozen=True, slots=True)
class History:
    """What the page opens with: the task, then `window`, the last turns. `task` is None where there is none."""

    task: Turn | None
    window: Window
    total: int
    size: int


def messages_of(sample: Sample) -> list[Message]:
    """The messages before the sample's turn, as imported; none for a sample without a duel."""
    history = PromptText.objects.filter(prompt__duels__sample=sample).values_list("history", flat=True).first()
    return cast(list[Message], history or [])


def opening(messages: list[Message]) -> History:
    task = _task_index(messages)
    first = max(len(messages) - OPEN_TURNS, 0 if task is None else task + 1)
    turns = [turn_of(messages, index, opened=True) for index in range(first, len(messages))]
    size = sum(len(content_of(message)) for message in messages)
    shown = None if task is None else turn_of(messages, task, opened=True)
    return History(shown, Window(turns, first, _without_task(first, task)), len(messages), size)


def window_before(messages: list[Message], before: int) -> Window:
    """Up to `WINDOW` turns that end before this index, folded; the task is left out, since it stands above."""
    before = min(max(before, 0), len(messages))
    start = max(before - WINDOW, 0)
    task = _task_index(messages)
    turns = [turn_of(messages, index, opened=False) for index in range(start, before) if index != task]
    return Window(turns, start, _without_task(start, task))


def turn_of(messages: list[Message], index: int, *, opened: bool, start: int = 0, wanted: str = "") -> Turn:
    message = messages[index]
    tone, role = _voice(messages, index)
    text = full_text(message)
    body = _body(tone, text, start, wanted) if opened else None
    line = visible(" ".join(text[: LINE * 2].split())[:LINE])
    return Turn(index, tone, role, line, len(text), body)


def find_turns(messages: list[Message], wanted: str) -> tuple[list[Turn], int]:
    """The first `MAX_HITS` turns that hold the text, whatever its case, and how many there are in all."""
    folded = wanted.casefold()
    hits = [index for index, message in enumerate(messages) if folded in full_text(message).casefold()]
    turns = []
    for index in hits[:MAX_HITS]:
        text = full_text(messages[index])
        tone, role = _voice(messages, index)
        spans = found_spans(text, wanted)
        at = max(spans[0][0] - 40, 0) if spans else 0
        line = visible(" ".join(text[at : at + LINE].split()))
        turns.append(Turn(index, tone, role, line, len(text), hits=len(spans)))
    return turns, len(hits)


def full_text(message: Message) -> str:
    """A message as pages show it: text, tool calls as JSON below it; what a terminal printed without its colours."""
    text = content_of(message)
    if message.get("role") != "assistant":
        text = without_colours(text)
    return text + _calls(message)


def _calls(message: Message) -> str:
    calls = message.get("tool_calls")
    return f"\n{json.dumps(calls, indent=1, ensure_ascii=False)}" if calls else ""


def chunk_start_of(text: str, wanted: str) -> int:
    """Where to begin showing a long text so that its first find is in sight."""
    spans = found_spans(text, wanted)
    return max(spans[0][0] - 400, 0) if spans and spans[0][0] > CHUNK // 2 else 0


def raw_text(messages: list[Message]) -> str:
    """The whole history as plain text, each turn under its number and role."""
    return "\n\n".join(f"=== {i} {m.get('role', '')} ===\n{content_of(m)}{_calls(m)}" for i, m in enumerate(messages))


def _without_task(count: int, task: int | None) -> int:
    """How many of the first `count` turns fold away: the task stands on top and is not one of them."""
    return count - (task is not None and task < count)


def _task_index(messages: list[Message]) -> int | None:
    return next((index for index, message in enumerate(messages) if message.get("role") == "user"), None)


def _voice(messages: list[Message], index: int) -> tuple[str, str]:
    """(tone, word) of a turn: after the task, what a user or tool says is a command's output."""
    role = str(messages[index].get("role", ""))
    if role == "assistant":
        return "assistant", "assistant"
    if role == "system":
        return "system", "system"
    return ("user", "task") if index == _task_index(messages) else ("output", "output")


def _body(tone: str, text: str, start: int, wanted: str) -> Body:
    start = min(max(start, 0), len(text))
    end = min(start + CHUNK, len(text))
    piece = text[start:end]
    spans: list[Span] = found_spans(piece, wanted)
    next_start, left = (end, len(text) - end) if end < len(text) else (None, 0)
    if tone == "assistant" and start == 0 and next_start is None and not wanted:
        return Body(answer_segments(text), None, start, None, 0)
    return Body([], marked(piece, spans, "found"), start, next_start, left)
