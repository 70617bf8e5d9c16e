"""Row layouts of training data, recognised by their columns and read as one shape: a history with tools, an answer, and
where there is one the answer that it was preferred to.

Arguments of tool calls are JSON text in the order of the source, as exports write them.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Literal

import orjson

from curation.duels.imports.layouts import (
    COLUMNS,
    Message,
    decoded,
    name_of,
    read_message,
    read_messages,
    read_tools,
    repo_of,
    storable_text,
)
from curation.imports.sources.rows import RowRefused
from curation.review.models import Action
from judging.panel.rubric import DIMENSIONS

Row = Mapping[str, object]
Trained = Literal["marked", "all"]
# The keys under which formats mark the messages that a trainer learns from.
MARKS = ("train", "weight", "training")
THINKING = re.compile(r"\s*<(think|thinking)>(?P<text>.*?)</\1>\s*", re.DOTALL)
# Columns that Parquet files may have as JSON text.
MESSAGE_COLUMNS = frozenset(
    ("messages", "conversations", "trajectory", "prompt", "completion", "input", "history")
    + ("chosen", "rejected", "preferred_output", "non_preferred_output")
)
# The columns of `metadata: true` that only our own exports have together.
METADATA = frozenset(("id", "source", "score", "bucket", "reviewers", "run"))
LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Content:
    """The training content of one row. `reference` is the source's own turn, unless that is the answer. `label` is that
    of a KTO row."""

    layout: str
    history: list[Message]
    answer: Message | None
    other: Message | None = None
    reference: Message | None = None
    label: bool | None = None


@dataclass(frozen=True, slots=True)
class ImportedRow:
    """A row as it is written. `decision` is the one that it carries, or empty; `reviewers` are the names in its
    metadata. `score` is 0–100 or None, and `reason` the sentence that came with it. `file` names its file in an
    archive, without its ending."""

    offset: int
    content: Content
    tools: list[object]
    instance_id: str
    repo: str
    source: str
    decision: str
    reviewers: tuple[str, ...]
    score: float | None
    metrics: dict[str, float] = field(default_factory=dict)
    reason: str = ""
    file: str = ""


def read_row(offset: int, given: Row, trained: Trained, file: str = "") -> ImportedRow:
    """Return the training content of the row. Raises `RowRefused` with the reason."""
    row = {name: decoded(value) if name in MESSAGE_COLUMNS else value for name, value in given.items()}
    metadata = row.keys() >= METADATA
    # All messages of a session of ours were approved, and formats without marks do not say so.
    content = _content(row, "all" if metadata and row.get("scenario") else trained)
    if not content.history:
        raise RowRefused("nothing comes before the answer")
    reviewers = _names(row["reviewers"]) if metadata else ()
    instance_id = name_of(row, "instance_id") or (name_of(row, "scenario") if metadata else "")
    nested = row.get("input")
    tools = nested.get("tools") if isinstance(nested, dict) else row.get("tools")
    return ImportedRow(
        offset=offset,
        content=content,
        tools=read_tools(tools),
        instance_id=instance_id,
        repo=name_of(row, "repo") or repo_of(instance_id),
        source=name_of(row, "source") if metadata else "",
        decision=_decision(content, reviewers),
        reviewers=reviewers,
        score=read_score(row.get("score")) if metadata or _is_duel(row) else None,
        metrics=read_metrics(row) if _is_duel(row) else {},
        reason=read_reason(row) if _is_duel(row) else "",
        file=PurePosixPath(file).stem if _is_duel(row) else "",
    )


def _decision(content: Content, reviewers: tuple[str, ...]) -> str:
    """A reviewer's name, a label and a preference are decisions; an answer alone is none."""
    if content.label is False:
        return Action.REJECT.value
    return Action.APPROVE.value if reviewers or content.label or (content.other and not content.reference) else ""


def _content(row: Row, trained: Trained) -> Content:
    for known, read in READERS:
        if known(row):
            return read(row, trained)
    columns = ", ".join(list(row)[:12]) or "none"
    raise RowRefused(f"no layout of training data has the columns {columns}")


def _is_duel(row: Row) -> bool:
    return "messages" in row and ("king" in row or "challenger" in row)


def _duel(row: Row, _: Trained) -> Content:
    """Read `messages`, `king`, `challenger` and `assistant`, the source's own turn."""
    history = _history(row["messages"], "messages")
    reference = _spoken(row.get("assistant"), "assistant")
    king, challenger = (_spoken(row.get(side), side) for side in ("king", "challenger"))
    if reference is None:
        raise RowRefused("assistant, the source's own turn, is empty")
    if king is None and challenger is None:
        raise RowRefused("king and challenger are both empty")
    return Content("duels (king, challenger)", history, challenger, king, reference)


