"""Tools and their calls in every form: definitions as OpenAI's functions, `{"type": "function", "function": {…}}`, and
calls as those of a step, `{tool_call_id, function_name, arguments}`, arguments an object.

Arguments that are no object, such as JSON text that was cut off, are in the call's `extra` as `unparsed_arguments`, a
text, beside empty arguments.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from curation.imports.layouts.account import REPLACED, Account, Fields
from curation.imports.layouts.clean import clean
from curation.imports.layouts.session import AgentSession, Json
from curation.imports.sources.rows import RowRefused
from curation.web.text.storable import parse_inner

UNPARSED = "unparsed_arguments"
# The keys under which formats have the arguments: OpenAI, Anthropic, LangChain, and others.
_ARGUMENTS = ("arguments", "args", "input", "parameters")
ARGUMENTS = frozenset(_ARGUMENTS)
_IDS = ("id", "tool_call_id", "call_id", "toolCallId", "toolUseId")
_OPENS, _CLOSES = "<tool_call>", "</tool_call>"
# The openings of elements, each with the name in it, and their endings.
_ELEMENT = re.compile(r"<function=([^<>\n]+)>"), "</function>"
_PARAMETER = re.compile(r"<parameter=([^<>\n]+)>"), "</parameter>"
_CALL = re.compile(r"<(tool_call)>"), _CLOSES
_RESPONSE = re.compile(r"<(tool_response)>"), "</tool_response>"


def read_call(given: Any, path: str, fields: Fields) -> Json:
    """Return a call of OpenAI, Anthropic, LangChain, or any other with a name and arguments. Raises `RowRefused`.

    A call without an id has an empty `tool_call_id`.
    """
    call = decoded(given)
    if not isinstance(call, Mapping):
        raise RowRefused(f"{path} is not a tool call")
    inner = call.get("function", call.get("tool_call"))
    function = inner if isinstance(inner, Mapping) else call
    name = function.get("name", function.get("toolName", inner))
    if not isinstance(name, str) or not name:
        raise RowRefused(f"{path} is a tool call that names no function")
    key = next((key for key in _ARGUMENTS if function.get(key) is not None), "")
    identifier = next((call[name] for name in _IDS if call.get(name)), None)
    return make_call(name, function.get(key), identifier, path, fields)


def make_call(name: str, arguments: Any, identifier: Any, path: str, fields: Fields) -> Json:
    """Return a call by its name and its arguments, an object or JSON text."""
    call: Json = {"tool_call_id": "" if identifier is None else str(identifier), "function_name": name, "arguments": {}}
    found = arguments
    if isinstance(arguments, str):
        if not arguments.strip():
            return call
        try:
            found = parse_inner(arguments)
        except ValueError:
            found = None
        else:
            # JSON text has such characters as escapes, so the row that contains it is clean.
            found, replaced = clean(found, f"{path}.arguments")
            for each in replaced:
                fields.became(each, REPLACED)
    if isinstance(found, Mapping):
        call["arguments"] = found
    elif arguments is not None:
        text = arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()
        call["extra"] = {UNPARSED: text}
    return call


def calls_in_text(text: str, path: str, fields: Fields) -> tuple[str, list[Json]]:
    """Return the text and the calls of sharegpt's `function_call` and ms-swift's `tool_call`: JSON of a call or a list
    of them, alone or between `<tool_call>` and `</tool_call>` after text, or elements `<function=NAME>` after text, as
    OpenHands and Qwen write them; also the list in Python that smolagents writes. Raises `RowRefused`."""
    before, _, rest = text.partition(_OPENS)
    is_between = rest.rstrip().endswith(_CLOSES)
    before = before.removesuffix("\n") if is_between else ""
    inner = rest.rstrip().removesuffix(_CLOSES) if is_between else text.removeprefix("Calling tools:")
    written = loosely_decoded(inner.strip())
    if isinstance(written, str) and "<function=" in written:
        return _called_elements(written, before, path, fields)
    calls = written if isinstance(written, list) else [written]
    if not calls or not all(isinstance(call, dict) for call in calls):
        raise RowRefused(
            f"{path} is a turn of tool calls, but its text is no JSON of a call: map its role if it is text"
        )
    return before, [read_call(call, path, fields) for call in calls]


def calls_after_text(text: str, path: str, fields: Fields) -> tuple[str, list[Json]]:
    """Return the text before calls that an assistant wrote as text, between `<tool_call>` and `</tool_call>`, and the
    calls. Text with other tags, or with words after them, is returned as it is."""
    before, tag, rest = text.partition(_OPENS)
    found, others = _elements(tag + rest, *_CALL)
    written = [loosely_decoded(one.strip()) for _, one in found]
    is_whole = bool(written) and not others.strip()
    if not is_whole or not all(isinstance(one, dict) and isinstance(one.get("name"), str) for one in written):
        return text, []
    return before.rstrip(), [read_call(one, path, fields) for one in written]


def results_in_text(text: str) -> list[str]:
    """Return the results between `<tool_response>` and `</tool_response>`, if the text has nothing else."""
    found, others = _elements(text, *_RESPONSE)
    return [] if others.strip() else [_result_of(one.strip()) for _, one in found]


def _result_of(text: str) -> str:
    """Return the content of a result that names its function, or the text itself."""
    value = loosely_decoded(text)
    if not isinstance(value, dict) or value.keys() != {"name", "content"}:
        return text
    return value["content"] if isinstance(value["content"], str) else orjson.dumps(value["content"]).decode()


def _elements(text: str, opening: re.Pattern[str], ending: str) -> tuple[list[tuple[str, str]], str]:
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


def _called_elements(text: str, before: str, path: str, fields: Fields) -> tuple[str, list[Json]]:
    """Return the text before the first element, and the calls of all. Arguments are text, as the elements have no
    types. Raises `RowRefused` for other text between or in the elements, which has no place."""
    start = text.index("<function=")
    elements, others = _elements(text[start:], *_ELEMENT)
    inside = [_elements(parameters, *_PARAMETER) for _, parameters in elements]
    if any(rest.strip() for rest in (others, *(rest for _, rest in inside))):
        raise RowRefused(f"{path} is a turn of tool calls with text that is in no parameter of a call")
    calls = []
    for (name, _), (parameters, _) in zip(elements, inside, strict=True):
        arguments = {key: value.removeprefix("\n").removesuffix("\n") for key, value in parameters}
        calls.append(make_call(name.strip(), arguments, None, path, fields))
    return before or text[:start].rstrip(), calls


def loosely_decoded(text: str) -> Any:
    """Return the value in JSON text, or in Python's form of a list or an object, and any other text as it is."""
    value = decoded(text)
    if isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            return orjson.loads(orjson.dumps(ast.literal_eval(value)))
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            return value
    return value


