"""Forms of actions by schemas in any spelling, and the replies that are read by them."""

import time
from typing import Any

import pytest

from sandbox.agent.action_form import ActionKind, form_of
from sandbox.agent.tools import tools_in

DOWN, UP = {"const": "down"}, {"const": "up", "title": "Up"}
NUMBER = {"type": "integer"}


def action(reply: str, field: dict[str, Any], **document: Any) -> object:
    """The action that a reply is read as, by a schema with one required field."""
    form = form_of({"type": "object", "properties": {"it": field}, "required": ["it"], **document})
    found = form.read(reply)
    return None if found is None else form.payload(found)["it"]


@pytest.mark.parametrize(
    ("field", "reply", "value"),
    [
        ({"type": ["integer", "null"]}, "I take 3.", 3),
        ({"oneOf": [UP, DOWN]}, "go up", "up"),
        ({"anyOf": [{"enum": ["up"]}, {"enum": ["down"]}, {"type": "null"}]}, "Down", "down"),
        ({"allOf": [{"$ref": "#/$defs/Way"}, {"description": "the way"}]}, "go up", "up"),
        ({"$ref": "#/components/schemas/Way"}, "go up", "up"),
        ({"$ref": "#/properties/it/x-forms/a~1b"}, "go up", "up"),
        ({"anyOf": [{"type": "array", "items": NUMBER}, {"type": "object"}]}, "My path: [1, 2].", [1, 2]),
        ({"type": "array", "items": NUMBER}, "The path is\n[1,\n 2]\nas asked", [1, 2]),
        ({"oneOf": [{"type": "object", "properties": {"n": NUMBER}}, {"type": "object"}]}, 'So {"n": 1}.', {"n": 1}),
        ({"enum": ["ROCK", "PAPER"]}, "**Paper!**", "PAPER"),
        ({"enum": [".", "!"]}, "!", "!"),
        ({"type": "number"}, "1e-1", 0.1),
        ({"type": "number"}, "I say -.5", -0.5),
        ({"type": "number"}, "between 3-1 and 4", None),
        ({"type": "boolean"}, "I say: true", True),
        ({"type": "integer"}, "9" * 400, None),
        ({"anyOf": [NUMBER, {"type": "boolean"}]}, "3", 3),
        ({"anyOf": [NUMBER, {"type": "array", "items": NUMBER}]}, "I take 3.", 3),
        ({"oneOf": [{"enum": ["up"]}, NUMBER, {"type": "null"}]}, "UP", "up"),
        (NUMBER, "Walls are at 0 and 1.\nAction: 2", 2),
        (NUMBER, "Not 0 and not 1.\n<it>2</it>", 2),
        ({"enum": ["turn left", "turn right"]}, "I turn left now", "turn left"),
        ({"$ref": "#/$defs/A%20way"}, "up", "up"),
        ({"type": "array"}, "[1e999]", "[1e999]"),
        ({"type": "array"}, "[NaN]", "[NaN]"),
    ],
)
def test_a_value_is_read_by_any_spelling_of_its_schema(field: dict[str, Any], reply: str, value: object) -> None:
    way = {"type": "string", "enum": ["up", "down"]}
    if "x-forms" in str(field):
        field = {"$ref": "#/x-forms/a~1b"}
    more = {"$defs": {"Way": way, "A way": way}, "components": {"schemas": {"Way": way}}, "x-forms": {"a/b": way}}
    assert action(reply, field, **more) == value


def test_fields_may_be_in_parts_of_the_schema() -> None:
    one = {"properties": {"row": NUMBER}, "required": ["row"]}
    whole = {"$defs": {"Base": one}, "allOf": [{"$ref": "#/$defs/Base"}, {"properties": {"col": NUMBER}}]}
    form = form_of(whole)
    assert (form.kind, set(form.fields), form.required) == (ActionKind.VALUE, {"row", "col"}, ("row",))
    either = {"properties": {"a": NUMBER, "b": NUMBER}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}
    assert form_of(either).read('I set {"b": 2}') == '{"b": 2}'
    kinds = [{"properties": {"type": {"const": kind}, "n": NUMBER}, "required": ["type", "n"]} for kind in ("x", "y")]
    union = form_of({"oneOf": kinds})
    assert union.read('{"type": "y", "n": 1}') == '{"type": "y", "n": 1}'
    assert list(union.trials({})) == [{"type": "x", "n": 0}]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ({"type": "integer", "exclusiveMinimum": 0}, 1),
        ({"type": "number", "exclusiveMinimum": 0, "maximum": 1}, 0.5),
        ({"type": "integer", "maximum": -3}, -4),
        ({"type": "array", "items": NUMBER, "minItems": 2}, [0, 0]),
        ({"anyOf": [{"type": "boolean"}, NUMBER]}, False),
        ({"type": "array", "prefixItems": [NUMBER, {"enum": ["up"]}], "minItems": 2}, [0, "up"]),
    ],
)
def test_a_trial_stays_within_the_limits_of_the_schema(field: dict[str, Any], value: object) -> None:
    """Otherwise a working server would refuse it, and the model's error would count as the server's."""
    form = form_of({"properties": {"it": field}, "required": ["it"]})
    assert list(form.trials({})) == [{"it": value}]


