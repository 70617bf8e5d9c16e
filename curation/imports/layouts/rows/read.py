"""Rows of data sets as sessions, recognised by their columns: chats, completions, preferences, duels, tasks.

A row without answers is its prompt alone. A row with one answer is a conversation; one with two sides is the
conversation before them, with an ending for each side.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from curation.imports.layouts.account import EMPTY, REPLACED, Account, Fields
from curation.imports.layouts.clean import clean
from curation.imports.layouts.messages.calls import read_tools
from curation.imports.layouts.messages.content import read_content
from curation.imports.layouts.messages.metrics import model_of, usage_of
from curation.imports.layouts.messages.read import Messages
from curation.imports.layouts.rows.columns import (
    COLUMN,
    HISTORIES,
    SAID,
    TASK,
    RowColumns,
    flat,
    inside,
    is_message,
    truth_as_text,
    with_images,
)
from curation.imports.layouts.rows.envelopes import has_entries, lists_in, unfold
from curation.imports.layouts.rows.mapping import AppliedMapping, RowMapping
from curation.imports.layouts.rows.sides import DUEL, PAIR, read_endings, split_common
from curation.imports.layouts.rows.stepwise import read_steps, read_text
from curation.imports.layouts.rows.surroundings import read_surroundings
from curation.imports.layouts.rows.text_calls import names_of, tools_in_system, with_written_calls
from curation.imports.layouts.session import NO_USAGE, AgentSession, Continuation, Json, Step
from curation.imports.sources.rows import RowRefused

CHAT, SWE_AGENT, SHAREGPT = "chat rows (messages)", "SWE-agent rows (trajectory)", "sharegpt rows (conversations)"
GEMINI, RESPONSES = "Gemini rows (contents)", "OpenAI Responses rows (input)"
DUELS, PREFERENCES = "duels (king, challenger)", "preferences (chosen, rejected)"
OPENAI_PREFERENCES = "OpenAI preferences (input, preferred_output)"
LABELLED, COMPLETIONS = "labelled completions (prompt, completion, label)", "completions (prompt, completion)"
ALPACA, TASKS = "Alpaca rows (instruction, output)", "tasks (question, answer)"
STEPWISE = "labelled steps (prompt, completions, labels)"
PROMPTS = "prompts without an answer"

_CONVERSATIONS = {"trajectory": SWE_AGENT, "messages": CHAT, "conversations": SHAREGPT}
# Columns that are conversations if they have a list.
_LISTS = {"conversation": CHAT, "dialogue": CHAT, "contents": GEMINI}
# Columns with a mark for each message, and those of which it is not known what their marks mean.
_MASKS, _UNKNOWN_MASKS = (
    ("loss_mask", "loss_masks", "train_mask"),
    ("mask", "masks", "assistant_mask", "assistant_masks"),
)
_TOOLS = ("tools", "functions", "available_tools", "tool_definitions", "toolconfig")
_ANSWERS = (
    *("completion", "response", "output", "canonical_solution", "solution", "answer", "correct answer", "target"),
    *("answers", "final_answer", "correct_answer", "ideal", "expected", "patch", "code"),
)
_EXPECTED = ("ideal", "expected")
_LABELS = ("label", "kto_tag", "desirable")
# The columns of `metadata: true` that only our own exports have together, and what judges say of a duel.
OWN = frozenset(("id", "source", "score", "bucket", "reviewers", "run"))
_OWN, _JUDGED = ("score", "source", "reviewers", "scenario"), ("score", "metrics", "reason")


class NothingSaid(RowRefused):
    """A row without any column of messages, prompts or answers."""


def read_row(row: Mapping[str, Any], mapping: RowMapping | None = None) -> tuple[AgentSession, Account]:
    """Return the session of a row, and the account of its fields. Raises `RowRefused`."""
    cleaned, replaced = clean(dict(row), "")
    applied = _applied(cleaned, mapping)
    filled = with_images(applied.row)
    fields = Fields(filled, names=applied.names)
    if filled is not applied.row:
        fields.take(COLUMN, "steps")
    for path in replaced:
        fields.became(path, REPLACED)
    session = _read(RowColumns(fields, applied.roles), applied.metadata)
    account = fields.account()
    account.add(applied.account)
    return session, account


def _applied(row: Json, mapping: RowMapping | None) -> AppliedMapping:
    applied = mapping.apply(row) if mapping else AppliedMapping(row)
    if mapping is None or not mapping.reads_messages:
        unfold(applied)
    return applied


def has_conversation(row: Mapping[str, Any], mapping: RowMapping | None = None) -> bool:
    """Whether the row has a list of messages, not only a prompt, an instruction or a task."""
    if (mapping and mapping.messages) or any(row.get(name) not in EMPTY for name in _CONVERSATIONS):
        return True
    columns = RowColumns(Fields(_applied(dict(row), mapping).row), None)
    if all(_are_messages(columns.get(name)) for name in ("prompt", "completion")):
        return True
    return _conversation_column(columns) != "" or _is_response(columns)


def may_be_row(row: Mapping[str, Any]) -> bool:
    """Whether a row has a conversation, a prompt or an answer, or any list of several entries, as a conversation is."""
    try:
        return has_conversation(row) or bool(read_row(row))
    except NothingSaid:
        return has_entries(row)
    except RowRefused:
        return True


def _are_messages(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(is_message, value))


def trained_positions(session: AgentSession, *, unmarked: bool = False) -> list[int]:
    """Return the positions of the agent's steps that a trainer learns.

    Without any mark these are the last one, or all with `unmarked`. Beside marks, steps without one are learned.
    """
    own, learned = session.agent_steps(), session.learned
    if all(position not in learned for position in own):
        return own if unmarked else own[-1:]
    return [position for position in own if learned.get(position) is not False]


@dataclass(slots=True)
class _Conversation:
    """The steps of a row so far, and the name of its layout."""

    layout: str
    steps: list[Step] = field(default_factory=list)
    learned: dict[int, bool] = field(default_factory=dict)

    def add(self, read: Messages) -> None:
        start = len(self.steps)
        self.learned |= {start + position: mark for position, mark in read.learned.items()}
        self.steps += read.steps

    def complete(self, read: Messages) -> None:
        """Add a completion, which alone is learned."""
        for start, steps, is_learned in ((0, self.steps, False), (len(self.steps), read.steps, True)):
            own = [start + position for position, step in enumerate(steps) if step["source"] == "agent"]
            self.learned |= {position: is_learned for position in own if position not in self.learned}
        self.add(read)


def _read(columns: RowColumns, metadata: Json) -> AgentSession:
    name = _conversation_column(columns)
    is_duel = name != "" and not columns.fields.keys().isdisjoint(("king", "challenger"))
    sides = DUEL if is_duel else PAIR
    found = _before(columns, name)
    endings: Sequence[Continuation] = ()
    if is_duel or columns.present(sides):
        found.layout = _layout_of_sides(columns, is_duel)
        found.steps, endings = split_common(found.steps, read_endings(columns, sides))
    elif not name:
        is_asked = any(step["source"] != "system" for step in found.steps)
        endings = _answers(columns, found)
        if not is_asked and (endings or found.steps):
            raise RowRefused(
                "nothing stands before the answer: no column is known to be its prompt. Map the column of the prompt; "
                f"the row has {', '.join([*columns.fields][:12])}"
            )
    if not found.steps and not endings:
        reason = f"no layout of training data has the columns {', '.join([*columns.fields][:12]) or 'none'}"
        if paths := lists_in(columns.fields):
            raise RowRefused(f"{reason}. {', '.join(paths)} may be the messages: map the path and the roles")
        raise NothingSaid(reason)
    label = None if endings else _label(columns, found)
    tools = _tools(columns) or tools_in_system(found.steps, columns.fields)
    if names := names_of(tools):
        found.steps = with_written_calls(found.steps, names, name, columns.fields)
        endings = [
            Continuation(one.side, with_written_calls(one.steps, names, one.side, columns.fields)) for one in endings
        ]
    judged = _JUDGED if is_duel else _OWN if columns.fields.keys() >= OWN else ()
    metadata = metadata | {name: columns.take(name, name) for name in columns.present(judged)}
    around = read_surroundings(columns.fields)
    model, usage = model_of(found.steps), usage_of(found.steps)
    if around.usage is not NO_USAGE:
        usage = around.usage.over(usage)
    return AgentSession(
        layout=found.layout,
        steps=_numbered(found.steps, 1),
        agent=({"model_name": model} if model else {}) | around.agent | ({"tool_definitions": tools} if tools else {}),
        learned=found.learned,
        endings=[Continuation(one.side, _numbered(one.steps, len(found.steps) + 1)) for one in endings],
        label=label,
        origin=around.origin,
        verdict=around.verdict,
        usage=usage,
        metadata=around.metadata | metadata,
    )


def _conversation_column(columns: RowColumns) -> str:
    lists = (name for name in columns.present(_LISTS) if isinstance(columns.get(name), list))
    return next(iter(columns.present(_CONVERSATIONS)), "") or next(lists, "")


def _is_response(columns: RowColumns) -> bool:
    """Whether a row is a call of OpenAI's Responses: items, and the items that answer them."""
    given, answer = columns.get("input"), columns.get("output")
    return all(isinstance(items, list) and all(map(is_message, items)) for items in (given, answer))


