"""Actions by schemas that servers may have, and replies that models may give."""

from typing import Any

import pytest

from sandbox.agent.action_form import ActionForm, ActionKind, form_of
from sandbox.errors import UnknownAction


def schema(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    beside = {"metadata": {"type": "object", "default": {}}}
    return {"type": "object", "properties": {**beside, **properties}, "required": list(required)}


TEXT = {"type": "string"}
NUMBER = {"type": "number"}


def payload(form: ActionForm, reply: str) -> dict[str, Any] | None:
    action = form.read(reply)
    return None if action is None else form.payload(action)


@pytest.mark.parametrize(
    ("field", "reply", "value"),
    [
        ({"type": "integer"}, "3", 3),
        ({"type": "integer"}, "**-2**", -2),
        ({"type": "integer"}, "Column 4 is free.", 4),
        ({"type": "integer"}, "4 or 5", None),
        ({"type": "integer"}, "```\n7\n```", 7),
        ({"type": "integer"}, '{"it": 6}', 6),
        (NUMBER, "0.25", 0.25),
        ({"type": "boolean"}, "Yes", True),
        ({"type": "boolean"}, "false", False),
        ({"enum": [0, 1, 2]}, "0", 0),
        ({"enum": ["UP", "DOWN"]}, "up", "UP"),
        ({"enum": ["UP", "DOWN"]}, "Not UP but DOWN", None),
        ({"enum": ["UP", "DOWN"]}, "I must go there.\nDOWN", "DOWN"),
        ({"enum": ["UP", "DOWN"]}, "sideways", "sideways"),  # the server lists the allowed values
        ({"anyOf": [{"enum": ["UP", "DOWN"]}, {"type": "null"}]}, "UP", "UP"),
        ({"type": "array", "items": NUMBER}, "```json\n[0.5, 1]\n```", [0.5, 1]),
    ],
)
def test_one_value(field: dict[str, Any], reply: str, value: object) -> None:
    form = form_of(schema(("it",), it=field))
    assert form.kind == ActionKind.VALUE
    assert payload(form, reply) == (None if value is None else {"it": value})


def test_optional_fields_may_be_set_by_an_object() -> None:
    form = form_of(schema(("action_id",), action_id={"type": "integer"}, game={**TEXT, "default": "pong"}))
    assert payload(form, "2") == {"action_id": 2}
    assert payload(form, '{"action_id": 2, "game": "catch"}') == {"action_id": 2, "game": "catch"}
    assert "To set other fields too" in form.instructions()


def test_a_choice_that_says_which_fields_are_read_is_no_action_alone() -> None:
    kinds = {"enum": ["ListToolsAction", "ToolCallAction"]}
    form = form_of(schema(("action_type",), action_type=kinds, tool_name=TEXT, arguments={"type": "object"}))
    assert form.kind == ActionKind.OBJECT and payload(form, "ToolCallAction") is None


def test_constants_are_sent_and_not_asked_for() -> None:
    form = form_of(schema(("type", "move"), type={"const": "play", "type": "string"}, move=TEXT))
    assert payload(form, "e2e4") == {"type": "play", "move": "e2e4"}


def test_alternatives_are_asked_as_one_object() -> None:
    say = schema(("kind", "text"), kind={"const": "say"}, text=TEXT)
    go = schema(("kind", "to"), kind={"const": "go"}, to={"$ref": "#/$defs/To"})
    form = form_of({"oneOf": [say, go], "$defs": {"To": {"enum": ["N", "S"]}}})
    assert payload(form, '{"kind": "go", "to": "N"}') == {"kind": "go", "to": "N"}
    assert payload(form, "go N") is None
    assert "oneOf" in form.instructions() and '"N"' in form.instructions()


def test_a_schema_that_refers_to_itself_is_read() -> None:
    """Thirty times at each level, eight levels deep."""
    node = {"type": "object", "properties": {f"next{n}": {"$ref": "#/$defs/Node"} for n in range(30)}}
    form = form_of({**schema(("tree",), tree={"$ref": "#/$defs/Node"}), "$defs": {"Node": node}})
    assert payload(form, '{"tree": {"next1": {}}}') == {"tree": {"next1": {}}}


def test_an_answer_that_is_json_stays_a_text() -> None:
    form = form_of(schema(("answer",), answer=TEXT))
    assert payload(form, '{"a": [1]}') == {"answer": '{"a": [1]}'}


@pytest.mark.parametrize("name", ["command", "cmd", "bash_command", "input", "message"])
def test_a_text_for_commands_takes_commands(name: str) -> None:
    form = form_of(schema((name,), **{name: TEXT})).for_commands(is_named=False)
    assert form.payload('{"not": "read as an object"}') == {name: '{"not": "read as an object"}'}


def test_only_the_named_field_of_several_texts_takes_commands() -> None:
    given = schema(action_type={**TEXT, "default": "list"}, repo=TEXT, command=TEXT)
    with pytest.raises(UnknownAction, match="`action_type`"):
        form_of(given).for_commands(is_named=False)
    assert form_of(given, "command").for_commands(is_named=True).payload("ls") == {"command": "ls"}
    with pytest.raises(UnknownAction, match="no field `cmd`"):
        form_of(given, "cmd")
