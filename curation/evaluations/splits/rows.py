"""One row of a file for evaluations: messages with the expected answer last, and its task. Rows of other layouts, such
as those of benchmarks, are read as messages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from curation.exports.formats.parts import parts_of
from curation.exports.hygiene.held_out import read_messages
from curation.imports.sources.rows import RowRefused
from curation.samples.scores.save import preview_of
from curation.web.text.storable import storable, storable_json
from judging.contamination import rows
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
    """`messages` are sent as they are; `expected` is the text of the last one. `fields` are the other columns, `number`
    is the line from 0."""

    messages: list[Message]
    expected: str
    task_id: str
    tier: str
    source: str
    repo: str = ""
    turn: int = 0
    number: int = 0
    fields: Mapping[str, object] = field(default_factory=dict)
    origins: frozenset[str] = frozenset()

    @property
    def opening(self) -> str:
        """The first message of a user, which describes the task."""
        return next((content_of(message) for message in self.messages if message.get("role") == "user"), "")

    @property
    def preview(self) -> str:
        return preview_of(self.opening)

    def compared(self) -> rows.EvalRow:
        return rows.EvalRow.of(read_messages(self.messages), self.expected, self.task_id, self.origins)


def read_row(value: Mapping[str, object]) -> EvalRow:
    """Read one row, whose last message is the expected answer; raise `RowRefused` with the reason."""
    messages = value.get("messages")
    if not isinstance(messages, list):
        messages = _conversation(value)
    read = [_message(number, message) for number, message in enumerate(messages)]
    if len(read) < 2 or read[-1].get("role") != "assistant":
        raise RowRefused("the last of `messages` is not the expected assistant message, with others before it")
    read_messages(read)
    expected = content_of(read[-1])
    if not expected.strip():
        raise RowRefused("the expected assistant message has no text")
    tier = value.get("tier") if value.get("tier") not in (None, "") else value.get("difficulty")
    return EvalRow(
        messages=read[:-1],
        expected=expected,
        task_id=label_of(value, TASK_COLUMNS),
        tier=_label(tier, LONGEST_LABEL),
        source=_label(value.get("source"), LONGEST_LABEL),
        repo=_label(value.get("repo"), LONGEST_NAME),
        fields={storable(str(name)): storable_json(given) for name, given in value.items() if name != "messages"},
    )


def label_of(value: Mapping[str, object], columns: Sequence[str]) -> str:
    """Return the first of some columns that has a name."""
    return next((found for name in columns if (found := _label(value.get(name), LONGEST_NAME))), "")


def each_command(row: EvalRow) -> list[EvalRow]:
    """Return a row for each command of a shell session, or the row alone if it is none.

    A session begins with the terminal's first output, and its last message, `exit` or `panic`, only ends it. The rows
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


def _conversation(value: Mapping[str, object]) -> list[Message]:
    """Return a row of another layout as messages: the prompt, and the first answer that is not to be avoided."""
    parts = [part for part in parts_of(value) if part.use != "rejected"]
    end = next((place for place, part in enumerate(parts) if part.use == "learned"), len(parts))
    return [{"role": part.role, "content": part.text} for part in parts[: end + 1]]


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