def _before(columns: RowColumns, name: str) -> _Conversation:
    """Return everything before the answers, or a whole conversation."""
    nested = columns.get("input")
    more: tuple[str, ...] = ()
    if isinstance(nested, dict) and "messages" in nested:  # OpenAI's preferences
        columns.take("input", "steps")
        columns.fields.ignore_rest(nested, ("messages", "tools"), "input")
        layout, read = CHAT, columns.messages(nested["messages"], "input.messages")
    elif name:
        layout = (_CONVERSATIONS | _LISTS)[name]
        read = columns.messages(_with_marks(columns, columns.take(name, "steps")), name)
    elif isinstance(nested, list) and all(map(is_message, nested)):
        layout, more = RESPONSES, ("instructions",)
        read = columns.messages(columns.take("input", "steps"), "input")
    elif "prompt" in columns:
        layout, read = COMPLETIONS, _prompt(columns)
    else:
        layout, read = ALPACA if "instruction" in columns else TASKS, read_task(columns)
    found = _Conversation(layout)
    parts = [read_history(columns), read] if layout in (COMPLETIONS, ALPACA, TASKS) else [read]
    if system := read_system(columns, *more):
        first = next((step for part in parts for step in part.steps), {})
        if first.get("source") != "system" or flat(system["message"]) not in flat(first["message"]):
            found.add(Messages([system], {}, []))
    for part in parts:
        found.add(part)
    return found


