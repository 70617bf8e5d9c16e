"""The form of a server's actions, from its JSON schema: how a model is asked for one, and how its reply is read."""

import json
import math
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import cast

from sandbox.agent.json_schema import Schema, alternatives, example, list_in, mapping_in, plain_schema
from sandbox.agent.tools import RequestedCall, Tool
from sandbox.errors import UnknownAction

COMMAND_FIELDS = ("command", "action", "message", "text")
# Parts of names of fields that take a command, and of fields that take code.
COMMANDS = frozenset({*COMMAND_FIELDS, "commands", "cmd", "cli", "shell", "bash", "script", "terminal", "input"})
CODE = frozenset({"code", "source", "program", "snippet", "python", "cell", "sql"})
LEGAL = re.compile(r"(legal|valid|available|possible|allowed)_(action|move|command|choice)s?(_ids)?$", re.IGNORECASE)
OPENING, CLOSING = re.compile(r"[ \t]*(`{3,}|~{3,})[^`]*"), re.compile(r"[ \t]*(`{3,}|~{3,})[ \t\r]*")
NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?")
MENTIONED = re.compile(rf"(?<![\w.,+-]){NUMBER.pattern}(?![\w,]|\.\w)")
WORD_LENGTH, LONGEST_REPLY, MOST_OBJECTS = 64, 200_000, 20
TRUE, FALSE = ("true", "yes"), ("false", "no")


class ActionKind(StrEnum):
    """`command` is a text that the caller finds in the reply; `tools` are calls of an MCP server's tools."""

    COMMAND = "command"
    TEXT = "text"
    CODE = "code"
    VALUE = "value"
    OBJECT = "object"
    TOOLS = "tools"


