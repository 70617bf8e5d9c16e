"""TRL's formats, conversational with an explicit prompt. Tool arguments are objects, as chat templates expect them."""

from collections.abc import Iterator, Sequence

import orjson

from curation.exports.formats.row import (
    EXAMPLE_MODEL,
    PLAIN_MESSAGE,
    THIS_FOLDER,
    Column,
    DataFile,
    Example,
    Format,
    Preference,
    Row,
    Source,
    Trainer,
    each_approved,
    files_of,
    one_message_pairs,
    sequence_length,
    turn_of,
    with_tools,
    yaml,
)
from curation.exports.rows.messages import Message
from curation.exports.rows.skip_reasons import SkipReason

_COMMAND = {"sft-prompt-completion": "sft", "dpo": "dpo", "kto": "kto"}
_ANY: Column = ["json"]
_PLAIN: Column = [PLAIN_MESSAGE]


def with_objects(messages: Sequence[Message]) -> Sequence[object]:
    """Return messages whose tool arguments are objects. Arguments that are no JSON stay text."""
    if all(len(message) == 2 for message in messages):
        return messages
    return [
        {**message, "tool_calls": [_with_object(call) for call in message["tool_calls"]]}
        if "tool_calls" in message
        else message
        for message in messages
    ]


def _with_object(call: object) -> object:
    given = dict(call) if isinstance(call, dict) else {}
    function = dict(given["function"])
    try:
        function["arguments"] = orjson.loads(function["arguments"])
    except orjson.JSONDecodeError:
        return call
    return {**given, "function": function}


def _messages_rows(example: Example) -> Iterator[Row]:
    source, messages, _ = example.conversation
    content: dict[str, object] = {"messages": with_objects(messages)}
    yield Row(source, with_tools(content, example.tools), messages, [[]])


def _completion_rows(example: Example) -> Iterator[Row]:
    for index, prompt, answer in each_approved(example):
        content = {"prompt": with_objects(prompt), "completion": with_objects([answer])}
        row = with_tools(content, example.tools)
        yield Row(example.conversation.source, row, prompt, [[answer]], turn=turn_of(example, index))


def _dpo_rows(example: Example) -> Iterator[Row | SkipReason]:
    for found in example.preferences:
        if isinstance(found, SkipReason):
            yield found
            continue
        source, *parts, pair = found
        prompt, chosen, rejected = parts
        content = {"prompt": with_objects(prompt), "chosen": with_objects(chosen), "rejected": with_objects(rejected)}
        yield Row(source, with_tools(content, example.tools), prompt, [chosen, rejected], pair)


def _kto_rows(example: Example) -> Iterator[Row | SkipReason]:
    for index, prompt, answer in each_approved(example):
        yield _kto_row(example, example.conversation.source, prompt, answer, True, turn=turn_of(example, index))
    for found in one_message_pairs(example):
        if isinstance(found, Preference):
            yield _kto_row(example, found.source, found.prompt, found.rejected[0], False, pair=found.pair)
        else:
            yield found


def _kto_row(
    example: Example,
    source: Source,
    prompt: Sequence[Message],
    answer: Message,
    label: bool,
    *,
    pair: str = "",
    turn: int | None = None,
) -> Row:
    content = {"prompt": with_objects(prompt), "completion": with_objects([answer]), "label": label}
    return Row(source, with_tools(content, example.tools), prompt, [[answer]], pair, turn, not label)


SFT_MESSAGES = Format(
    name="sft-messages",
    about='`{"messages": […], "tools"?}`, the last message is the approved answer, or the terminal of a session',
    trained="of a turn only the last message is approved, of a session every assistant message. TRL learns from all"
    " messages: train it on `sft-prompt-completion`",
    pairs=False,
    rows=_messages_rows,
    columns={"messages": _ANY, "tools": _ANY},
    plain_columns={"messages": _PLAIN},
)
SFT_PROMPT_COMPLETION = Format(
    name="sft-prompt-completion",
    about='`{"prompt": […], "completion": [assistant], "tools"?}`, a row for each approved message',
    trained="the completion, with `completion_only_loss`",
    pairs=False,
    rows=_completion_rows,
    columns={"prompt": _ANY, "completion": _ANY, "tools": _ANY},
    plain_columns={"prompt": _PLAIN, "completion": _PLAIN},
)
DPO = Format(
    name="dpo",
    about='`{"prompt": […], "chosen": […], "rejected": […], "tools"?}`, both sides begin with an assistant message',
    trained="chosen over rejected",
    pairs=True,
    rows=_dpo_rows,
    columns={"prompt": _ANY, "chosen": _ANY, "rejected": _ANY, "tools": _ANY},
    plain_columns={"prompt": _PLAIN, "chosen": _PLAIN, "rejected": _PLAIN},
)
KTO = Format(
    name="kto",
    about='`{"prompt": […], "completion": [assistant], "label": bool, "tools"?}`: approved messages are true, the other'
    " side of a pair is false",
    trained="the completion",
    pairs=True,
    rows=_kto_rows,
    columns={"prompt": _ANY, "completion": _ANY, "label": "bool", "tools": _ANY},
    plain_columns={"prompt": _PLAIN, "completion": _PLAIN, "label": "bool"},
)
FORMATS = (SFT_MESSAGES, SFT_PROMPT_COMPLETION, DPO, KTO)


def _config(files: Sequence[DataFile], longest: int) -> dict[str, str]:
    return {_config_name(name): yaml(_settings(name, files, longest)) for name in _trained(files)}


def _settings(name: str, files: Sequence[DataFile], longest: int) -> dict[str, object]:
    command = _COMMAND[name]
    splits = [file.split for file in files_of(files, name)]
    settings: dict[str, object] = {
        "model_name_or_path": EXAMPLE_MODEL,
        "dataset_name": THIS_FOLDER,
        "dataset_config": name,
        "dataset_train_split": splits[0],
        "max_length": sequence_length(longest),
        # KTO compares the rows of a batch.
        "per_device_train_batch_size": 2 if command == "kto" else 1,
        "gradient_accumulation_steps": 8,
        "gradient_checkpointing": True,
        "learning_rate": 1e-5 if command == "sft" else 1e-6,
        "num_train_epochs": 1,
        "logging_steps": 10,
        "output_dir": f"trl-{command}",
    }
    if command == "sft":
        settings["completion_only_loss"] = True
    if "val" in splits[1:]:
        settings |= {"dataset_test_split": "val", "eval_strategy": "epoch"}
    return settings


def _trained(files: Sequence[DataFile]) -> list[str]:
    return [name for name in _COMMAND if files_of(files, name)]


def _config_name(name: str) -> str:
    return f"trl-{_COMMAND[name]}.yaml"


def _commands(files: Sequence[DataFile]) -> list[str]:
    return [f"trl {_COMMAND[name]} --config {_config_name(name)}" for name in _trained(files)]


TRAINER = Trainer(
    name="trl",
    title="TRL",
    formats=[form.name for form in FORMATS],
    offers=["sft-prompt-completion", "dpo", "kto"],
    config=_config,
    commands=_commands,
)