def _with_marks(columns: RowColumns, messages: Any) -> Any:
    """Return the messages with the marks that a column has for all of them. Raises `RowRefused` for a column with marks
    of something else, such as tokens."""
    for name in columns.present(_UNKNOWN_MASKS):
        if isinstance(marks := columns.get(name), list) and isinstance(messages, list) and len(marks) == len(messages):
            raise RowRefused(f"{name} marks messages in a way that is not known: name it `loss_mask`, of 0 and 1")
    name = next(iter(columns.present(_MASKS)), "")
    if not name:
        return messages
    marks = columns.take(name, "marks of training")
    if not isinstance(messages, list) or not isinstance(marks, list) or len(marks) != len(messages):
        raise RowRefused(f"{name} has not one mark for each message")
    return [
        {**message, "loss_mask": mark} if is_message(message) else message
        for message, mark in zip(messages, marks, strict=True)
    ]


def _prompt(columns: RowColumns) -> Messages:
    prompt = columns.get("prompt")
    if "completions" in columns and isinstance(prompt, str):
        return columns.messages(read_text(columns.take("prompt", "steps"), "user"), "prompt")
    return read_prompt(columns)


def _layout_of_sides(columns: RowColumns, is_duel: bool) -> str:
    if is_duel:
        return DUELS
    return OPENAI_PREFERENCES if "preferred_output" in columns else PREFERENCES


def _answers(columns: RowColumns, found: _Conversation) -> list[Continuation]:
    """Add the answer to the conversation. Several columns with answers, such as a solution and its result, are endings
    of their own."""
    if "completions" in columns:
        found.layout = STEPWISE
        found.complete(read_steps(columns))
        return []
    names = columns.present(_ANSWERS)
    if len(names) > 1:  # what an evaluation expects is no answer
        names = [name for name in names if name not in _EXPECTED] or names
    if _are_messages(columns.get("completion")):  # beside it, other columns are what the answer should be
        names = ["completion"]
    becomes = "answer" if len(names) == 1 else "chosen"
    read = [columns.answer(columns.take(name, becomes), name) for name in names]
    if len(read) == 1:
        found.complete(read[0])
        return []
    if not read and not any(step["source"] == "agent" for step in found.steps):
        found.layout = PROMPTS
    return [Continuation("chosen", one.steps) for one in read]


def _label(columns: RowColumns, found: _Conversation) -> bool | None:
    """Return the label of a KTO row: of its completion, or of its last answer."""
    for name in columns.present(_LABELS):
        value = columns.get(name)
        if (label := value if isinstance(value, bool) else truth_as_text(value)) is not None:
            found.layout = LABELLED if found.layout == COMPLETIONS else found.layout
            columns.take(name, "label")
            return label
        if found.layout == COMPLETIONS and name == "label":
            raise RowRefused("label is not true or false")
    return None


def _tools(columns: RowColumns) -> list[Json]:
    nested = columns.get("input")
    if isinstance(nested, dict) and nested.get("tools"):
        return read_tools(nested["tools"], "input.tools")
    name = next(iter(columns.present(_TOOLS)), "")
    if not name and _are_functions(columns.get("function")):  # of BFCL and ToolBench
        name = "function"
    if name:
        given = columns.take(name, "tools")
        return read_tools(given.get("tools", given) if isinstance(given, Mapping) else given, name)
    path, found = inside(columns.fields, _TOOLS, _are_functions)
    if path:
        columns.fields.became(path, "tools")
    return read_tools(found, path)


def _are_functions(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) and _named(one) for one in value)


def _named(tool: Json) -> bool:
    function = tool.get("function", tool)
    return isinstance(function, dict) and isinstance(function.get("name"), str)


def _numbered(steps: Sequence[Step], first: int) -> list[Step]:
    return [
        step if step["step_id"] == number else step | {"step_id": number} for number, step in enumerate(steps, first)
    ]


_SYSTEM = (
    *("system", "system_prompt", "systeminstruction", "system_instruction"),
    *("system_message", "systemprompt", "sys_prompt", "developer_message"),
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
