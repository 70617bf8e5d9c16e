"""The tasks of a live evaluation: admitted scenarios, the tasks of a split, or seeds, each with the arguments of a
server's reset.

These are a template of JSON, filled in with the fields of a row. `{{row.task}}` outside quotes is the field as JSON, so
an object stays an object; inside quotes it is the field's text.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from curation.evaluations.models import Split, SplitRow
from curation.evaluations.params import SANDBOX, EvaluateParams
from curation.evaluations.screen.stage import chosen_rows
from curation.projects.models import Project
from curation.runs.kinds import Json
from curation.trajectories.params import matching_scenarios
from curation.web.ids import IdList
from curation.web.problems import Invalid
from judging.messages import content_of

LONGEST_TIER = 100
DEFAULT_SEEDS = 10
FIELD = "params.reset_template"
OF_A_TASK = '{"task_id": {{row.task_id}}, "seed": {{seed}}}'
OF_A_SEED = '{"seed": {{seed}}}'
PLACEHOLDER = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|' + PLACEHOLDER.pattern)


@dataclass(frozen=True, slots=True)
class LiveTask:
    """`key` identifies the task in every evaluation, to pair two of them; `repeat` counts its episodes from 0.
    `target_id` is its scenario or row, `reset` is sent with a server's reset."""

    key: str
    tier: str = ""
    target_id: int | None = None
    reset: Json = field(default_factory=dict)
    repeat: int = 0


def tasks_of(project: Project, params: EvaluateParams, split: Split | None) -> list[LiveTask]:
    """The episodes of each model in order: every task `episodes` times, one after the other. Raises `Invalid` for a
    reset that cannot be filled in."""
    if params.environment == SANDBOX:
        return [LiveTask(*task, repeat=n) for task in _scenarios(project, params) for n in _repeats(params)]
    if split is not None:
        rows = _rows_of_tasks(split, params)
        return [_of_row(row, params, repeat) for row in rows for repeat in _repeats(params)]
    template = params.reset_template or OF_A_SEED
    seeds = range(params.seed, params.seed + (params.episodes or DEFAULT_SEEDS))
    return [LiveTask(f"seed {seed}", reset=fill_reset(template, row=None, seed=seed, repeat=0)) for seed in seeds]


def _repeats(params: EvaluateParams) -> range:
    return range(params.episodes or 1)


def _scenarios(project: Project, params: EvaluateParams) -> Iterator[tuple[str, str, int]]:
    rows = matching_scenarios(project, params.filter).order_by("id").values_list("pk", "name", "axes")
    return ((name, str(axes.get("difficulty", ""))[:LONGEST_TIER], pk) for pk, name, axes in rows)


def _rows_of_tasks(split: Split, params: EvaluateParams) -> list[SplitRow]:
    """The first row of each task represents it."""
    chosen = SplitRow.objects.filter(pk__in=IdList(chosen_rows(split, params))).order_by("number", "turn")
    first: dict[str, SplitRow] = {}
    for row in chosen.select_related("text"):
        first.setdefault(row.task, row)
    return list(first.values())


def _of_row(row: SplitRow, params: EvaluateParams, repeat: int) -> LiveTask:
    # A row without a task's id is a task of its own, so it gets a seed of its own.
    seed = params.seed + repeat + (0 if row.task_id else row.number)
    template = params.reset_template or (OF_A_TASK if row.task_id else OF_A_SEED)
    reset = fill_reset(template, row=row_values(row), seed=seed, repeat=repeat)
    return LiveTask(row.task, row.tier, row.pk, reset, repeat)


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
