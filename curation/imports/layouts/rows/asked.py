"""What comes before the answers of a row without a list of messages: a prompt, an instruction, a task."""

from collections.abc import Mapping
from typing import Any

from curation.imports.layouts.messages.content import read_content
from curation.imports.layouts.messages.read import Messages
from curation.imports.layouts.rows.columns import Columns, flat, is_message
from curation.imports.layouts.session import Json, Step
from curation.imports.sources.rows import RowRefused

_SYSTEM = ("system", "system_prompt", "systeminstruction", "system_instruction")
# The columns of a task, in the order in which a person reads them.
_TASK = (
    *("instruction", "context", "passage", "question", "problem", "problem_statement", "query", "text", "input"),
    *("choices", "options"),
)


def read_prompt(columns: Columns) -> Messages:
    """Return the column `prompt`: text of a user, or messages."""
    given = columns.take("prompt", "steps")
    if isinstance(given, list) and given and not isinstance(given[0], str):
        return columns.messages(given, "prompt")
    return columns.messages([given if is_message(given) else _user(flat(given))], "prompt")


def read_task(columns: Columns) -> Messages:
    """Return the earlier questions and answers of an Alpaca row, then the task from its columns."""
    messages: list[Json] = []
    history = columns.get("history")
    if isinstance(history, list):
        columns.take("history", "steps")
        for index, turn in enumerate(history):
            if not isinstance(turn, list) or len(turn) != 2:
                raise RowRefused(f"history.{index} is not a pair of question and answer")
            messages += [_user(flat(turn[0])), {"role": "assistant", "content": flat(turn[1])}]
    asked = "\n".join(flat(columns.take(name, "user message")) for name in columns.present(_TASK))
    return columns.messages([*messages, _user(asked)] if asked else messages, "history")


def read_system(columns: Columns, *more: str) -> Step | None:
    """Return the message of the system that a row has in a column of its own."""
    present = columns.present((*_SYSTEM, *more))
    if not present:
        return None
    given: Any = columns.take(present[0], "system message")
    if isinstance(given, Mapping):  # of Gemini
        given = given.get("parts", given.get("content", given))
    content = read_content(given, present[0], columns.fields)
    return {"step_id": 1, "source": "system", "message": content.message()}


def _user(text: str) -> Json:
    return {"role": "user", "content": text}
