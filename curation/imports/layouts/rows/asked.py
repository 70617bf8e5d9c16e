"""What comes before the answers of a row without a list of messages: a prompt, an instruction, a task."""

from collections.abc import Mapping
from typing import Any

from curation.imports.layouts.messages.content import read_content
from curation.imports.layouts.messages.read import Messages
from curation.imports.layouts.rows.columns import RowColumns, flat, is_message
from curation.imports.layouts.session import Json, Step
from curation.imports.sources.rows import RowRefused

_SYSTEM = (
    *("system", "system_prompt", "systeminstruction", "system_instruction"),
    *("system_message", "systemprompt", "sys_prompt", "developer_message"),
)
# The columns of a task, in the order in which a person reads them.
TASK = (
    *("instruction", "context", "passage", "question", "problem", "problem_statement", "query", "text", "input"),
    *("choices", "options"),
)
# What a person said last, in rows of chats without a task; only the first of these.
SAID = ("message", "user_message", "user_input", "user_prompt", "utterance", "request", "user", "human")
HISTORIES = (
    *("history", "chat_history", "conversation_history", "message_history", "dialogue_history", "dialog_history"),
    *("previous_messages", "past_messages", "context_messages"),
)


def read_prompt(columns: RowColumns) -> Messages:
    """Return the column `prompt`: text of a user, or messages."""
    given = columns.take("prompt", "steps")
    if isinstance(given, list) and given and not isinstance(given[0], str):
        return columns.messages(given, "prompt")
    return columns.messages([given if is_message(given) else _user(flat(given))], "prompt")


def read_task(columns: RowColumns) -> Messages:
    """Return the task from its columns, or what a person said last in a chat."""
    if names := columns.present(TASK):
        for name in names:
            if turns := _turns_in(columns.get(name)):
                columns.take(name, "steps")
                return columns.messages(turns, name)
        asked = "\n".join(flat(columns.take(name, "user message")) for name in names)
        return columns.messages([_user(asked)], names[0])
    for name in columns.present(SAID)[:1]:
        given = columns.take(name, "user message")
        return columns.messages([given if is_message(given) else _user(flat(given))], name)
    return columns.messages([], "")


def read_history(columns: RowColumns) -> Messages:
    """Return what was said before the prompt or task: messages, or pairs of question and answer as of Alpaca."""
    for name in columns.present(HISTORIES):
        given = columns.get(name)
        if isinstance(given, list):
            columns.take(name, "steps")
            return columns.messages(_turns(given, name), name)
    return columns.messages([], "")


def _turns_in(given: Any) -> list[Any]:
    """Return the messages of a task that is a conversation, or has the messages of each turn in a list."""
    entries = given if isinstance(given, list) else []
    flattened = [one for entry in entries for one in (entry if isinstance(entry, list) else [entry])]
    return flattened if all(is_message(one) and "content" in one for one in flattened) else []


def _turns(given: list[Any], name: str) -> list[Any]:
    if all(map(is_message, given)):
        return given
    messages: list[Json] = []
    for index, turn in enumerate(given):
        if not isinstance(turn, list) or len(turn) != 2:
            raise RowRefused(f"{name}.{index} is not a pair of question and answer, nor a message")
        messages += [_user(flat(turn[0])), {"role": "assistant", "content": flat(turn[1])}]
    return messages


def read_system(columns: RowColumns, *more: str) -> Step | None:
    present = columns.present(_SYSTEM + more)
    if not present:
        return None
    given: Any = columns.take(present[0], "system message")
    if isinstance(given, Mapping):  # of Gemini
        given = given.get("parts", given.get("content", given))
    content = read_content(given, present[0], columns.fields)
    return {"step_id": 1, "source": "system", "message": content.message()}


def _user(text: str) -> Json:
    return {"role": "user", "content": text}