@pytest.mark.parametrize(
    "odd",
    [
        {"properties": {"it": NUMBER}, "required": [["it"], {}, 3]},
        {"properties": ["it"]},
        {"properties": {"it": True}},
        {"$ref": "#"},
        {"$ref": "#/$defs/none"},
        {"allOf": "x", "anyOf": [7], "type": [], "enum": [None], "description": [1]},
        {"properties": {"it": {"enum": [], "type": [None, {}]}}},
    ],
)
def test_an_odd_schema_raises_nothing(odd: dict[str, Any]) -> None:
    form = form_of(odd)
    form.instructions()
    form.read('{"it": 1}')
    list(form.trials({}))


@pytest.mark.parametrize(
    ("reply", "arguments"),
    [
        ('{"name": "echo", "input": {"m": 1}}', {"m": 1}),
        ('{"type": "function", "function": {"name": "echo", "arguments": "{\\"m\\": 1}"}}', {"m": 1}),
        ('[{"name": "echo", "arguments": {"m": 1}}]', {"m": 1}),
        ('{"name": "echo", "arguments": null}', {}),
        ('{"name": "echo"}', {}),
        ('{"tool_name": "echo", "m": 1}', None),
        ('{"name": "echo", "arguments": "{\\"m\\": "}', None),
        ('{"name": "echo", "arguments": [1]}', None),
    ],
)
def test_a_tool_is_never_called_without_the_arguments_that_were_given(reply: str, arguments: object) -> None:
    form = form_of({"properties": {}})
    found = form.read(reply)
    assert (None if found is None else form.payload(found)["arguments"]) == arguments


TEXT, LAX = {"type": "string"}, {"type": "object", "additionalProperties": True}
LIST = {"properties": {"type": {"const": "list_tools"}}}
CALLED: dict[str, Any] = {"type": {"const": "call_tool"}, "tool_name": TEXT, "arguments": LAX}
CALL = {"properties": CALLED, "required": ["tool_name"]}


@pytest.mark.parametrize(
    "schema",
    [
        {"$defs": {"L": LIST, "C": CALL}, "oneOf": [{"$ref": "#/$defs/L"}, {"$ref": "#/$defs/C"}]},
        {**CALL, "required": ["tool_name", "arguments"]},
        {"properties": {**CALLED, "timeout": NUMBER}, "required": ["tool_name", "type"]},
    ],
)
def test_calls_of_tools_are_known_by_any_schema(schema: dict[str, Any]) -> None:
    form = form_of(schema)
    call = form.read('{"name": "look", "arguments": {"id": 7}}')
    assert form.kind == ActionKind.TOOLS and call is not None
    assert form.payload(call) == {"type": "call_tool", "tool_name": "look", "arguments": {"id": 7}}


def test_a_call_has_no_field_that_the_schema_does_not_have() -> None:
    form = form_of({"properties": {"tool_name": TEXT, "arguments": LAX}, "required": ["tool_name"]})
    assert form.payload('{"tool_name": "look", "arguments": {}}') == {"tool_name": "look", "arguments": {}}


@pytest.mark.parametrize("name", ["input_schema", "inputSchema", "parameters"])
def test_tools_are_listed_in_any_spelling(name: str) -> None:
    schema = {"type": "object", "properties": {"id": NUMBER}, "required": ["id"]}
    tool = {"name": "look", "description": None, name: schema}
    (plain,), (wrapped,) = tools_in([tool, {"name": ""}, "x"]), tools_in([{"type": "function", "function": tool}])
    assert plain == wrapped and plain.parameters == schema
    assert tools_in({"look": tool}) == []


def test_one_field_of_code_is_set_by_a_fence_though_none_is_required() -> None:
    form = form_of({"properties": {"code": TEXT, "is_final": {"type": "boolean"}, "final_answer": TEXT}})
    assert form.read("I run\n```python\nprint(1)\n```") == "print(1)"
    assert form.payload(form.read('{"is_final": true}') or "") == {"is_final": True}


def test_an_object_in_a_sentence_sets_a_text() -> None:
    form = form_of({"properties": {"action": TEXT, "x": NUMBER, "y": NUMBER}, "required": ["action"]})
    assert form.payload(form.read('So: {"action": "water", "x": 1}.') or "") == {"action": "water", "x": 1}
    assert form.read("wait") == "wait"


@pytest.mark.parametrize("kind", [{"type": "string"}, NUMBER, {"type": "array"}])
@pytest.mark.parametrize("part", ["```a\n", "~~~x\n", "<code>", '{"', "[", "1 "])
def test_a_long_reply_is_read_soon(kind: dict[str, Any], part: str) -> None:
    """A worker reads the replies of all its runs in one thread."""
    form = form_of({"properties": {"code": kind}, "required": ["code"]})
    began = time.process_time()
    form.read(part * (100_000 // len(part)))
    assert time.process_time() - began < 2


def test_a_block_ends_at_its_own_fence() -> None:
    form = form_of({"properties": {"code": {"type": "string"}}, "required": ["code"]})
    assert form.read("I run\n~~~\nnever closed\n````py\n```\nx\n```\n````\nand\n```\ny\n```") == "```\nx\n```\ny"
    assert form.read("<code>a</code> no, <code> b </code> it is") == "b"
