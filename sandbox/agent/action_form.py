"""The form of a server's actions, from its JSON schema: how a model is asked for one, and how its reply is read."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import cast

from sandbox.errors import UnknownAction

Schema = Mapping[str, object]
COMMAND_FIELDS = ("command", "action", "message", "text")
# Parts of names of fields that take a command, and of fields that take code.
COMMANDS = frozenset({*COMMAND_FIELDS, "commands", "cmd", "cli", "shell", "bash", "script", "terminal", "input"})
CODE = frozenset({"code", "source", "program", "snippet", "python", "cell", "sql"})
LEGAL = re.compile(r"(legal|valid|available|possible|allowed)_(action|move|command|choice)s?(_ids)?$", re.IGNORECASE)
FENCED = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n`]*\n(.*?)^[ \t]*\1[ \t]*$", re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
WORD_LENGTH, LONGEST_REPLY, MOST_OBJECTS, MOST_PARTS, DEEPEST = 64, 200_000, 20, 5_000, 8
TRUE, FALSE = ("true", "yes"), ("false", "no")


class Kind(StrEnum):
    """`command` is a text that the caller finds in the reply; `tools` are calls of an MCP server's tools."""

    COMMAND = "command"
    TEXT = "text"
    CODE = "code"
    VALUE = "value"
    OBJECT = "object"
    TOOLS = "tools"


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool of an MCP server, with the JSON schema of its arguments."""

    name: str
    description: str
    arguments: Schema


@dataclass(frozen=True, slots=True)
class ActionForm:
    """`fields` are the schemas of the fields that an agent sets, without references; `main` is the field that a reply
    sets that is no object. `constants` are sent with every action. `about` is the server's description of its actions,
    `whole` its schema if that is no list of fields."""

    kind: Kind
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
        return replace(self, kind=Kind.COMMAND, main=named)

    def read(self, reply: str) -> str | None:
        """Return the action in a model's reply as text, or None if the reply has none of this form."""
        text = reply.strip()[:LONGEST_REPLY]
        if self.kind == Kind.COMMAND:
            return text or None
        if found := self._object(text):
            return json.dumps(found, ensure_ascii=False)
        if self.kind in (Kind.OBJECT, Kind.TOOLS):
            return None
        if self.kind == Kind.VALUE:
            fenced = FENCED.search(text)
            value = value_in(fenced[2] if fenced else text, self.fields[self.main])
            return None if value is None else value if isinstance(value, str) else json.dumps(value)
        if tagged := re.findall(rf"<{re.escape(self.main)}>(.*?)</{re.escape(self.main)}>", text, re.DOTALL):
            text = str(tagged[-1]).strip()
        blocks = [found[2] for found in FENCED.finditer(text)]
        if blocks and (self.kind == Kind.CODE or FENCED.sub("", text).strip() == ""):
            return "\n".join(block.rstrip("\n") for block in blocks) or None
        return text or None

    def payload(self, action: str) -> dict[str, object]:
        """Return the server's action for an action that `read` returned."""
        if self.kind == Kind.COMMAND:
            return {**self.constants, self.main: action}
        if found := self._fitting(_json(action)):
            return {**self.constants, **found}
        value = value_in(action, self.fields[self.main]) if self.kind == Kind.VALUE else action
        return {**self.constants, self.main: value}

    def instructions(self, tools: Sequence[Tool] = ()) -> str:
        """Return the text that tells a model the form of its replies."""
        if self.kind == Kind.COMMAND:
            return ""
        if self.kind == Kind.TOOLS:
            lines = [
                f"- {tool.name}: {tool.description.strip()}\n  arguments: {_dumps(tool.arguments)}" for tool in tools
            ]
            example = '{"tool_name": "…", "arguments": {…}}'
            return "\n".join(
                [f"Reply with one call of a tool and nothing else, as JSON: {example}", "The tools:", *lines]
            )
        whole = f"JSON object, by this schema:\n{_dumps(self._schema())}"
        about = [f"The environment says of its actions: {self.about}"] if self.about else []
        if self.kind == Kind.OBJECT:
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
        if self.kind == Kind.TOOLS:
            yield {"type": "list_tools"}
        else:
            names = self.required or ((self.main,) if self.main else ())
            yield {**self.constants, **{name: _example(self.fields[name]) for name in names}}

    def _object(self, text: str) -> dict[str, object] | None:
        """The first JSON object in the text that has this form."""
        whole = self._fitting(_json(text))
        if whole or self.kind in (Kind.TEXT, Kind.CODE):
            return whole or next(
                filter(None, (self._fitting(_json(found[2])) for found in FENCED.finditer(text))), None
            )
        decoder = json.JSONDecoder()
        for start in [found.start() for found in re.finditer(r"\{", text)][:MOST_OBJECTS]:
            try:
                value, _ = decoder.raw_decode(text, start)
            except (ValueError, RecursionError):
                continue
            if found := self._fitting(value):
                return found
        return None

    def _fitting(self, value: object) -> dict[str, object] | None:
        """`value` as the fields of an action, if it has names of these fields and all that are required. A tool call
        may also have the names that model APIs use."""
        if not isinstance(value, dict):
            return None
        found = {name: inner for name, inner in value.items() if name not in self.constants}
        if self.kind == Kind.TOOLS:
            name = found.get("tool_name") or found.get("name") or found.get("tool")
            given: object = next((found[key] for key in ("arguments", "parameters", "args") if key in found), {})
            parsed = _json(given) if isinstance(given, str) else given
            return {"tool_name": name, "arguments": parsed} if isinstance(name, str) else None
        fits = found and found.keys() <= self.fields.keys() and found.keys() >= set(self.required)
        return found if fits else None

    def _schema(self) -> Schema:
        return self.whole or {"type": "object", "properties": self.fields, "required": list(self.required)}


