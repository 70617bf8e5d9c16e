"""Axolotl's formats: chat rows with a training flag on each message, and preferences of one message a side."""

from collections.abc import Iterator, Sequence

from curation.exports.formats.row import (
    EXAMPLE_MODEL,
    MARKED_MESSAGE,
    PLAIN_MESSAGE,
    THIS_FOLDER,
    DataFile,
    DataRow,
    Format,
    Trainer,
    TrainingExample,
    files_of,
    marked_rows,
    one_message_pairs,
    preference_row,
    sequence_length,
    yaml,
)
from curation.exports.rows.messages import ExportedMessage
from curation.exports.rows.skip_reasons import SkipReason


def _dpo_rows(example: TrainingExample) -> Iterator[DataRow | SkipReason]:
    """Its reader takes role and content alone, so rows with tools would lose their calls."""
    for found in one_message_pairs(example):
        if isinstance(found, SkipReason):
            yield found
        elif example.tools or any("tool_calls" in m for m in [*found.prompt, *found.chosen, *found.rejected]):
            yield SkipReason.NO_TOOLS
        else:
            chosen, rejected = _texts(found.chosen)[0], _texts(found.rejected)[0]
            content = {"prompt": _texts(found.prompt), "chosen": chosen, "rejected": rejected}
            yield preference_row(found, content)


def _texts(messages: Sequence[ExportedMessage]) -> list[dict[str, str]]:
    return [{"role": message["role"], "content": message["content"]} for message in messages]


CHAT = Format(
    name="axolotl-chat",
    about='`{"messages": […], "tools"? (JSON text)}`, each message with its `train` flag',
    trained="messages with `train: true`, the approved ones",
    pairs=False,
    rows=marked_rows,
    columns={"messages": [MARKED_MESSAGE], "tools": "string"},
    plain_columns={"messages": [{"role": "string", "content": "string", "train": "bool"}]},
)
DPO = Format(
    name="axolotl-dpo",
    about='`{"prompt": […], "chosen": one, "rejected": one}`; its reader drops tool calls, so such rows are skipped',
    trained="chosen over rejected",
    pairs=True,
    rows=_dpo_rows,
    columns={"prompt": [PLAIN_MESSAGE], "chosen": PLAIN_MESSAGE, "rejected": PLAIN_MESSAGE},
)
FORMATS = (CHAT, DPO)


def _config(files: Sequence[DataFile], longest: int) -> dict[str, str]:
    chat = {"type": "chat_template", "field_messages": "messages", "message_field_training": "train"}
    pairs = {"type": "chat_template.default", "field_messages": "prompt"}
    pairs |= {"field_chosen": "chosen", "field_rejected": "rejected"}
    configs = {}
    if files_of(files, CHAT.name):
        configs["axolotl-chat.yaml"] = _document(files_of(files, CHAT.name), chat, longest, {})
    if files_of(files, DPO.name):
        configs["axolotl-dpo.yaml"] = _document(files_of(files, DPO.name), pairs, longest, {"rl": "dpo"})
    return configs


def _document(parts: Sequence[DataFile], reader: dict[str, str], longest: int, extra: dict[str, object]) -> str:
    settings: dict[str, object] = {
        "base_model": EXAMPLE_MODEL,
        "chat_template": "tokenizer_default",
        **extra,
        "sequence_len": sequence_length(longest),
        "micro_batch_size": 1,
        "gradient_accumulation_steps": 8,
        "gradient_checkpointing": True,
        "num_epochs": 1,
        "optimizer": "adamw_torch",
        "learning_rate": 1e-6 if extra else 1e-5,
        "output_dir": f"axolotl-{'dpo' if extra else 'chat'}",
    }
    val = [part for part in parts if part.split == "val"]
    lists = _dataset("datasets", parts[0], reader)
    lists += _dataset("test_datasets", val[0], reader) if val and val[0] != parts[0] else "val_set_size: 0\n"
    return yaml(settings) + lists


def _dataset(name: str, file: DataFile, reader: dict[str, str]) -> str:
    """Return a list with one data set: the folder itself, whose card has the columns."""
    fields = {"path": THIS_FOLDER, "name": file.format, "split": file.split, **reader}
    lines = [f"{key}: {value}" for key, value in fields.items()]
    return f"{name}:\n  - " + "\n    ".join(lines) + "\n"


TRAINER = Trainer(
    name="axolotl",
    title="Axolotl",
    formats=[form.name for form in FORMATS],
    config=_config,
    commands=lambda files: [f"axolotl train {name}" for name in _config(files, 0)],
)
