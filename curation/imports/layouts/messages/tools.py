"""Definitions of tools in every form as OpenAI's functions: `{"type": "function", "function": {…}}`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from curation.imports.layouts.account import Account
from curation.imports.layouts.messages.calls import decoded
from curation.imports.layouts.session import Json, Session
from curation.imports.sources.rows import RowRefused
from curation.web.text.json_size import parse_inner

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
    tools = [decoded(tool) for tool in given] if isinstance(given, list) else [given]
    if any(not isinstance(tool, Mapping) or _NAMED.isdisjoint(tool) for tool in tools):
        raise RowRefused(f"column {path} is not a list of objects")
    return [function for tool in tools for function in _functions(tool)]


def with_tools(session: Session, tools: Sequence[Json], account: Account) -> Session:
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