def form_of(schema: Schema, named: str = "") -> ActionForm:
    """Return the form of a server's actions. `named` is the field that a person named. Raise `UnknownAction` if there
    is no such field."""
    resolver = _Resolver({**_mapping(schema.get("$defs")), **_mapping(schema.get("definitions"))})
    whole = resolver.resolved(schema, DEEPEST)
    if alternatives := next((whole[name] for name in ("oneOf", "anyOf") if isinstance(whole.get(name), list)), None):
        return _one_of([resolver.resolved(_mapping(one), DEEPEST) for one in cast("list[object]", alternatives)])
    every = {name: _mapping(value) for name, value in _mapping(whole.get("properties")).items()}
    every.pop("metadata", None)  # of every OpenEnv action, and for none of an agent's purposes
    constants = {name: value["const"] for name, value in every.items() if "const" in value}
    fields = {name: value for name, value in every.items() if name not in constants}
    stated = whole.get("required")
    required = tuple(name for name in stated if name in fields) if isinstance(stated, list) else ()
    about = " ".join(str(schema.get("description") or "").split())
    if named:
        if named not in fields:
            raise UnknownAction(f"its actions have no field `{named}`; they have {', '.join(fields) or 'none'}")
        return ActionForm(_kind_of(named, fields[named]), fields, required, constants, named, about)
    if not fields or (required == ("tool_name",) and "arguments" in fields):
        return ActionForm(Kind.TOOLS, fields, required, {"type": "call_tool"})
    single = required if len(required) == 1 else tuple(fields) if len(fields) == 1 else ()
    # One choice beside other fields says which of these are read, so it is no action alone.
    if not single or (len(fields) > 1 and "enum" in fields[single[0]]):
        return ActionForm(Kind.OBJECT, fields, required, constants, about=about)
    return ActionForm(_kind_of(single[0], fields[single[0]]), fields, required, constants, single[0], about)


def _one_of(kinds: Sequence[Schema]) -> ActionForm:
    """The form of a server that takes one of several kinds of actions: an object with the fields of one of them."""
    fields: dict[str, Schema] = {}
    for kind in kinds:
        fields |= {name: _mapping(value) for name, value in _mapping(kind.get("properties")).items()}
    fields.pop("metadata", None)
    return ActionForm(Kind.OBJECT, fields, whole={"oneOf": kinds})


def unknown_form(named: str = "") -> ActionForm:
    """The form of a server that has no schema."""
    main = named or COMMAND_FIELDS[0]
    return ActionForm(Kind.TEXT, {main: {"type": "string"}}, (main,), main=main)


def value_in(reply: str, field: Schema) -> object:
    """Return the value of this field that a reply gives, or None. A word that is no such value is returned as it is:
    the server refuses it, and says why."""
    text = reply.strip().strip("`'\"*").removesuffix(".").strip()
    lines = text.splitlines()
    for one in (text, lines[-1].strip() if lines else ""):
        if (value := _value(one, field)) is not None:
            return value
    mentioned = _mentioned(text, field)
    if len(mentioned) == 1:
        return mentioned[0]
    return text if text and len(text) <= WORD_LENGTH and not re.search(r"\s", text) else None