def _labelled(row: Row, _: Trained) -> Content:
    if not isinstance(row["label"], bool):
        raise RowRefused("label is not true or false")
    answer = _answer(row["completion"], "completion")
    return Content("labelled completions (prompt, completion, label)", _prompt(row), answer, label=row["label"])


def _completion(row: Row, _: Trained) -> Content:
    return Content("completions (prompt, completion)", _prompt(row), _answer(row["completion"], "completion"))


def _openai_preference(row: Row, _: Trained) -> Content:
    given = row["input"]
    history = _history(given.get("messages") if isinstance(given, dict) else None, "input.messages")
    return _preference(
        "OpenAI preferences (input, preferred_output)",
        history,
        _answer(row["preferred_output"], "preferred_output"),
        _answer(row["non_preferred_output"], "non_preferred_output"),
    )


def _pair(row: Row, _: Trained) -> Content:
    layout = "preferences (chosen, rejected)"
    if "conversations" in row:
        history = [*_system(row), *_history(row["conversations"], "conversations")]
    elif "instruction" in row:
        history = _alpaca_history(row)
    elif not _begins_with_answer(row["chosen"]):
        return _whole_pair(layout, row)
    else:
        history = _prompt(row)
    return _preference(layout, history, _answer(row["chosen"], "chosen"), _answer(row["rejected"], "rejected"))


def _whole_pair(layout: str, row: Row) -> Content:
    """Read a pair of two whole conversations, which share everything but the last message."""
    chosen, rejected = (_history(row[side], side) for side in ("chosen", "rejected"))
    if chosen[:-1] != rejected[:-1]:
        raise RowRefused("chosen and rejected differ before their last message: a sample has one answer on a side")
    return _preference(layout, chosen[:-1], _last(chosen, "chosen"), _last(rejected, "rejected"))


def _preference(layout: str, history: list[Message], chosen: Message, rejected: Message) -> Content:
    if chosen == rejected:
        raise RowRefused("chosen and rejected are the same")
    return Content(layout, history, chosen, rejected)


def _chat(row: Row, trained: Trained) -> Content:
    column = next(name for name in COLUMNS if row.get(name) is not None)
    entries = _list(row[column], column)
    messages = [*_system(row), *_history(entries, column)]
    answer = _last(messages, column)
    history = messages[:-1]
    for index in _trained([*_system(row), *map(decoded, entries)], messages, column, trained):
        if index < len(history):
            history[index] = {**history[index], "train": True}
    return Content(COLUMNS[column].value, history, answer)


def _trained(entries: list[object], messages: list[Message], column: str, trained: Trained) -> list[int]:
    """Return the indexes of the messages that a trainer learns from. Without marks these are all assistant messages, or
    the last one alone."""
    marks = [_mark(entry, f"{column}.{index}") for index, entry in enumerate(entries)]
    spoken = [index for index, message in enumerate(messages) if message["role"] == "assistant"]
    for index, mark in enumerate(marks):
        if mark and index not in spoken:
            raise RowRefused(f"{column}.{index} is trained on, but it is not an assistant message")
    if all(marks[index] is None for index in spoken):
        return spoken if trained == "all" else spoken[-1:]
    if marks[-1] is False:
        raise RowRefused("the last message is not trained on: end the row with the answer that is learned")
    return [index for index in spoken if marks[index] is not False]


def _mark(entry: object, path: str) -> bool | None:
    values = [entry[key] for key in MARKS if entry.get(key) is not None] if isinstance(entry, dict) else []
    if any(value not in (0, 1) for value in values):
        raise RowRefused(f"{path} has a mark of training that is neither 0 nor 1")
    return bool(values[0]) if values else None


def _alpaca(row: Row, _: Trained) -> Content:
    return Content("Alpaca rows (instruction, output)", _alpaca_history(row), _answer(row["output"], "output"))


def _alpaca_history(row: Row) -> list[Message]:
    messages = _system(row)
    for index, turn in enumerate(_list(row.get("history") or [], "history")):
        if not isinstance(turn, list) or len(turn) != 2:
            raise RowRefused(f"history.{index} is not a pair of question and answer")
        for role, text in zip(("user", "assistant"), turn, strict=True):
            messages.append({"role": role, "content": _text(text, f"history.{index}")})
    asked = [_text(row.get(name) or "", name) for name in ("instruction", "input")]
    return [*messages, {"role": "user", "content": "\n".join(filter(None, asked))}]