@dataclass(frozen=True, slots=True)
class ActionForm:
    """`fields` are the schemas of the fields that an agent sets, without references; `main` is the field that a reply
    sets that is no object. `constants` are sent with every action. `about` is the server's description of its actions,
    `whole` its schema if that is no list of fields."""

    kind: ActionKind
    fields: Mapping[str, Schema]
    required: tuple[str, ...] = ()
    constants: Mapping[str, object] = field(default_factory=dict)
    main: str = ""
    about: str = ""
    whole: Schema = field(default_factory=dict)

    def for_commands(self, *, is_named: bool) -> "ActionForm":
        """The same server's form for an agent of shell commands. Raise `UnknownAction` if no field takes one. A person
        who named the field knows that it does."""
        needed = [name for name in self.required if name != self.main] if self.main else list(self.required)
        texts = [name for name, field in self.fields.items() if _takes(field) == "text"]
        named = self.main or (texts[0] if len(texts) == 1 and not needed else "")
        if needed or not named:
            takes = ", ".join(f"`{name}` ({_takes(field)})" for name, field in self.fields.items()) or "tool calls"
            raise UnknownAction(f"its actions have {takes}, and no field that a command alone could be meant for")
        if named not in texts or not (is_named or _is_for_commands(named, self.fields[named])):
            raise UnknownAction(
                f"the field `{named}` of its actions takes {_takes(self.fields[named], named)}, no command"
            )
        return replace(self, kind=ActionKind.COMMAND, main=named)

    def read(self, reply: str) -> str | None:
        """Return the action in a model's reply as text, or None if the reply has none of this form."""
        text = reply.strip()[:LONGEST_REPLY]
        if self.kind == ActionKind.COMMAND:
            return text or None
        if found := self._object(text):
            return json.dumps(found, ensure_ascii=False)
        if self.kind in (ActionKind.OBJECT, ActionKind.TOOLS):
            return None
        _, opening, last = text.rpartition(f"</{self.main}>")[0].rpartition(f"<{self.main}>")
        text = last.strip() if opening else text
        blocks, outside = _fenced(text)
        if self.kind == ActionKind.VALUE:
            value = value_in(blocks[0] if blocks else text, self.fields[self.main])
            return None if value is None else value if isinstance(value, str) else json.dumps(value)
        if blocks and (self.kind == ActionKind.CODE or not outside.strip()):
            return "\n".join(block.rstrip("\n") for block in blocks) or None
        return text or None

    def payload(self, action: str) -> dict[str, object]:
        """Return the server's action for an action that `read` returned."""
        if self.kind == ActionKind.COMMAND:
            return {**self.constants, self.main: action}
        if found := self._fitting(_json(action)):
            return {**self.constants, **found}
        value = value_in(action, self.fields[self.main]) if self.kind == ActionKind.VALUE else action
        return {**self.constants, self.main: value}

    def instructions(self, tools: Sequence[Tool] = ()) -> str:
        """Return the text that tells a model the form of its replies."""
        if self.kind == ActionKind.COMMAND:
            return ""
        if self.kind == ActionKind.TOOLS:
            lines = [
                f"- {tool.name}: {tool.description.strip()}\n  arguments: {_dumps(tool.parameters)}" for tool in tools
            ]
            example = '{"tool_name": "…", "arguments": {…}}'
            return "\n".join(
                [f"Reply with one call of a tool and nothing else, as JSON: {example}", "The tools:", *lines]
            )
        whole = f"JSON object, by this schema:\n{_dumps(self._schema())}"
        about = [f"The environment says of its actions: {self.about}"] if self.about else []
        if self.kind == ActionKind.OBJECT:
            return "\n".join([*about, f"Reply with one action and nothing else, as a {whole}"])
        schema = self.fields[self.main]
        meaning = f" ({schema['description']})" if schema.get("description") else ""
        asked = f"Reply with {_takes(schema, self.main)} and nothing else. It is the action's `{self.main}`{meaning}."
        others = [f"To set other fields too, reply with a {whole}"] if len(self.fields) > 1 else []
        return "\n".join([*about, asked, *others])

    def trials(self, seen: Mapping[str, object]) -> Iterator[dict[str, object]]:
        """Actions that a working server executes: a legal one of the observation, then one made from the schema."""
        legal = [value[0] for name, value in seen.items() if LEGAL.search(name) and isinstance(value, list) and value]
        if self.main:
            yield from ({**self.constants, self.main: value} for value in legal)
        if self.kind == ActionKind.TOOLS:
            yield {"type": "list_tools"}
        else:
            names = self.required or ((self.main,) if self.main else ())
            given = (
                mapping_in(example(self.whole)) if self.whole else {name: example(self.fields[name]) for name in names}
            )
            yield {**self.constants, **given}

    def _object(self, text: str) -> dict[str, object] | None:
        """The first JSON object in the text that has this form."""
        whole = self._fitting(_json(text))
        if whole or self.kind == ActionKind.CODE:
            blocks, _ = _fenced(text)
            return whole or next(filter(None, (self._fitting(_json(block)) for block in blocks)), None)
        return next(filter(None, map(self._fitting, _objects(text))), None)

    def _fitting(self, value: object) -> dict[str, object] | None:
        """`value` as the fields of an action, if it has names of these fields and all that are required. A tool call
        may also have the names that model APIs use."""
        if not isinstance(value, dict):
            return None
        found = {name: inner for name, inner in value.items() if name not in self.constants}
        if self.kind == ActionKind.TOOLS:
            return _tool_call(found)
        fits = found and found.keys() <= self.fields.keys() and found.keys() >= set(self.required)
        return found if fits else None

    def _schema(self) -> Schema:
        return self.whole or {"type": "object", "properties": self.fields, "required": list(self.required)}


def _tool_call(found: Mapping[str, object]) -> dict[str, object] | None:
    """A call of a tool, under any of the names that model APIs use. An object with other fields than these and without
    arguments is none: they would be lost."""
    if isinstance(inner := found.get("function"), Mapping):
        return _tool_call(inner)
    name = next((key for key in ("tool_name", "name", "tool") if isinstance(found.get(key), str)), "")
    given = next((key for key in ("arguments", "parameters", "args", "input") if key in found), "")
    if not name or not (given or found.keys() <= {name}):
        return None
    arguments = found.get(given)
    parsed = _json(arguments) if isinstance(arguments, str) else {} if arguments is None else arguments
    return {"tool_name": found[name], "arguments": parsed} if isinstance(parsed, dict) else None


