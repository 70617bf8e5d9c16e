"""Tools that a system message declares, and calls of them that the agent wrote as in Python: rows of ToolACE, BFCL and
their like. A call is `[get_weather(city="Bergen"), …]`, the whole of a message."""

import ast
import json
import re
from collections.abc import Collection, Iterator, Sequence
from itertools import count, islice
from typing import Any

import orjson

from curation.imports.layouts.account import Fields
from curation.imports.layouts.messages.calls import decoded, make_call, read_tools
from curation.imports.layouts.messages.written_calls import WRITTEN
from curation.imports.layouts.session import Json, Step
from curation.imports.sources.rows import RowRefused

FIELD = "(tools in the system message)"
# A list of functions may begin at these places of a text; no more are tried.
_BEGINS = re.compile(r'[\[{]\s*+(?:[\[{]\s*+)?"(?:name|type|function|description|parameters)"\s*:')
_MOST_TRIED = 200
_READER = json.JSONDecoder()
_SCHEMAS = frozenset(("parameters", "input_schema", "inputSchema", "function"))
_CLOSED_BY = {"(": ")", "[": "]", "{": "}"}


def tools_in_system(steps: Sequence[Step], fields: Fields) -> list[Json]:
    """Return the tools that the system messages before the first other one list as JSON."""
    found: list[Json] = []
    for step in steps:
        if step["source"] != "system":
            break
        for value in _json_in(step["message"]) if isinstance(step["message"], str) else ():
            functions = value if isinstance(value, list) else [value]
            if functions and all(map(_is_function, functions)):
                found += read_tools(functions, FIELD)
    if found:
        fields.became(FIELD, "tools")
    return found


def names_of(tools: Sequence[Json]) -> set[str]:
    functions = (tool["function"] for tool in tools if isinstance(tool.get("function"), dict))
    return {function["name"] for function in functions if isinstance(function.get("name"), str)}


def with_written_calls(steps: Sequence[Step], names: Collection[str], path: str, fields: Fields) -> list[Step]:
    """Return the steps with the calls that messages have as text, of tools of these names. Raises `RowRefused` for a
    call of such a tool whose arguments are not readable."""
    written = [_written(step, names) for step in steps]
    if not any(written):
        return list(steps)
    taken = {call["tool_call_id"] for step in steps for call in step.get("tool_calls", ())}
    free = (name for number in count(1) if (name := f"call_{number}") not in taken)
    changed = []
    for position, (step, calls) in enumerate(zip(steps, written, strict=True)):
        if not calls:
            changed.append(step)
            continue
        made = []
        for name, arguments in calls:
            made.append(make_call(name, arguments, next(free), f"{path}.{position}", fields))
        new = {**step, "message": "", "tool_calls": made}
        if "observation" in step:
            results = [inner for one in step["observation"]["results"] for inner in _each(one, len(made))]
            named = [
                {"source_call_id": call["tool_call_id"], **result} for call, result in zip(made, results, strict=False)
            ]
            new["observation"] = {"results": [*named, *results[len(made) :]]}
        changed.append(new)
        fields.became(WRITTEN, "steps")
    return changed


def _json_in(text: str) -> Iterator[Any]:
    """Yield the lists and objects of JSON in a text, one after the other."""
    end = 0
    for place in islice(_BEGINS.finditer(text), _MOST_TRIED):
        if place.start() >= end:
            try:
                value, end = _READER.raw_decode(text, place.start())
            except (ValueError, RecursionError):
                continue
            yield value


def _is_function(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("name", ""), str) and not _SCHEMAS.isdisjoint(value)


def _written(step: Step, names: Collection[str]) -> list[tuple[str, Json]]:
    """Return the names and arguments of the calls in a message that has nothing else, or an empty list."""
    text = step["message"]
    if not isinstance(text, str) or step["source"] != "agent" or "tool_calls" in step:
        return []
    text = text.strip()
    if not (text.startswith("[") and text.endswith(")]")):
        return []
    calls = []
    for part in _split(text[1:-1]):
        name, opened, rest = part.partition("(")
        if not opened or not rest.endswith(")") or name.strip() not in names:
            return []
        arguments: Json = {}
        for argument in _split(rest[:-1]):
            key, equals, value = argument.partition("=")
            if not equals:
                raise RowRefused(f"a call of {name.strip()} that is written as text has an argument without a name")
            arguments[key.strip()] = _literal(value.strip(), name)
        calls.append((name.strip(), arguments))
    return calls


def _split(text: str) -> list[str]:
    """Return the parts of a text between commas that are in no brackets and no quotes."""
    parts: list[str] = []
    open_brackets: list[str] = []
    quote, before, start, escaped = "", ",", 0, False
    for at, sign in enumerate(text):
        if quote:
            quote = "" if sign == quote and not escaped else quote
            escaped = sign == "\\" and not escaped
        elif sign in "'\"" and before in "=,:[({":
            quote, escaped = sign, False
        elif sign in _CLOSED_BY:
            open_brackets.append(_CLOSED_BY[sign])
        elif open_brackets and sign == open_brackets[-1]:
            open_brackets.pop()
        elif sign == "," and not open_brackets:
            parts.append(text[start:at].strip())
            start = at + 1
        before = before if sign.isspace() else sign
    return [part for part in (*parts, text[start:].strip()) if part]


def _literal(text: str, name: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass
    try:
        value = ast.literal_eval(_Words().visit(ast.parse(text, mode="eval")))
        return orjson.loads(orjson.dumps(value))
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        raise RowRefused(
            f"a call of {name.strip()} that is written as text has the argument {text[:80]}, which is no value"
        ) from None


class _Words(ast.NodeTransformer):
    """Reads the words of JSON in a value of Python."""

    def visit_Name(self, node: ast.Name) -> ast.AST:  # noqa: N802 - a name of `ast`
        words = {"true": True, "false": False, "null": None}
        return ast.Constant(words[node.id]) if node.id in words else node


def _each(result: Json, calls: int) -> list[Json]:
    """Return the result of each call, of those that one message has as a list of JSON."""
    value = decoded(result.get("content"))
    if not isinstance(value, list) or len(value) != calls or not all(isinstance(one, dict) for one in value):
        return [result]
    contents = [one["results"] if "results" in one and {"name", "arguments"} & one.keys() else one for one in value]
    return [{**result, "content": one if isinstance(one, str) else orjson.dumps(one).decode()} for one in contents]
