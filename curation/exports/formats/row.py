"""The row of a format for an approved conversation and its preferences: one shape for all formats."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import orjson

from curation.exports.rows.images import images_of
from curation.exports.rows.messages import ExportedMessage, Tool
from curation.exports.rows.skip_reasons import SkipReason
from curation.llm.client.tokens import Tokens
from judging.statistics.rates import Attempts

Source = Literal["duels", "revisions", "scenarios", "decisions"]
# A column's type: a scalar, `json` for any value, `image` for the name of its file, a list of one type, or an object.
Column = str | list["Column"] | dict[str, "Column"]
Columns = Mapping[str, Column]
# Scripts that are copied beside the data files as they are.
SCRIPTS = Path(__file__).parent / "scripts"
# The model of the configurations; a person puts their own there.
EXAMPLE_MODEL = "Qwen/Qwen2.5-0.5B-Instruct"
EXAMPLE_VISION_MODEL = "Qwen/Qwen2-VL-2B-Instruct"
# The folder in which a trainer is started. `datasets` loads no folder without a name, such as `.`.
THIS_FOLDER = "/proc/self/cwd"
PLAIN_MESSAGE: Column = {"role": "string", "content": "string"}
# A message with a training flag, for readers that need the same keys in all rows. Tool arguments are JSON text.
MARKED_MESSAGE: Column = {
    "role": "string",
    "content": "string",
    "train": "bool",
    "reasoning_content": "string",
    "tool_calls": [{"id": "string", "type": "string", "function": {"name": "string", "arguments": "string"}}],
    "tool_call_id": "string",
    "name": "string",
}


class Preference(NamedTuple):
    """A prompt with a preferred and a rejected continuation. `pair` is the stored pair of trajectories, or empty;
    `against` the sample whose answer a person rejected, or empty."""

    source: Source
    prompt: Sequence[ExportedMessage]
    chosen: Sequence[ExportedMessage]
    rejected: Sequence[ExportedMessage]
    pair: str = ""
    against: str = ""


class TrainingExample(NamedTuple):
    """The training content of one sample: its messages, and the indexes of the `approved` ones of the assistant, which
    are the last one of a turn and all of a session. A reason in `preferences` says why one is missing. `plain` means
    that no message has more than role and content, and that there are no tools.

    Of a rejected sample the approved message is the answer that a model avoids. `labels` say, by the index of a
    message, how right its step is, from 0 to 1: 1 if a person called it correct, else the value that a probe measured.
    `document` is the ATIF document of a trajectory, if a format needs it. A session has a `group`, its scenario or
    task, and a `reward` if one is known. `scenario` is the name of its scenario, and `solved` the attempts of the
    group, if a format needs its difficulty. `tokens` are those of messages of the agent, by their index, if the rollout
    kept them.
    """

    source: Source
    messages: Sequence[ExportedMessage]
    approved: Sequence[int]
    preferences: Sequence[Preference | SkipReason]
    tools: Sequence[Tool]
    plain: bool
    rejected: bool = False
    labels: Mapping[int, float] = {}
    document: Mapping[str, object] | None = None
    group: str = ""
    reward: float | None = None
    scenario: str = ""
    solved: Attempts | None = None
    tokens: Mapping[int, Tokens] = {}


class DataRow(NamedTuple):
    """One line of a data file. A trainer reads `prompt` and one of `sides`.

    `turn` is the index of the approved message where a conversation gives several rows, `pair` the stored pair of
    trajectories, `against` the sample whose answer a person rejected. `rejected` rows are to be avoided. `images` are
    the addresses of the images in `content`, in their order.
    """

    source: Source
    content: Mapping[str, object]
    prompt: Sequence[ExportedMessage]
    sides: Sequence[Sequence[ExportedMessage]]
    pair: str = ""
    turn: int | None = None
    rejected: bool = False
    against: str = ""
    images: Sequence[str] = ()


class DataFile(NamedTuple):
    """A data file as a trainer's configuration names it. `rejected` of its `rows` are to be avoided. With `images` it
    has a column of that name."""

    name: str
    format: str
    split: str
    rows: int = 0
    rejected: int = 0
    images: bool = False


@dataclass(frozen=True, slots=True)
class Format:
    """A data file format. `pairs` says whether it needs the other answers, `labelled` whether rejected samples are rows
    of it too, `documents` whether it needs the ATIF documents of trajectories, `chat` whether a chat template renders
    its rows, `of_groups` whether a scenario or task has one row, with its difficulty.

    `rows` returns rows, or reasons for missing ones. All rows of an export have the same columns: `plain_columns`,
    where they differ, if none of them has tools, tool calls or reasoning. `images` says where those of a row are: its
    messages have the data (`inline`), its column `images` has names of files (`files`), or rows with images are
    skipped. A format without columns is read by no data set. `trained` is the card's text about the trained part of a
    row. `parquet` says that the files always are Parquet, or never.
    """

    name: str
    about: str
    trained: str
    pairs: bool
    rows: Callable[[TrainingExample], Iterable[DataRow | SkipReason]]
    columns: Columns
    plain_columns: Columns | None = None
    parquet: bool | None = None
    chat: bool = True
    labelled: bool = False
    documents: bool = False
    of_groups: bool = False
    images: Literal["inline", "files", ""] = ""


@dataclass(frozen=True, slots=True)
class Trainer:
    """A training tool: its formats, and those offered for it first if they are fewer.

    `config` returns the configuration files by name. They name the data files, which are in the same folder; `longest`
    is the longest row in tokens, by the estimate. `commands` are to be run in that folder.
    """

    name: str
    title: str
    formats: Sequence[str]
    config: Callable[[Sequence[DataFile], int], dict[str, str]]
    commands: Callable[[Sequence[DataFile]], Sequence[str]]
    offers: Sequence[str] = ()


def each_approved(example: TrainingExample) -> Iterable[tuple[int, Sequence[ExportedMessage], ExportedMessage]]:
    for index in example.approved:
        yield index, example.messages[:index], example.messages[index]


def turn_of(example: TrainingExample, index: int) -> int | None:
    """Return the index if the conversation has several approved messages, and so several rows."""
    return index if len(example.approved) > 1 else None


def one_message_pairs(example: TrainingExample) -> Iterable[Preference | SkipReason]:
    """Yield the preferences whose sides are one message; whole trajectories are skipped."""
    for found in example.preferences:
        is_whole = isinstance(found, Preference) and (len(found.chosen) > 1 or len(found.rejected) > 1)
        yield SkipReason.WHOLE_TRAJECTORY if is_whole else found


def preference_row(found: Preference, content: Mapping[str, object]) -> DataRow:
    sides = [found.chosen, found.rejected]
    images = images_of([*found.prompt, *found.chosen, *found.rejected])
    return DataRow(found.source, content, found.prompt, sides, found.pair, against=found.against, images=images)


def marked_rows(example: TrainingExample) -> Iterable[DataRow]:
    """Yield one row of all messages with `train`, which is true for the approved ones alone, and tools as JSON text."""
    marked = [{**message, "train": index in example.approved} for index, message in enumerate(example.messages)]
    tools = orjson.dumps(example.tools).decode() if example.tools else None
    yield DataRow(example.source, with_tools({"messages": marked}, tools), example.messages, [[]])


def with_tools(content: Mapping[str, object], tools: object) -> Mapping[str, object]:
    """Return the row with its tools. A row without tools has no such key."""
    return {**content, "tools": tools} if tools else content


def files_of(files: Sequence[DataFile], name: str) -> list[DataFile]:
    return sorted((file for file in files if file.format == name), key=lambda file: (file.split != "train", file.split))


def sequence_length(longest: int) -> int:
    """Return a sequence length that cuts no row off: 1.5 times the estimate, as a multiple of 1,024 tokens."""
    return max(-(-longest * 3 // 2 // 1024), 2) * 1024


def yaml(settings: Mapping[str, object]) -> str:
    """Return settings as YAML, one per line. Values are JSON, which is YAML too."""
    return "".join(f"{name}: {_scalar(value)}\n" for name, value in settings.items())


def _scalar(value: object) -> str:
    # YAML 1.1 reads 1e-05 as text.
    return f"{value:.6f}" if isinstance(value, float) else orjson.dumps(value).decode()
