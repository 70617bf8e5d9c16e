"""One row of a file for evaluations: `messages` with the expected answer last, and its task."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from curation.imports.sources.rows import RowRefused
from curation.samples.scores.save import preview_of
from curation.web.text.storable import storable, storable_json
from judging.contamination import find
from judging.messages import content_of

Message = dict[str, object]
ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
LONGEST_NAME, LONGEST_LABEL = 200, 100
# The columns for a task's id: our own exports write `instance_id` or `scenario`, and `id` for a sample without either.
TASK_COLUMNS = ("task_id", "instance_id", "scenario", "id")
# A command that only ends a session of a shell.
ENDS = frozenset({"exit", "panic"})


@dataclass(frozen=True, slots=True)
class EvalRow:
    """`messages` are sent as they are; `expected` is the text of the last one. `fields` are the other columns."""

    messages: list[Message]
    expected: str
    task_id: str
    tier: str
    source: str
    repo: str = ""
    turn: int = 0
    fields: Mapping[str, object] = field(default_factory=dict)
    origins: frozenset[str] = frozenset()

    @property
    def opening(self) -> str:
        """The first message of a user, which describes the task."""
        return next((content_of(message) for message in self.messages if message.get("role") == "user"), "")

    @property
    def preview(self) -> str:
        return preview_of(self.opening)

    def compared(self) -> find.EvalRow:
        return find.EvalRow(prompt_text(self.messages), self.opening, self.expected, self.task_id, self.origins)


def read_row(value: Mapping[str, object]) -> EvalRow:
    """Read one row, whose last message is the expected answer; raise `RowRefused` with the reason."""
    messages = value.get("messages")
    if not isinstance(messages, list):
        raise RowRefused("no `messages`; a row is {messages: […], task_id, tier, source}")
    read = [_message(number, message) for number, message in enumerate(messages)]
    if len(read) < 2 or read[-1].get("role") != "assistant":
        raise RowRefused("the last of `messages` is not the expected assistant message, with others before it")
    expected = content_of(read[-1])
    if not expected.strip():
        raise RowRefused("the expected assistant message has no text")
    tier = value.get("tier") if value.get("tier") not in (None, "") else value.get("difficulty")
    task = next((found for name in TASK_COLUMNS if (found := _label(value.get(name), LONGEST_NAME))), "")
    return EvalRow(
        messages=read[:-1],
        expected=expected,
        task_id=task,
        tier=_label(tier, LONGEST_LABEL),
        source=_label(value.get("source"), LONGEST_LABEL),
        repo=_label(value.get("repo"), LONGEST_NAME),
        fields={storable(str(name)): storable_json(given) for name, given in value.items() if name != "messages"},
    )


def each_command(row: EvalRow) -> list[EvalRow]:
    """Return a row for each command of a shell session, or the row alone if it is none.

    A session begins with what the terminal showed, and its last message, `exit` or `panic`, only ends it. The rows
    belong to one task: the session's own if the file names none.
    """
    if (row.expected.split(maxsplit=1)[0] not in ENDS) or len(row.messages) < 2:
        return [row]
    if [message.get("role") for message in row.messages] != ["user", "assistant"] * (len(row.messages) // 2) + ["user"]:
        return [row]
    messages: list[Message] = [*row.messages, {"role": "assistant", "content": row.expected}]
    return [
        replace(row, messages=messages[:number], expected=content_of(message), turn=number)
        for number, message in enumerate(messages)
        if message["role"] == "assistant" and content_of(message).strip()
    ]


def prompt_text(messages: Sequence[Mapping[str, object]]) -> str:
    """All messages as one text, each after its role, as contamination checks compare it."""
    return "\n\n".join(f"{message.get('role')}:\n{content_of(message)}" for message in messages)


def _message(number: int, message: object) -> Message:
    if not isinstance(message, dict) or message.get("role") not in ROLES:
        raise RowRefused(f"message {number + 1} is not an object with a role of {', '.join(sorted(ROLES))}")
    content = message.get("content")
    if not (content is None or isinstance(content, str | list)):
        raise RowRefused(f"message {number + 1} has a content that is neither text nor parts")
    return {str(key): storable_json(part) for key, part in message.items()}


def _label(value: object, longest: int) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return storable(str(value)).strip()[:longest]
