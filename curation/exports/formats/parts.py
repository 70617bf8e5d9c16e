"""Read a row of training data as messages, each with its use by a trainer.

Rows from elsewhere that are only read are all read here: for contamination checks, held-out sets, splits of benchmarks
and previews. It takes every layout that trainers take, and refuses unknown ones, because an unread text cannot be
called clean.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import repeat
from typing import Literal

from curation.duels.imports.layouts import COLUMNS, decoded, read_message
from curation.imports.sources.rows import RowRefused
from judging.messages import message_text

Use = Literal["context", "learned", "rejected"]
Row = Mapping[str, object]
# Words for roles that other layouts have.
_ROLES = {"tool_call": "function_call", "tool_response": "observation", "ipython": "tool", "bot": "assistant"}
_ROLES |= {"chatgpt": "gpt", "chatbot": "assistant"}
_CONVERSATIONS = (*COLUMNS, "conversation", "dialogue")
_SYSTEM = ("system", "system_prompt")
# The columns of a task without messages, in the order in which a person reads them.
_ASKED = (
    *("instruction", "context", "passage", "question", "problem", "problem_statement", "query", "text", "input"),
    *("choices", "options"),
)
_ANSWERS = (
    *("completion", "response", "output", "canonical_solution", "solution", "answer", "correct answer", "target"),
    *("answers", "final_answer", "correct_answer", "ideal", "expected", "patch", "code"),
)
_CHOSEN = ("chosen", "preferred_output", "challenger", "assistant")
_REJECTED = ("rejected", "non_preferred_output", "rejected_response", "rejected_messages", "king")
_LABELS = ("label", "kto_tag", "desirable")
_MARKS = ("train", "weight", "training", "loss")


@dataclass(frozen=True, slots=True)
class Part:
    """One message. `use` says whether a trainer learns it, avoids it, or only reads it."""

    role: str
    text: str
    use: Use = "context"
    reasoning: str = ""

    @property
    def chatml(self) -> str:
        """The message in ChatML, the template of Qwen and many others."""
        return f"<|im_start|>{self.role}\n{self.text}<|im_end|>\n"


@dataclass(frozen=True, slots=True)
class Parts:
    """The messages before the answers, and the answers of each side. A conversation has one side and nothing before
    it."""

    prompt: Sequence[Part]
    sides: Sequence[Sequence[Part]]

    def __iter__(self) -> Iterator[Part]:
        yield from self.prompt
        for side in self.sides:
            yield from side

    def conversations(self) -> list[list[tuple[str, str]]]:
        """Return role and text of the messages of each side, then the reasoning by itself."""
        found = [[(part.role, part.text) for part in (*self.prompt, *side)] for side in self.sides or [()]]
        thought = [("reasoning", part.reasoning) for part in self if part.reasoning]
        return [*found, thought] if thought else found


def parts_of(row: Row) -> Parts:
    """Return the messages of a row. Raises `RowRefused` with the reason."""
    given = {name.lower(): value for name, value in row.items() if value not in (None, "", [], {})}
    parts = Parts(_prompt(given), ())
    chosen, rejected = ([given[name] for name in names if name in given] for names in (_CHOSEN, _REJECTED))
    if chosen or rejected:
        sides = [_side(value, "learned") for value in chosen] + [_side(value, "rejected") for value in rejected]
        parts = _beside(parts.prompt, sides, is_told=bool(chosen))
    elif not any(name in given for name in _CONVERSATIONS):
        parts = Parts(parts.prompt, _completions(given))
    if not parts.sides and any(part.role == "assistant" for part in parts.prompt):
        parts = Parts((), [_learned(parts.prompt, given)])
    if not any(part.text.strip() for part in parts):
        raise RowRefused(f"no layout of training data has the columns {', '.join(list(row)[:12]) or 'none'}")
    return parts


def read_part(given: object, path: str = "message", use: Use = "context") -> Part:
    """Read a message of any layout; text alone is an answer. Raises `RowRefused`."""
    entry = decoded(given)
    if isinstance(entry, str):
        return Part("assistant", entry, use)
    if isinstance(entry, dict):
        word = str(entry.get("role", entry.get("from"))).lower()
        entry = {**entry, "role": _ROLES.get(word, word)}
        entry |= {key: _readable(entry[key]) for key in ("content", "value", "text") if key in entry}
    message = read_message(entry, path)
    calls = message.get("tool_calls")
    text = message_text({**message, "tool_calls": [*map(_call, calls)] if isinstance(calls, list) else None})
    return Part(str(message["role"]), text, use, str(message.get("reasoning_content") or ""))


def _prompt(given: Row) -> list[Part]:
    """Return everything before the answers, or a whole conversation."""
    nested = given.get("input")
    column = next((name for name in _CONVERSATIONS if name in given), "")
    parts = [Part("system", _flat(given[name])) for name in _SYSTEM if name in given]
    if isinstance(nested, dict) and "messages" in nested:
        return parts + _messages(nested["messages"], "input.messages")
    if column:
        return parts + _messages(given[column], column)
    if "prompt" in given:
        asked = decoded(given["prompt"])
        return parts + (_messages(asked, "prompt") if isinstance(asked, list) else [Part("user", _flat(asked))])
    history = given.get("history")
    for turn in history if isinstance(history, list) else ():
        parts += [Part(role, _flat(text)) for role, text in zip(("user", "assistant"), turn, strict=False)]
    asked = "\n".join(_flat(given[name]) for name in _ASKED if name in given)
    return [*parts, Part("user", asked)] if asked else parts


def _completions(given: Row) -> list[list[Part]]:
    """Return the messages after a prompt, one side for each column. A false label makes a side an answer to avoid."""
    use: Use = "rejected" if any(given.get(label) is False for label in _LABELS) else "learned"
    values = [given[name] for name in _ANSWERS if name in given]
    return [_side(value if _is_said(value) else _flat(value), use) for value in values]


def _beside(prompt: Sequence[Part], sides: Sequence[Sequence[Part]], *, is_told: bool) -> Parts:
    """Put the sides of a pair behind their prompt. A conversation may end in the chosen answer, and a side may be a
    conversation that repeats the prompt."""
    if not is_told and prompt and prompt[-1].role == "assistant":
        *prompt, last = prompt
        sides = [[Part(last.role, last.text, "learned", last.reasoning)], *sides]
    if any(side and side[0].role != "assistant" for side in sides):
        said = {part.text for side in sides for part in side}
        return Parts([part for part in prompt if part.text not in said], sides)
    return Parts(prompt, sides)


def _learned(parts: Sequence[Part], given: Row) -> list[Part]:
    """Return a conversation with its trained messages: the marked ones, or the last one if none is marked."""
    column = next((name for name in _CONVERSATIONS if name in given), "")
    entries = decoded(given.get(column))
    marks = [_mark(decoded(entry)) for entry in entries] if isinstance(entries, list) else []
    marks = [*repeat(None, len(parts) - len(marks)), *marks]
    last = max(place for place, part in enumerate(parts) if part.role == "assistant")
    uses = [place == last if mark is None and not any(marks) else bool(mark) for place, mark in enumerate(marks)]
    return [
        Part(part.role, part.text, "learned" if is_learned else "context", part.reasoning)
        for part, is_learned in zip(parts, uses, strict=True)
    ]


def _mark(entry: object) -> bool | None:
    marks = [entry[name] for name in _MARKS if entry.get(name) is not None] if isinstance(entry, dict) else []
    return bool(marks[0]) if marks else None


def _side(given: object, use: Use) -> list[Part]:
    entries = decoded(given)
    if not isinstance(entries, list):
        return [read_part(entries, use, use)]
    read = [read_part(entry, f"{use}.{place}") for place, entry in enumerate(entries)]
    last = max(
        (place for place, part in enumerate(read) if part.role != "assistant" and part.role != "tool"), default=-1
    )
    return [
        Part(part.role, part.text, use if place > last and part.role == "assistant" else "context", part.reasoning)
        for place, part in enumerate(read)
    ]


def _messages(given: object, column: str) -> list[Part]:
    entries = decoded(given)
    if not isinstance(entries, list):
        raise RowRefused(f"{column} is not a list of messages")
    return [read_part(_said(entry), f"{column}.{place}") for place, entry in enumerate(entries)]


def _said(entry: object) -> object:
    """Refuse bare text among messages: nobody knows who says it."""
    if isinstance(decoded(entry), str):
        raise RowRefused("a message is text without a role")
    return entry


def _is_said(value: object) -> bool:
    found = decoded(value)
    first = found[0] if isinstance(found, list) and found else found
    return isinstance(first, dict) and bool({"role", "from"} & first.keys())


def _readable(content: object) -> object:
    """Return a content whose parts all have text: a part of another kind, such as a call, is its JSON."""
    if not isinstance(content, list):
        return content
    return [
        part if isinstance(part, str) or (isinstance(part, dict) and isinstance(part.get("text"), str)) else _flat(part)
        for part in content
    ]


def _call(call: object) -> object:
    """Return a call without its id, with its arguments written in one way."""
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return call
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        with suppress(ValueError, RecursionError):
            arguments = json.loads(arguments)
    return {"function": {"name": function.get("name", ""), "arguments": arguments}}


def _flat(value: object) -> str:
    """Return a value as text: a list on lines of its own, an object as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(map(_flat, value))
    return json.dumps(value, ensure_ascii=False, default=str)
