"""One row of a file for evaluations: messages with the expected answer last, and its task. Rows of other layouts, such
as those of benchmarks, are read as messages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from curation.exports.hygiene.held_out import read_messages
from curation.imports.layouts.account import Account
from curation.imports.layouts.messages.write import write_messages
from curation.imports.layouts.rows.mapping import RowMapping
from curation.imports.layouts.rows.read import read_row as read_session
from curation.imports.layouts.session import AgentSession, Step
from curation.imports.sources.rows import RowRefused
from curation.samples.scores import preview_of
from curation.web.text.storable import storable, storable_json
from judging.contamination import rows
from judging.messages import Message, content_of

LONGEST_NAME, LONGEST_LABEL = 200, 100
# The columns for a task's id: our own exports write `instance_id` or `scenario`, and `id` for a sample without either.
TASK_COLUMNS = ("task_id", "instance_id", "scenario", "id")
# A command that only ends a session of a shell.
ENDS = frozenset({"exit", "panic"})


@dataclass(frozen=True, slots=True)
class EvalRow:
    """`messages` are in OpenAI's form; `expected` is the text of the last one. `fields` are the other columns, `number`
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
    account: Account = field(default_factory=Account)

    @property
    def opening(self) -> str:
        """The first message of a user, which describes the task."""
        return next((content_of(message) for message in self.messages if message.get("role") == "user"), "")

    @property
    def preview(self) -> str:
        return preview_of(self.opening)

    def compared(self) -> rows.ComparedRow:
        return rows.ComparedRow.of(read_messages(self.messages), self.expected, self.task_id, self.origins)


def read_row(value: Mapping[str, object], mapping: RowMapping | None = None) -> EvalRow:
    """Read one row, whose last message is the expected answer; raise `RowRefused` with the reason."""
    session, account = read_session(value, mapping)
    *before, last = [*session.steps, *_wanted(session)] or [{}]
    if not before or last["source"] != "agent" or "observation" in last or session.label is False:
        raise RowRefused("the last of `messages` is not the expected assistant message, with others before it")
    expected = content_of(last["message"])
    if not expected.strip():
        raise RowRefused("the expected assistant message has no text")
    tier = value.get("tier") if value.get("tier") not in (None, "") else value.get("difficulty")
    return EvalRow(
        messages=write_messages(before),
        expected=expected,
        task_id=label_of(value, TASK_COLUMNS),
        tier=_label(tier, LONGEST_LABEL),
        source=_label(value.get("source"), LONGEST_LABEL),
        repo=_label(value.get("repo"), LONGEST_NAME),
        fields={storable(str(name)): storable_json(given) for name, given in value.items() if name != "messages"},
        account=account,
    )


def _wanted(session: AgentSession) -> Sequence[Step]:
    """Return the side of a pair or duel that is not to be avoided."""
    sides = {ending.side: ending.steps for ending in reversed(session.endings)}
    return next((sides[side] for side in ("chosen", "challenger", "source") if side in sides), ())


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


def _label(value: object, longest: int) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return storable(str(value)).strip()[:longest]
