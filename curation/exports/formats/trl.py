"""TRL's formats, conversational with an explicit prompt. Tool arguments are objects, as chat templates expect them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ninja import Schema
from pydantic import Field

from curation.exports.formats.row import (
    EXAMPLE_MODEL,
    EXAMPLE_VISION_MODEL,
    PLAIN_MESSAGE,
    THIS_FOLDER,
    Column,
    DataFile,
    DataRow,
    Format,
    Source,
    Trainer,
    TrainingExample,
    each_approved,
    files_of,
    one_message_pairs,
    preference_row,
    sequence_length,
    turn_of,
    with_tools,
    yaml,
)
from curation.exports.rows.images import are_asked, images_of, with_parts
from curation.exports.rows.messages import ExportedMessage, with_objects
from curation.exports.rows.skip_reasons import SkipReason
from curation.imports.layouts.rows.stepwise import write_text
from curation.web.schemas import computed

_UNPAIRED = (SkipReason.DRAW, SkipReason.NO_OPPONENT, SkipReason.NO_PAIR)
_COMMAND = {"sft-prompt-completion": "sft", "dpo": "dpo", "kto": "kto"}
_ANY: Column = ["json"]
_PLAIN: Column = [PLAIN_MESSAGE]


def _messages_rows(example: TrainingExample) -> Iterator[DataRow | SkipReason]:
    messages = example.messages
    content: dict[str, object] = {"messages": _written(messages)}
    yield _placed(
        DataRow(example.source, with_tools(content, example.tools), messages, [[]], images=images_of(messages))
    )


def _completion_rows(example: TrainingExample) -> Iterator[DataRow | SkipReason]:
    for index, prompt, answer in each_approved(example):
        content = {"prompt": _written(prompt), "completion": with_objects([answer])}
        row = with_tools(content, example.tools)
        turn = turn_of(example, index)
        yield _placed(DataRow(example.source, row, prompt, [[answer]], turn=turn, images=images_of(prompt)))


def _written(messages: Sequence[ExportedMessage]) -> Sequence[Mapping[str, Any]]:
    """Return messages with objects as arguments. Images are parts without data, which TRL takes from `images`."""
    written = with_objects(messages)
    if written is messages:
        return messages
    return [with_parts(message, lambda _: {"type": "image"}) if "images" in message else message for message in written]


def _placed(row: DataRow) -> DataRow | SkipReason:
    """TRL fills in images everywhere but in messages of tools."""
    if not row.images or are_asked([*row.prompt, *(message for side in row.sides for message in side)]):
        return row
    return SkipReason.NO_IMAGES


def _dpo_rows(example: TrainingExample) -> Iterator[DataRow | SkipReason]:
    for found in example.preferences:
        if isinstance(found, SkipReason):
            yield found
            continue
        sides = {"prompt": found.prompt, "chosen": found.chosen, "rejected": found.rejected}
        content = {name: _written(side) for name, side in sides.items()}
        yield _placed(preference_row(found, with_tools(content, example.tools)))


def _kto_rows(example: TrainingExample) -> Iterator[DataRow | SkipReason]:
    """Labels are unpaired: a rejected sample has rows of its own, and an approved one needs no other answer."""
    label = not example.rejected
    for index, prompt, answer in each_approved(example):
        yield _kto_row(example, example.source, prompt, answer, label, turn=turn_of(example, index))
    for found in one_message_pairs(example):
        if isinstance(found, SkipReason):
            if found not in _UNPAIRED:
                yield found
        elif not found.against:
            yield _kto_row(example, found.source, found.prompt, found.rejected[0], False, pair=found.pair)


def _kto_row(
    example: TrainingExample,
    source: Source,
    prompt: Sequence[ExportedMessage],
    answer: ExportedMessage,
    label: bool,
    *,
    pair: str = "",
    turn: int | None = None,
) -> DataRow | SkipReason:
    content: Mapping[str, object] = {"prompt": _written(prompt), "completion": with_objects([answer]), "label": label}
    content = with_tools(content, example.tools)
    return _placed(DataRow(source, content, prompt, [[answer]], pair, turn, not label, images=images_of(prompt)))


def _stepwise_rows(example: TrainingExample) -> Iterator[DataRow | SkipReason]:
    """A completion is everything from the last labelled step to this one: the label is on its end."""
    messages = example.messages
    labels = {index: label for index, label in sorted(example.labels.items()) if index < len(messages)}
    if not labels:
        yield SkipReason.NO_STEP_LABELS
        return
    first = start = next(iter(labels))
    completions = []
    for index in labels:
        completions.append(write_text(messages[start : index + 1]))
        start = index + 1
    content = {
        "prompt": write_text(messages[:first]),
        "completions": completions,
        "labels": [value >= RIGHT for value in labels.values()],
        "values": list(labels.values()),
    }
    yield DataRow(example.source, content, messages[:first], [messages[first:start]])


SFT_MESSAGES = Format(
    name="sft-messages",
    about='`{"messages": […], "tools"?}`, the last message is the approved answer, or the terminal of a session',
    trained="of a turn only the last message is approved, of a session every assistant message. TRL learns from all"
    " messages: train it on `sft-prompt-completion`",
    pairs=False,
    rows=_messages_rows,
    columns={"messages": _ANY, "tools": _ANY},
    plain_columns={"messages": _PLAIN},
    images="files",
)
SFT_PROMPT_COMPLETION = Format(
    name="sft-prompt-completion",
    about='`{"prompt": […], "completion": [assistant], "tools"?}`, a row for each approved message',
    trained="the completion, with `completion_only_loss`",
    pairs=False,
    rows=_completion_rows,
    columns={"prompt": _ANY, "completion": _ANY, "tools": _ANY},
    plain_columns={"prompt": _PLAIN, "completion": _PLAIN},
    images="files",
)
DPO = Format(
    name="dpo",
    about='`{"prompt": […], "chosen": […], "rejected": […], "tools"?}`, both sides begin with an assistant message',
    trained="chosen over rejected",
    pairs=True,
    rows=_dpo_rows,
    columns={"prompt": _ANY, "chosen": _ANY, "rejected": _ANY, "tools": _ANY},
    plain_columns={"prompt": _PLAIN, "chosen": _PLAIN, "rejected": _PLAIN},
    images="files",
)
KTO = Format(
    name="kto",
    about='`{"prompt": […], "completion": [assistant], "label": bool, "tools"?}`: approved messages are true, those of'
    " rejected samples and the other side of a pair are false",
    trained="the completion",
    pairs=True,
    rows=_kto_rows,
    columns={"prompt": _ANY, "completion": _ANY, "label": "bool", "tools": _ANY},
    plain_columns={"prompt": _PLAIN, "completion": _PLAIN, "label": "bool"},
    labelled=True,
    images="files",
)
# The value from which a step is right.
RIGHT = 0.5
STEPWISE = Format(
    name="stepwise",
    about='`{"prompt": text, "completions": [text…], "labels": [bool…], "values": [0–1…]}` of sessions with labelled'
    " steps, approved or rejected; tools answer at the beginning of the next completion",
    trained="the label at the end of each completion: true for a correct step, false for a wrong, useless or risky one."
    " By a probe: true if half of the rollouts after the step are solved. `values` has their share, a soft label",
    pairs=False,
    rows=_stepwise_rows,
    columns={"prompt": "string", "completions": ["string"], "labels": ["bool"], "values": ["float64"]},
    chat=False,
    labelled=True,
)
FORMATS = (SFT_MESSAGES, SFT_PROMPT_COMPLETION, DPO, KTO, STEPWISE)


def _config(files: Sequence[DataFile], longest: int) -> dict[str, str]:
    return {_config_name(name): yaml(_settings(name, files, longest)) for name in _trained(files)}


def _settings(name: str, files: Sequence[DataFile], longest: int) -> dict[str, object]:
    command = _COMMAND[name]
    splits = [file.split for file in files_of(files, name)]
    has_images = files_of(files, name)[0].images
    settings: dict[str, object] = {
        "model_name_or_path": EXAMPLE_VISION_MODEL if has_images else EXAMPLE_MODEL,
        "dataset_name": THIS_FOLDER,
        "dataset_config": name,
        "dataset_train_split": splits[0],
        # Cutting a row off would leave images without their tokens.
        "max_length": None if has_images else sequence_length(longest),
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
    if command == "kto":
        file = files_of(files, name)[0]
        settings |= LabelBalanceOut(desirable=file.rows - file.rejected, undesirable=file.rejected).settings()
    if "val" in splits[1:]:
        settings |= {"dataset_test_split": "val", "eval_strategy": "epoch"}
    return settings


# K. Ethayarajh et al., "KTO: Model Alignment as Prospect Theoretic Optimization" (2024), equation 8: the weighted
# number of desirable rows is 1 to 4/3 of that of undesirable ones.
_MOST = 1.33


class LabelBalanceOut(Schema):
    """Rows of the first split, and the weights that TRL recommends for KTO: one of the two ranges."""

    desirable: int = Field(examples=[181])
    undesirable: int = Field(examples=[90])

    @property
    def ratio(self) -> float:
        """The desirable rows for each undesirable one; 1 where one label has no rows, since nothing can be weighed."""
        return self.desirable / self.undesirable if self.desirable and self.undesirable else 1.0

    @computed(description="Lowest and highest.", examples=[[0.5, 0.66]])
    def desirable_weight(self) -> list[float]:
        """The lowest and highest weight of desirable rows if undesirable ones have the weight 1."""
        return [round(1 / self.ratio, 2), round(_MOST / self.ratio, 2)]

    @computed(description="Lowest and highest.", examples=[[1.51, 2.01]])
    def undesirable_weight(self) -> list[float]:
        """The lowest and highest weight of undesirable rows if desirable ones have the weight 1."""
        return [round(self.ratio / _MOST, 2), round(self.ratio, 2)]

    def settings(self) -> dict[str, float]:
        """Return the weight, by TRL's name, that makes rows of both labels count as much."""
        if self.ratio > 1:
            return {"undesirable_weight": self.undesirable_weight[1]}
        return {"desirable_weight": self.desirable_weight[0]} if self.ratio < 1 else {}


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
