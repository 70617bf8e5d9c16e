"""The notations in which models write tool calls as text: the mark of each, and the reader of the text from it on."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from curation.imports.layouts.messages.calls import decoded, loosely_decoded
from curation.imports.layouts.session import Json

OPENS, CLOSES = "<tool_call>", "</tool_call>"
# The openings of elements, with the name in them if they have one, and their endings.
_ELEMENT = re.compile(r"<function=([^<>\n]+)>"), "</function>"
_PARAMETER = re.compile(r"<parameter=([^<>\n]+)>"), "</parameter>"
_CALL = re.compile(r"<(tool_call)>"), CLOSES
_ARGUMENT = re.compile(r"<arg_key>([^<>]+)</arg_key>\s*<arg_value>"), "</arg_value>"
_OF_DEEPSEEK = re.compile(r"<｜(tool▁call▁begin)｜>"), "<｜tool▁call▁end｜>"
_OF_KIMI = re.compile(r"<\|(tool_call_begin)\|>"), "<|tool_call_end|>"
_OF_MISTRAL = re.compile(r"\s*(?P<name>[^\[\]\s]+)(?:\[CALL_ID\](?P<id>[^\[\]]+))?\[ARGS\](?P<arguments>.*)", re.DOTALL)
_BETWEEN = re.compile(r"(?<=\})\s*;\s*(?=\{)")
_NAME = re.compile(r"[\w.:/-]{1,200}")
_FENCED = re.compile(r"```json\n(.*)\n```", re.DOTALL)

_Element = tuple[re.Pattern[str], str]
# The parts of a text as calls. A part that is no call is None.
_Called = list[Json | None]


def elements(text: str, opening: re.Pattern[str], ending: str) -> tuple[list[tuple[str, str]], str]:
    """Return the name and the content of each element, and the text around them. It takes linear time, also where
    elements have no end."""
    found: list[tuple[str, str]] = []
    around: list[str] = []
    at = 0
    while (begin := opening.search(text, at)) and (end := text.find(ending, begin.end())) >= 0:
        found.append((begin[1], text[begin.end() : end]))
        around.append(text[at : begin.start()])
        at = end + len(ending)
    return found, "".join([*around, text[at:]])


def whole(calls: _Called) -> list[Json]:
    """Return the calls if each part is one, else an empty list."""
    return [call for call in calls if call] if all(calls) else []


def _tagged(text: str, mark: str) -> _Called:
    """JSON (Hermes, Qwen), elements (Qwen3 Coder) or keys and values (GLM) between `<tool_call>` and `</tool_call>`.
    Arguments of the last two are text, as their notations have no types."""
    found, others = elements(text, *_CALL)
    calls: _Called = [None] if others.strip() else []
    for inner in (one.lstrip() for _, one in found):
        if inner.startswith("{"):
            calls.append(_call_of(loosely_decoded(inner.rstrip())))
        else:
            calls += function_elements(inner) if inner.startswith("<function=") else [_of_glm(inner)]
    return calls


def _call_of(value: Any) -> Json | None:
    return value if isinstance(value, dict) and isinstance(value.get("name"), str) and value["name"] else None


def function_elements(text: str) -> _Called:
    """Elements `<function=NAME>` with elements `<parameter=NAME>`, and no other text between or in them."""
    found, others = elements(text, *_ELEMENT)
    calls: _Called = [None] if others.strip() else []
    for name, content in found:
        parameters, rest = elements(content, *_PARAMETER)
        texts = [(key, value.removeprefix("\n").removesuffix("\n")) for key, value in parameters]
        calls.append(None if rest.strip() else _named(name, texts))
    return calls


def _of_glm(text: str) -> Json | None:
    """A word alone is a call only if a line ends after it, as templates write it: prose has such a word too."""
    name, _, _ = text.partition("<arg_key>")
    arguments, others = elements(text[len(name) :], *_ARGUMENT)
    is_name = _NAME.fullmatch(name.strip()) and (arguments or "\n" in name)
    return _named(name, arguments) if is_name and not others.strip() else None


def _named(name: str, arguments: list[tuple[str, str]]) -> Json | None:
    """A call by its name and arguments. One that is there twice has two values, of which a call has one."""
    named = dict(arguments)
    return {"name": name.strip(), "arguments": named} if len(named) == len(arguments) else None


def _with_arguments(name: str, arguments: str, identifier: str = "") -> Json | None:
    found = decoded(arguments.strip())
    is_call = _NAME.fullmatch(name) and isinstance(found, Mapping)
    return {"name": name, "arguments": found, "id": identifier} if is_call else None


def _of_mistral(text: str, mark: str) -> _Called:
    """`[TOOL_CALLS]` with a list of calls as JSON, or once for each call before `NAME[ARGS]{…}`."""
    _, *parts = text.split(mark)
    value = decoded(parts[0].strip()) if len(parts) == 1 else None
    if isinstance(value, list):
        return [_call_of(one) for one in value]
    found = [_OF_MISTRAL.fullmatch(part) for part in parts]
    return [one and _with_arguments(one["name"], one["arguments"], one["id"] or "") for one in found]


def _of_llama(text: str, mark: str) -> _Called:
    """`<|python_tag|>` with the JSON of a call, or of several with semicolons between them. Python is no call."""
    return [_call_of(decoded(one)) for one in _BETWEEN.split(text.removeprefix(mark).strip())]


def _in_section(read: Callable[[str], Json | None], element: _Element, text: str, mark: str) -> _Called:
    """Calls of which each is an element, in a section that begins with the mark and may have an end."""
    found, others = elements(text.removeprefix(mark).removesuffix(mark.replace("begin", "end")), *element)
    return [None] if others.strip() else [read(one) for _, one in found]


def _of_deepseek(text: str) -> Json | None:
    name, _, arguments = text.partition("<｜tool▁sep｜>")
    if name.strip() == "function":  # before version 3.1
        name, _, block = arguments.partition("\n")
        fenced = _FENCED.fullmatch(block.strip())
        arguments = fenced[1] if fenced else ""
    return _with_arguments(name.strip(), arguments)


def _of_kimi(text: str) -> Json | None:
    identifier, _, arguments = text.partition("<|tool_call_argument_begin|>")
    name = identifier.strip().removeprefix("functions.").rpartition(":")[0]
    return _with_arguments(name, arguments, identifier.strip())


NOTATIONS: dict[str, Callable[[str, str], _Called]] = {
    OPENS: _tagged,
    "[TOOL_CALLS]": _of_mistral,
    "<|python_tag|>": _of_llama,
    "<｜tool▁calls▁begin｜>": partial(_in_section, _of_deepseek, _OF_DEEPSEEK),
    "<|tool_calls_section_begin|>": partial(_in_section, _of_kimi, _OF_KIMI),
}
