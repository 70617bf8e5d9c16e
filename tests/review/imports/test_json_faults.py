"""Values of a key that an object has twice, and numbers that are not finite, are in the account."""

import json
from typing import Any

import pytest

from curation.imports.sources.text_rows import json_faults
from curation.projects.models import Project
from tests.imports.bringing import bring, zipped

pytestmark = pytest.mark.django_db

MESSAGES = (
    '"messages": [{"role": "user", "content": "Go: on."}, {"role": "assistant", "content": "no", "content": "yes"}]'
)
ATIF = (
    '{"schema_version": "ATIF-v1.6", "session_id": "s", "agent": {"name": "a", "name": "b", "version": "1"}, "steps": '
    '[{"step_id": 1, "source": "user", "message": "Go."}, {"step_id": 2, "source": "agent", "message": "Gone."}]}'
)


@pytest.mark.parametrize(
    ("name", "content", "keys"),
    [
        ("rows.jsonl", f'{{{MESSAGES}}}\n{{{MESSAGES}, "id": "2"}}', ["content"]),
        ("rows.json", f'[{{{MESSAGES}, "solved": false, "solved": true}}]', ["content", "solved"]),
        ("row.json", f"{{{MESSAGES}}}", ["content"]),
        ("trajectory.json", ATIF, ["name"]),
        ("trajectories.jsonl", f"{ATIF}\n{ATIF.replace('Gone', 'Went')}", ["name"]),
    ],
)
@pytest.mark.parametrize("is_packed", [False, True])
def test_keys_that_are_there_twice_are_in_the_account(
    project: Project, name: str, content: str, keys: list[str], is_packed: bool
) -> None:
    files = zipped({name: content.encode()}) if is_packed else content.encode()
    run = bring(project, "trajectories", files, name="files.zip" if is_packed else name)
    told = {one["field"]: one["becomes"] for one in run.result["account"]}
    assert [told.get(f"(twice in an object) {key}") for key in keys] == ["ignored but for the last value"] * len(keys)


def test_arguments_of_a_call_are_such_an_object(project: Project) -> None:
    call = {"id": "c1", "function": {"name": "ls", "arguments": '{"path": "a", "path": "b"}'}}
    row: dict[str, Any] = {
        "messages": [{"role": "user", "content": "Go."}, {"role": "assistant", "tool_calls": [call]}]
    }
    run = bring(project, "trajectories", [row])
    assert "(twice in an object) path" in {one["field"] for one in run.result["account"]}


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ('{"a": {"b": 1, "c": 2}, "d": {"b": "x:y"}}', ()),
        ('{"a\\u003a": "\\u003a"}', ()),
        ('{"a" : 1, "\\u0061": 2}', ("a",)),
        ('[{"a": [{"b": 1, "b": 1}], "a": 2, "\\u0000": 1, "\\u0000": 2}]', ("b", "a", "\N{REPLACEMENT CHARACTER}")),
        ('{"n": 1' + "0" * 5000 + ', "n": 1.5}', ("n",)),
    ],
)
def test_escapes_and_equal_keys_of_other_objects_are_not_mistaken(text: str, keys: tuple[str, ...]) -> None:
    found = json_faults(text.encode(), json.loads(text, parse_int=str, parse_float=str))
    assert [field.removeprefix("(twice in an object) ") for field, _ in found] == [*keys]


@pytest.mark.parametrize("number", ["NaN", "1e999", "-Infinity"])
@pytest.mark.parametrize("name", ["rows.jsonl", "row.json"])
def test_numbers_that_are_not_finite_are_in_the_account(project: Project, number: str, name: str) -> None:
    messages = '"messages": [{"role": "user", "content": "Go."}, {"role": "assistant", "content": "Gone."}]'
    run = bring(project, "trajectories", f'{{{messages}, "reward": {number}}}\n'.encode(), name=name)
    assert {one["field"]: one["becomes"] for one in run.result["account"]}["(numbers that are not finite)"] == "null"