def called(calls: Sequence[RequestedCall]) -> str:
    """Return the first of a reply's calls as the text of an action of `ActionKind.TOOLS`; empty without one. An
    episode takes one action in a turn."""
    return json.dumps({"tool_name": calls[0].name, "arguments": calls[0].arguments}) if calls else ""


def form_of(schema: Schema, named: str = "") -> ActionForm:
    """Return the form of a server's actions. `named` is the field that a person named. Raise `UnknownAction` if there
    is no such field."""
    whole = plain_schema(schema)
    every = _properties(whole)
    if kinds := [one for one in alternatives(whole) if _properties(one)]:
        calls = [(one, parts) for one in kinds if (parts := _parts_of(one))[1]]
        if len(calls) == 1 and _calls_tools(*calls[0][1][1:]):
            return form_of(calls[0][0], named)
        for one in kinds:
            every |= _properties(one)
        return ActionForm(ActionKind.OBJECT, every, whole=whole)
    constants, fields, required = _parts_of(whole)
    about = " ".join(str(schema.get("description") or "").split())
    if named:
        if named not in fields:
            raise UnknownAction(f"its actions have no field `{named}`; they have {', '.join(fields) or 'none'}")
        return ActionForm(_kind_of(named, fields[named]), fields, required, constants, named, about)
    if not fields or _calls_tools(fields, required):
        return ActionForm(ActionKind.TOOLS, fields, required, constants if fields else {"type": "call_tool"})
    codes = tuple(name for name in fields if _kind_of(name, fields[name]) == ActionKind.CODE)
    single = required or (tuple(fields) if len(fields) == 1 else codes)
    single = single if len(single) == 1 else ()
    # One choice beside other fields says which of these are read, so it is no action alone.
    if not single or (len(fields) > 1 and "enum" in fields[single[0]]):
        return ActionForm(ActionKind.OBJECT, fields, required, constants, about=about)
    return ActionForm(_kind_of(single[0], fields[single[0]]), fields, required, constants, single[0], about)


def _parts_of(schema: Schema) -> tuple[dict[str, object], dict[str, Schema], tuple[str, ...]]:
    """The constants of an action, the fields that an agent sets, and those of them that it has to."""
    every = _properties(schema)
    constants = {name: value["const"] for name, value in every.items() if "const" in value}
    fields = {name: value for name, value in every.items() if name not in constants}
    stated = list_in(schema.get("required"))
    return constants, fields, tuple(name for name in fields if name in stated)


def _calls_tools(fields: Mapping[str, Schema], required: Sequence[str]) -> bool:
    return "arguments" in fields and {"tool_name"} <= set(required) <= {"tool_name", "arguments"}


def _properties(schema: Schema) -> dict[str, Schema]:
    """The fields of an action, without `metadata`: every OpenEnv action has it, for none of an agent's purposes."""
    found = mapping_in(schema.get("properties"))
    return {name: mapping_in(value) for name, value in found.items() if name != "metadata"}


def unknown_form(named: str = "") -> ActionForm:
    """The form of a server that has no schema."""
    main = named or COMMAND_FIELDS[0]
    return ActionForm(ActionKind.TEXT, {main: {"type": "string"}}, (main,), main=main)


def value_in(reply: str, field: Schema) -> object:
    """Return the value of this field that a reply gives, or None. A word that is no such value is returned as it is:
    the server refuses it, and says why."""
    text = reply.strip().strip("`'\"*")
    text = text.rstrip(".!").strip() or text
    last = text.splitlines()[-1].strip() if text else ""
    for one in (text, last):
        if (value := _value(one, field)) is not None:
            return value
    for one in (text, last):
        if len(mentioned := _mentioned(one, field)) == 1:
            return mentioned[0]
    return text if text and len(text) <= WORD_LENGTH and not re.search(r"\s", text) else None


