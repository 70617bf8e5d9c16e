"""The arguments of a server's reset: a template of JSON, filled in with the fields of a row.

`{{row.task}}` outside quotes is the field as JSON, so an object stays an object; inside quotes it is the field's text.
"""

import re
from collections.abc import Mapping
from typing import Any

import orjson

from curation.evaluations.models import SplitRow
from curation.runs.kinds import Json
from curation.web.problems import Invalid
from judging.messages import content_of

FIELD = "params.reset_template"
OF_A_TASK = '{"task_id": {{row.task_id}}, "seed": {{seed}}}'
OF_A_SEED = '{"seed": {{seed}}}'
PLACEHOLDER = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|' + PLACEHOLDER.pattern)


def row_values(row: SplitRow) -> Json:
    """The fields of a row for a template, its own columns first. Needs the text."""
    text = row.text
    own = {"tier": row.tier, "source": row.source, **text.fields}
    return {**own, "task_id": task_id_of(row), "number": row.number + 1, "prompt": user_text(row)}


def task_id_of(row: SplitRow) -> int | str:
    """A number if it is written as one: files write the id of the same task now as 3, now as "3"."""
    is_number = row.task_id.isascii() and row.task_id.isdigit() and len(row.task_id) < 16
    return int(row.task_id) if is_number and str(int(row.task_id)) == row.task_id else row.task_id


def user_text(row: SplitRow) -> str:
    return "\n\n".join(content_of(message) for message in row.text.messages if message.get("role") == "user")


def fill_reset(template: str, *, row: Json | None, seed: int, repeat: int) -> Json:
    """Return the arguments of a reset. Raise `Invalid` for a field that the row does not have, and if the result is no
    JSON object."""
    values: Json = {"seed": seed, "repeat": repeat} | ({} if row is None else {"row": row})

    def fill(found: re.Match[str]) -> str:
        if not found[0].startswith('"'):
            return orjson.dumps(_value(found[1], values)).decode()
        return PLACEHOLDER.sub(lambda inner: _in_quotes(_value(inner[1], values)), found[0])

    filled = TOKEN.sub(fill, template)
    try:
        reset = orjson.loads(filled)
    except orjson.JSONDecodeError as error:
        raise _invalid(f"The reset is not JSON: {error}. It is: {filled[:300]}") from None
    if not isinstance(reset, dict):
        raise _invalid(f"The reset is not a JSON object: {filled[:300]}")
    return reset


def _value(path: str, values: Mapping[str, Any]) -> object:
    found: Any = values
    for depth, name in enumerate(path.split(".")):
        if not isinstance(found, Mapping) or name not in found:
            where = ".".join(path.split(".")[:depth]) or "A template"
            known = ", ".join(found) if isinstance(found, Mapping) else "no fields"
            number = values["row"]["number"] if "row" in values else None
            of = f"Row {number}: " if number is not None and depth else ""
            raise _invalid(f"{of}`{where}` has no `{name}`; it has {known}.")
        found = found[name]
    return found


def _in_quotes(value: object) -> str:
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return orjson.dumps(text).decode()[1:-1]


def _invalid(reason: str) -> Invalid:
    return Invalid.at(FIELD, reason)
