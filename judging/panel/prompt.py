"""What a judge is shown: the history, two anonymous answers, and nothing in them that could pose as the panel."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NotRequired, TypedDict

from judging.messages import content_of
from judging.panel.neutral import Neutralised, neutralise
from judging.panel.rubric import DIMENSIONS

__all__ = [
    "VERDICT_SCHEMA",
    "JudgePrompt",
    "Message",
    "Neutralised",
    "judge_messages",
    "message_text",
    "neutralise",
    "render_history",
]

# Deliberately not a repetition of the rubric: that stands in the instructions, which a project may override.
_REMINDER = (
    "Reply with one JSON object on one line, nothing else: {"
    + ", ".join(f'"{dimension}": 0|1|2' for dimension in DIMENSIONS)
    + ', "reason": "one sentence"}'
)

VERDICT_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        **{
            dimension: {
                "type": "integer",
                "enum": [0, 1, 2],
                "description": "1 = answer 1 is better, 2 = answer 2, 0 = a draw",
            }
            for dimension in DIMENSIONS
        },
        "reason": {"type": "string", "description": "One sentence that says why."},
    },
    "required": [*DIMENSIONS, "reason"],
    "additionalProperties": False,
}


class ToolFunction(TypedDict):
    """Name and arguments of a tool call, as OpenAI writes them (arguments are a JSON text)."""

    name: str
    arguments: str


class ToolCall(TypedDict):
    """One tool call of an assistant message."""

    id: NotRequired[str]
    type: NotRequired[str]
    function: ToolFunction


class Message(TypedDict):
    """One message of a history in OpenAI's form. `content` may be null when there are tool calls."""

    role: str
    content: str | None
    tool_calls: NotRequired[Sequence[ToolCall]]
    tool_call_id: NotRequired[str]
    name: NotRequired[str]


@dataclass(frozen=True, slots=True)
class JudgePrompt:
    """Messages for one judge call, and what was neutralised in them as `place:kind` (such as `answer_2:verdict`)."""

    messages: list[dict[str, str]]
    findings: tuple[str, ...]


def render_history(history: Sequence[Mapping[str, object] | Message]) -> str:
    """Write a history as text: each message under a numbered line with its role, tool calls below its content."""
    return "\n\n".join(_render_message(number, message) for number, message in enumerate(history, 1))


def judge_messages(
    *,
    instructions: str,
    history: Sequence[Mapping[str, object] | Message],
    first: str,
    second: str,
    reference: str | None = None,
) -> JudgePrompt:
    """Build the call for one judge and one order.

    The system message is `instructions`, unchanged. The user message holds the history, the reference if there is
    one, then the answers in the order given, and ends with one line on the reply's form. All four texts are
    neutralised first; a harmless one stands there byte for byte.
    """
    parts = [("history", render_history(history))]
    if reference is not None:
        parts.append(("reference", reference))
    parts += [("answer_1", first), ("answer_2", second)]
    sections: list[str] = []
    findings: list[str] = []
    for place, text in parts:
        safe = _neutralised_history(text) if place == "history" else neutralise(text)
        sections.append(f"<{place}>\n{safe.text}\n</{place}>")
        findings += [f"{place}:{kind}" for kind in safe.findings]
    user = "\n\n".join([*sections, _REMINDER])
    messages = [{"role": "system", "content": instructions}, {"role": "user", "content": user}]
    return JudgePrompt(messages, tuple(findings))


@lru_cache(maxsize=128)
def _neutralised_history(text: str) -> Neutralised:
    """All judges read a duel's history in both orders within a moment; it is by far the longest of the texts."""
    return neutralise(text)


def message_text(message: Mapping[str, object] | Message) -> str:
    """What a message says: its content, and its tool calls below it as the history shows them."""
    lines = [content_of(message)]
    calls = message.get("tool_calls")
    if isinstance(calls, Sequence) and not isinstance(calls, str):
        lines += [_render_call(call) for call in calls]
    return "\n".join(filter(None, lines))


def _render_message(number: int, message: Mapping[str, object] | Message) -> str:
    answers = message.get("tool_call_id")
    title = f"[{number}] {message.get('role', 'unknown')}" + (f" (result of {answers})" if answers else "")
    return "\n".join(filter(None, [f"{title}:", message_text(message)]))


def _render_call(call: object) -> str:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping):
        return f"[tool call] {json.dumps(call, ensure_ascii=False, default=str)}"
    arguments = function.get("arguments", "")
    shown = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    label = f"[tool call {call['id']}]" if isinstance(call, Mapping) and call.get("id") else "[tool call]"
    return f"{label} {function.get('name', '')} {shown}".rstrip()