def _value(text: str, field: Schema) -> object:
    choices, kind = field.get("enum"), field.get("type")
    if isinstance(choices, list):
        same = [choice for choice in choices if str(choice) == text]
        return next(iter(same or [choice for choice in choices if str(choice).casefold() == text.casefold()]), None)
    if kind == "boolean":
        return True if text.casefold() in TRUE else False if text.casefold() in FALSE else None
    if kind in ("integer", "number"):
        if not NUMBER.fullmatch(text):
            return None
        return int(text) if "." not in text else float(text)
    found = _json(text)
    return found if isinstance(found, dict | list) else None


def _mentioned(text: str, field: Schema) -> list[object]:
    """The different values of the field that are words of the text."""
    choices, kind = field.get("enum"), field.get("type")
    if isinstance(choices, list):
        words = set(re.findall(r"[\w-]+", text))
        return [choice for choice in choices if str(choice) in words]
    if kind in ("integer", "number"):
        return list(
            dict.fromkeys(_value(found, field) for found in re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])", text))
        )
    return []


@dataclass(slots=True)
class _Resolver:
    """Replaces references, at most `left` parts of a schema: small schemas can refer to themselves many times."""

    definitions: Mapping[str, object]
    left: int = MOST_PARTS

    def resolved(self, schema: Schema, depth: int) -> Schema:
        """The schema without references, and without the alternative `null`."""
        self.left -= 1
        if not depth or self.left < 0:
            return {}
        reference = schema.get("$ref")
        if isinstance(reference, str):
            target = _mapping(self.definitions.get(reference.rsplit("/", 1)[-1]))
            beside = {name: value for name, value in schema.items() if name != "$ref"}
            return {**self.resolved(target, depth - 1), **beside}
        for name in ("allOf", "anyOf", "oneOf"):
            options = schema.get(name)
            if isinstance(options, list):
                known = [self.resolved(_mapping(option), depth - 1) for option in options]
                known = [option for option in known if option.get("type") != "null"]
                if len(known) == 1:
                    return {**known[0], **{key: value for key, value in schema.items() if key != name}}
        enum = schema.get("enum")
        if isinstance(enum, list) and len(enum) == 1:
            return {**schema, "const": enum[0]}
        found = {name: value for name, value in schema.items() if name not in ("$defs", "definitions")}
        if isinstance(properties := schema.get("properties"), Mapping):
            found["properties"] = {key: self.resolved(_mapping(inner), depth - 1) for key, inner in properties.items()}
        if isinstance(items := schema.get("items"), Mapping):
            found["items"] = self.resolved(items, depth - 1)
        return found


def _kind_of(name: str, field: Schema) -> Kind:
    if _takes(field) != "text":
        return Kind.VALUE
    return Kind.CODE if _parts(name) & CODE else Kind.TEXT


def _takes(field: Schema, name: str = "") -> str:
    """Describe the field's values in words; with its name, also the kind of text."""
    choices, kind = field.get("enum"), field.get("type", "string")
    if isinstance(choices, list):
        return f"one of {', '.join(map(str, choices))}"
    if kind == "string":
        is_code = _parts(name) & CODE
        return ("code in a fenced block" if is_code else "a text") if name else "text"
    known = {"integer": "a whole number", "number": "a number", "boolean": "true or false", "array": "a JSON list"}
    return known.get(str(kind), "a JSON object")


def _is_for_commands(name: str, field: Schema) -> bool:
    return bool(_parts(name) & COMMANDS) or "command" in str(field.get("description", "")).casefold()


def _parts(name: str) -> set[str]:
    return set(name.casefold().split("_"))


def _example(field: Schema) -> object:
    """A value that the schema allows."""
    choices, kind = field.get("enum"), field.get("type", "string")
    if isinstance(choices, list) and choices:
        return choices[0]
    if "default" in field:
        return field["default"]
    if kind == "object":
        names = field.get("required")
        inner = _mapping(field.get("properties"))
        return {name: _example(_mapping(inner.get(name))) for name in names} if isinstance(names, list) else {}
    values = {"integer": field.get("minimum", 0), "number": field.get("minimum", 0.0), "boolean": False, "array": []}
    return values.get(str(kind), "help")


def _json(text: object) -> object:
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None


def _dumps(schema: object) -> str:
    return json.dumps(schema, ensure_ascii=False)


def _mapping(value: object) -> Schema:
    return cast("Schema", value) if isinstance(value, Mapping) else {}
