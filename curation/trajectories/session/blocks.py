"""The blocks of a step: its reasoning, its message, each call with its arguments, and what it observed."""

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from curation.imports.layouts.session import Json, Step
from curation.web.text.markup import Argument, Form, arguments_of, as_json, form_of, without_colours
from curation.web.text.transcript import Image, failure_in

Kind = Literal["reasoning", "message", "call", "output", "subagent"]
# Data that is no picture has an address of megabytes.
_LONGEST_ADDRESS = 300
NOTHING: Mapping[str, Any] = MappingProxyType({})
# Pictures that a browser draws without running anything in them.
DRAWN = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))


class BlockText(NamedTuple):
    """One text or picture of a step, named by its argument. `given` is as recorded. A `form` of None is decided by the
    content, and is `plain` for a text that is nothing special."""

    given: object
    form: Form | None = "text"
    name: str = ""
    plain: Form = "terminal"

    def shown(self) -> tuple[Form, str]:
        if isinstance(self.given, Argument):
            return self.given.form, self.given.text
        if self.form == "image":
            image = self.image()
            return "image", "" if image is None or image.data else image.address
        text = str(self.given)
        if self.form is not None:
            return self.form, text
        text = without_colours(text)
        form = form_of(text, self.plain)
        return form, as_json(json.loads(text)) if form == "json" else text

    def raw(self) -> str:
        given = self.given.value if isinstance(self.given, Argument) else self.given
        return given if isinstance(given, str) else as_json(given)

    def image(self) -> Image | None:
        if self.form != "image" or not isinstance(self.given, Mapping):
            return None
        address, media_type = str(self.given.get("path") or ""), str(self.given.get("media_type") or "")
        head, _, data = address.partition(",")
        if not head.startswith("data:") or not head.endswith(";base64") or media_type not in DRAWN:
            return Image(media_type, b"", address[:_LONGEST_ADDRESS])
        try:
            return Image(media_type, base64.b64decode(data, validate=True), "")
        except binascii.Error:
            return Image(media_type, b"", address[:_LONGEST_ADDRESS])


class StepBlock(NamedTuple):
    """`title` is the function of a call. `extra` is that of an output, or what names a subagent."""

    kind: Kind
    texts: Sequence[BlockText] = ()
    title: str = ""
    extra: Mapping[str, Any] = NOTHING

    @property
    def seconds(self) -> float | None:
        seconds = self.extra.get("seconds")
        return seconds if isinstance(seconds, int | float) else None

    @property
    def error(self) -> str:
        """How an output says that it failed: by its exit code or mark, else by a line that reports an error."""
        if self.kind != "output":
            return ""
        code = self.extra.get("exit_code")
        if isinstance(code, int):
            return f"exit {code}" if code else ""
        if self.extra.get("is_error"):
            return "error"
        found = (failure_in(text.given) for text in self.texts if isinstance(text.given, str))
        return next((error for error in found if error), "")


def blocks_of(step: Step) -> list[StepBlock]:
    """Return the blocks in the order in which they happened: each call is followed by its results.

    A page makes those of thousands of steps, so lists are returned as they are.
    """
    blocks: list[StepBlock] = []
    if reasoning := step.get("reasoning_content"):
        blocks.append(StepBlock("reasoning", [BlockText(reasoning)]))
    message = _texts_of(step["message"], "blocks" if step["source"] == "agent" else None, "text")
    results = (step.get("observation") or {}).get("results") or ()
    calls = step.get("tool_calls") or ()
    if message or not (calls or results or reasoning):
        blocks.append(StepBlock("message", message or [BlockText("")]))
    for call in calls:
        fields = [BlockText(one, one.form, one.name) for one in arguments_of(call["function_name"], call["arguments"])]
        blocks.append(StepBlock("call", fields, call["function_name"]))
        answered = call["tool_call_id"]
        for result in results:
            if result.get("source_call_id") == answered:
                blocks += _observed(result)
        results = [result for result in results if result.get("source_call_id") != answered]
    for result in results:
        blocks += _observed(result)
    return blocks


def _observed(result: Json) -> list[StepBlock]:
    texts = _texts_of(result.get("content") or "", None)
    references = result.get("subagent_trajectory_ref") or ()
    output = [StepBlock("output", texts, "", result.get("extra") or NOTHING)] if texts or not references else []
    return [*output, *(StepBlock("subagent", extra=reference) for reference in references)] if references else output


def _texts_of(content: str | Sequence[Json], form: Form | None, plain: Form = "terminal") -> list[BlockText]:
    if isinstance(content, str):
        return [BlockText(content, form, "", plain)] if content else []
    return [_part(part, form, plain) for part in content]


def _part(part: Json, form: Form | None, plain: Form) -> BlockText:
    if part["type"] == "text":
        return BlockText(part["text"], form, "", plain)
    return BlockText(part["source"], "image") if part["type"] == "image" else BlockText(as_json(part), "json")