def decoded(value: Any) -> Any:
    """Return the value in JSON text, as Parquet files store it, and any other value as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return parse_inner(value)
        except ValueError:
            return value
    return value


# The field of an account for tools that are in no row.
ATTACHED = "(tools of the import)"
_SCHEMAS = ("parameters", "input_schema", "inputSchema", "parametersJsonSchema", "parameters_json_schema")
_DECLARATIONS = ("functionDeclarations", "function_declarations")
_NAMED = frozenset(("name", "function", "type", "toolSpec", *_DECLARATIONS))


def read_tools(given: Any, path: str) -> list[Json]:
    """Return the tools of a list, which may be JSON text, as OpenAI, Anthropic, Gemini or MCP write them.

    Raises `RowRefused` for anything but a list of objects.
    """
    if given is None or given == "" or given == []:
        return []
    if isinstance(given, str):
        try:
            given = parse_inner(given)
        except ValueError as error:
            raise RowRefused(f"column {path} is text that is not JSON: {error}") from None
    tools = [_with_type(decoded(tool)) for tool in given] if isinstance(given, list) else [given]
    if any(not isinstance(tool, Mapping) or _NAMED.isdisjoint(tool) for tool in tools):
        raise RowRefused(f"column {path} is not a list of objects")
    return [function for tool in tools for function in _functions(tool)]


def _with_type(tool: Any) -> Any:
    """Return a tool that Gemini runs itself, whose only field names it, with that name as its type."""
    if isinstance(tool, Mapping) and len(tool) == 1 and _NAMED.isdisjoint(tool):
        ((name, inner),) = tool.items()
        return {"type": name, **inner} if isinstance(inner, Mapping) else tool
    return tool


def with_tools(session: AgentSession, tools: Sequence[Json], account: Account) -> AgentSession:
    """Return the session with the tools of its import, if it has none of its own."""
    if not tools or session.tools:
        return session
    account.count(ATTACHED, "tools")
    return replace(session, agent=session.agent | {"tool_definitions": list(tools)})


def _functions(tool: Mapping[str, Any]) -> Iterator[Json]:
    declared = next((tool[key] for key in _DECLARATIONS if isinstance(tool.get(key), list)), None)
    if declared is not None:  # one tool of Gemini has several functions
        for function in declared:
            yield from _functions(function)
    elif isinstance(tool.get("toolSpec"), Mapping):  # of Bedrock
        yield from _functions(tool["toolSpec"])
    elif isinstance(tool.get("function"), Mapping) or "name" not in tool:
        yield dict(tool)
    else:
        named = {key: value for key, value in tool.items() if key not in ("type", *_SCHEMAS)}
        schema = next((tool[key] for key in _SCHEMAS if tool.get(key) is not None), None)
        schema = schema["json"] if isinstance(schema, Mapping) and schema.keys() == {"json"} else schema
        yield {"type": "function", "function": named if schema is None else {**named, "parameters": schema}}
