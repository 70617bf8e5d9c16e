"""Rows of process reward models: a prompt, the steps after it as texts, and for each whether it is correct.

A text of our own exports has all messages of its step, each below a line with its role.
"""

import re
from collections.abc import Mapping, Sequence

from curation.imports.layouts.messages.read import Messages
from curation.imports.layouts.rows.columns import RowColumns
from curation.imports.layouts.session import Json
from curation.imports.sources.rows import RowRefused
from judging.messages import message_text, split_calls

_HEADING = re.compile(r"(?:\A|\n\n)\[(system|user|assistant|tool)\]\n")


def write_text(messages: Sequence[Mapping[str, object]]) -> str:
    """Return messages as one text, which `read_text` takes apart again."""
    return "\n\n".join(f"[{message['role']}]\n{message_text(message)}" for message in messages)


def read_text(text: str, role: str) -> list[Json]:
    """Return the messages of a text; without roles in it, it is one message of this role."""
    start, *parts = _HEADING.split(text)
    if start or not parts:
        return [{"role": role, "content": text}]
    return [_message(*said) for said in zip(parts[::2], parts[1::2], strict=True)]


def _message(role: str, text: str) -> Json:
    content, calls = split_calls(text) if role == "assistant" else (text, [])
    return {"role": role, "content": content} | ({"tool_calls": calls} if calls else {})


def read_steps(columns: RowColumns) -> Messages:
    """Return the steps in `completions`. The last one of the agent in each has its label as the mark of training, the
    others are context. Raises `RowRefused`."""
    texts = columns.take("completions", "steps")
    labels = columns.take("labels", "learned") if "labels" in columns else []
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise RowRefused("completions is not a list of texts")
    if not isinstance(labels, list) or not all(isinstance(label, bool) for label in labels):
        raise RowRefused("labels is not a list of true or false")
    if len(texts) > 1 and not labels:
        raise RowRefused("completions has several texts without `labels`: they may be answers, or the steps of one")
    if labels and len(labels) != len(texts):
        raise RowRefused(f"{len(texts)} completions have {len(labels)} labels")
    given: list[Json] = []
    for number, text in enumerate(texts):
        said = read_text(text, "assistant")
        own = [message for message in said if message["role"] == "assistant"]
        for message in own if labels else ():
            message["train"] = message is own[-1] and labels[number]
        given += said
    return columns.messages(given, "completions")
