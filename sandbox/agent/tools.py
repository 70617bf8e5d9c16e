"""Function tools of an agent in a shell: `bash`, `exit` and `panic`, and the programs that a scenario offers as tools.

Each call is one line for the terminal, so that a session is recorded, replayed and checked as one of typed commands: a
program of the scenario gets its arguments as one JSON object, `lookup '{"id": 7}'`.
"""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sandbox.agent.action import FormatError, checked_command
from sandbox.agent.json_schema import list_in, mapping_in

BASH, EXIT, PANIC = "bash", "exit", "panic"
OWN = frozenset((BASH, EXIT, PANIC))
MOST_CALLS = 16
SCHEMA_NAMES = ("input_schema", "inputSchema", "parameters")


@dataclass(frozen=True, slots=True)
class Tool:
    """A function: `parameters` is the JSON schema of its arguments, an object."""

    name: str
    description: str
    parameters: Mapping[str, object] = field(default_factory=lambda: {"type": "object", "properties": {}})

    def as_function(self) -> dict[str, object]:
        """The tool in OpenAI's form."""
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": dict(self.parameters)},
        }


def tools_in(listed: object) -> list[Tool]:
    """The tools of a list in the form of MCP, of openenv-core or of OpenAI."""
    found = []
    for one in list_in(listed):
        tool = mapping_in(mapping_in(one).get("function") or one)
        schema = next((tool[name] for name in SCHEMA_NAMES if isinstance(tool.get(name), Mapping)), {})
        if isinstance(name := tool.get("name"), str) and name:
            parameters = {"type": "object", "properties": {}, **mapping_in(schema)}
            found.append(Tool(name, str(tool.get("description") or ""), parameters))
    return found


@dataclass(frozen=True, slots=True)
class RequestedCall:
    """One call of a reply. `arguments` is the text of a JSON object, as the endpoint returned it."""

    id: str
    name: str
    arguments: str

    def as_message(self) -> dict[str, object]:
        """The call in OpenAI's form."""
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": self.arguments}}


def _text_argument(name: str, description: str) -> Mapping[str, object]:
    fields = {name: {"type": "string", "description": description}}
    return {"type": "object", "properties": fields, "required": [name], "additionalProperties": False}


SHELL_TOOLS = (
    Tool(
        BASH,
        "Execute one command in the shell and return what the terminal shows. The working directory and exported "
        "variables carry over to the next command.",
        _text_argument("command", "The command, POSIX shell."),
    ),
    Tool(EXIT, "Leave: all that was asked for is done, or nothing is asked for."),
    Tool(PANIC, "Stop: the task cannot be done here.", _text_argument("reason", "Why, in a few words.")),
)


def functions_of(programs: Sequence[Tool]) -> list[dict[str, object]]:
    """The functions that a model may call, in OpenAI's form: those of every shell, then the scenario's."""
    return [tool.as_function() for tool in (*SHELL_TOOLS, *programs)]


def action_of(call: RequestedCall, programs: Sequence[Tool]) -> str:
    """Return the line for the terminal. Raises `FormatError` for an unknown tool, for arguments that are no JSON object
    or lack a required one, and for a command that no terminal takes."""
    known = {tool.name: tool for tool in (*SHELL_TOOLS, *programs)}
    tool = known.get(call.name)
    if tool is None:
        raise FormatError(f"There is no tool `{call.name[:100]}`. The tools are {', '.join(known)}.")
    arguments = _arguments(call)
    required = tool.parameters.get("required")
    missing = [name for name in required if name not in arguments] if isinstance(required, list) else []
    if missing:
        raise FormatError(f"The call of `{tool.name}` lacks {', '.join(f'`{name}`' for name in missing)}.")
    if tool.name not in OWN:
        return checked_command(f"{tool.name} {shlex.quote(json.dumps(arguments, ensure_ascii=False))}")
    if tool.name == EXIT:
        return EXIT
    name = "command" if tool.name == BASH else "reason"
    text = arguments[name]
    if not isinstance(text, str) or not text.strip():
        raise FormatError(f"The `{name}` of a call of `{tool.name}` is a text that is not empty.")
    return checked_command(text.strip() if tool.name == BASH else f"{PANIC} {' '.join(text.split())}")


def _arguments(call: RequestedCall) -> dict[str, object]:
    try:
        found = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError) as error:
        raise FormatError(f"The arguments of `{call.name[:100]}` are no JSON: {error}") from None
    if not isinstance(found, dict):
        raise FormatError(f"The arguments of `{call.name[:100]}` are no JSON object.")
    return found