def _value(text: str, field: Schema) -> object:
    choices, kind = field.get("enum"), field.get("type")
    if options := alternatives(field):
        return next((value for option in options if (value := _value(text, option)) is not None), None)
    if isinstance(choices, list):
        same = [choice for choice in choices if str(choice) == text]
        return next(iter(same or [choice for choice in choices if str(choice).casefold() == text.casefold()]), None)
    if kind == "boolean":
        return True if text.casefold() in TRUE else False if text.casefold() in FALSE else None
    if kind in ("integer", "number"):
        if not NUMBER.fullmatch(text):
            return None
        number = float(text)
        if not math.isfinite(number):
            return None
        return number if re.search(r"[.eE]", text) else int(text)
    found = _json(text)
    return found if isinstance(found, dict | list) else None


def _fenced(text: str) -> tuple[list[str], str]:
    """The closed fenced blocks of a reply, and the text outside of them. A fence that is never closed is text."""
    lines = text.split("\n")
    closings: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        if closing := CLOSING.fullmatch(line):
            closings.setdefault(closing[1], []).append(number)
    blocks, outside = list[str](), list[str]()
    after = 0
    for number, line in enumerate(lines):
        if number < after:
            continue
        opening = OPENING.fullmatch(line)
        ends = closings.get(opening[1], []) if opening else []
        if (place := bisect_right(ends, number)) < len(ends):
            blocks.append("\n".join(lines[number + 1 : ends[place]]) + "\n")
            after = ends[place] + 1
        else:
            outside.append(line)
    return blocks, "\n".join(outside)


def _documents(text: str) -> list[object]:
    """The JSON objects and lists in the text that are not part of another one."""
    found, end = list[object](), 0
    for start in [match.start() for match in re.finditer(r"[{\[]", text)][:MOST_OBJECTS]:
        if start >= end:
            with suppress(ValueError, RecursionError):
                value, end = DECODER.raw_decode(text, start)
                found.append(value)
    return found


def _objects(text: str) -> Iterator[object]:
    """The JSON objects in the text, and those just inside an object or a list."""
    for document in _documents(text):
        yield document
        yield from document.values() if isinstance(document, dict) else cast("list[object]", document)


def _mentioned(text: str, field: Schema) -> list[object]:
    """The different values of the field that are words of the text."""
    choices, kind = field.get("enum"), field.get("type")
    if options := alternatives(field):
        return next(filter(None, (_mentioned(text, option) for option in options)), [])
    if isinstance(choices, list):
        said = " ".join(["", *re.findall(r"[\w-]+", text), ""])
        return [choice for choice in choices if f" {choice} " in said]
    if kind in ("integer", "number"):
        return list(dict.fromkeys(_value(found[0], field) for found in MENTIONED.finditer(text)))
    if kind == "boolean":
        words = set(re.findall(r"\w+", text.casefold()))
        return [value for value, word in ((True, TRUE[0]), (False, FALSE[0])) if word in words]
    return _documents(text)[:1]


def _kind_of(name: str, field: Schema) -> ActionKind:
    if _takes(field) != "text":
        return ActionKind.VALUE
    return ActionKind.CODE if _parts(name) & CODE else ActionKind.TEXT


def _takes(field: Schema, name: str = "") -> str:
    """Describe the field's values in words; with its name, also the kind of text."""
    choices, kind = field.get("enum"), field.get("type", "string")
    if isinstance(choices, list):
        return f"one of {', '.join(map(str, choices))}"
    if kinds := list(dict.fromkeys(_takes(one) for one in alternatives(field))):
        return "text" if "text" in kinds else " or ".join(kinds)
    if kind == "string":
        is_code = _parts(name) & CODE
        return ("code in a fenced block" if is_code else "a text") if name else "text"
    known = {"integer": "a whole number", "number": "a number", "boolean": "true or false", "array": "a JSON list"}
    return known.get(str(kind), "a JSON object")


def _is_for_commands(name: str, field: Schema) -> bool:
    return bool(_parts(name) & COMMANDS) or "command" in str(field.get("description", "")).casefold()


def _parts(name: str) -> set[str]:
    return set(name.casefold().split("_"))


def _json(text: object) -> object:
    try:
        return DECODER.decode(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None


def _finite(text: str) -> float:
    """A number of JSON. Python reads others too, such as NaN and 1e999, which a server cannot."""
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text} is no number of JSON")
    return number


DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)


def _dumps(schema: object) -> str:
    return json.dumps(schema, ensure_ascii=False)