def _system(row: Row) -> list[Message]:
    text = _text(row.get("system") or "", "system")
    return [{"role": "system", "content": text}] if text else []


def _prompt(row: Row) -> list[Message]:
    given = row.get("prompt")
    if isinstance(given, str) and given:
        return [{"role": "user", "content": storable_text(given, "prompt")}]
    return _history(given, "prompt")


def _history(given: object, column: str) -> list[Message]:
    if given is None:
        raise RowRefused(f"{column} is missing")
    return [_settled(message) for message in read_messages(_list(given, column), column)]


def _begins_with_answer(given: object) -> bool:
    """Whether a side is the answer alone, not a conversation that ends with it."""
    first = decoded(given[0]) if isinstance(given, list) and given else given
    return not isinstance(first, dict) or read_message(first, "chosen")["role"] == "assistant"


def _answer(given: object, column: str) -> Message:
    if isinstance(given, list):
        if len(given) != 1:
            raise RowRefused(f"{column} has {len(given)} messages: a sample has one answer on a side")
        given = decoded(given[0])
    if isinstance(given, str):
        given = {"role": "assistant", "content": given}
    return _last([_settled(read_message(given, column))], column)


def _spoken(given: object, column: str) -> Message | None:
    return None if given in (None, "") else _answer(given, column)


def _last(messages: list[Message], column: str) -> Message:
    """Return the last message as an answer, with thinking text in a field of its own."""
    if not messages or messages[-1]["role"] != "assistant":
        raise RowRefused(f"{column} does not end with an assistant message")
    message = dict(messages[-1])
    content = str(message["content"])
    if (found := THINKING.match(content)) and not message.get("reasoning_content"):
        message |= {"content": content[found.end() :], "reasoning_content": found["text"].strip()}
    if not str(message["content"]).strip() and not message.get("tool_calls"):
        raise RowRefused(f"{column} ends with an empty answer")
    return message


def _settled(message: Message) -> Message:
    """Return the message with the arguments of its calls as JSON text."""
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return message
    return {**message, "tool_calls": [_settled_call(call) for call in calls]}


def _settled_call(call: object) -> object:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(call, dict) or not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise RowRefused("a tool call names no function")
    arguments = function.get("arguments")
    text = arguments if isinstance(arguments, str) else orjson.dumps({} if arguments is None else arguments).decode()
    settled: dict[str, object] = {"type": "function", "function": {"name": function["name"], "arguments": text}}
    return {"id": call["id"], **settled} if call.get("id") else settled


def _list(value: object, column: str) -> list[object]:
    if not isinstance(value, list):
        raise RowRefused(f"{column} is not a list")
    return value


def _text(value: object, path: str) -> str:
    if not isinstance(value, str):
        raise RowRefused(f"{path} is not text")
    return storable_text(value, path)


def _names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) and len(name) <= LONGEST_NAME for name in value):
        raise RowRefused("reviewers is not a list of names")
    return tuple(storable_text(name, "reviewers") for name in value)


def read_score(value: object) -> float | None:
    """Return a score; exports write -1 for a missing one."""
    if value is None or value == -1:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 100:
        raise RowRefused("score is not a number from 0 to 100")
    return float(value)


def read_reason(row: Row) -> str:
    """Return the judges' reason as text; some files have one for each judge."""
    given = row.get("reason") or ""
    return storable_text(given if isinstance(given, str) else orjson.dumps(given).decode(), "reason")


def read_metrics(row: Row) -> dict[str, float]:
    """Return the scores of the dimensions that judges score, 0–100."""
    value = row.get("metrics")
    given = value if isinstance(value, dict) else {}
    return {name: score for name in DIMENSIONS if (score := read_score(given.get(name))) is not None}


Reader = Callable[[Row, Trained], Content]
# In the order in which they are tried: the columns of the first ones include those of later ones.
READERS: tuple[tuple[Callable[[Row], bool], Reader], ...] = (
    (_is_duel, _duel),
    (lambda row: "label" in row and "completion" in row, _labelled),
    (lambda row: "preferred_output" in row and "non_preferred_output" in row and "input" in row, _openai_preference),
    (lambda row: "chosen" in row and "rejected" in row, _pair),
    (lambda row: "prompt" in row and "completion" in row, _completion),
    (lambda row: any(row.get(name) is not None for name in COLUMNS), _chat),
    (lambda row: "instruction" in row and "output" in row, _alpaca),
)
