"""LLaMA-Factory's `sharegpt` rows. It drops rows that it does not understand without a word, so these are strict: roles
alternate, system text and tools have columns of their own, and a side of a preference is one object.

It has no flag for single messages, so each approved message is the end of its own row and `mask_history` leaves the
earlier ones out of the loss.
"""

from collections.abc import Iterator, Sequence

import orjson

from curation.exports.formats.row import (
    EXAMPLE_MODEL,
    EXAMPLE_VISION_MODEL,
    Column,
    DataFile,
    DataRow,
    Format,
    Trainer,
    TrainingExample,
    each_approved,
    files_of,
    one_message_pairs,
    preference_row,
    sequence_length,
    turn_of,
    yaml,
)
from curation.exports.rows.images import IMAGE, images_of
from curation.exports.rows.messages import ExportedMessage
from curation.exports.rows.skip_reasons import SkipReason

_INFO = "dataset_info.json"
_ASKING = ("human", "observation")
_IMAGE = "<image>"
_TURN: Column = {"from": "string", "value": "string"}
Turn = dict[str, str]


def _sft_rows(example: TrainingExample) -> Iterator[DataRow | SkipReason]:
    for index, prompt, answer in each_approved(example):
        found = _conversation(prompt)
        if isinstance(found, SkipReason):
            yield found
            continue
        system, turns = found
        content = _content([*turns, _turn(answer)], system, example)
        images = images_of(prompt)
        row = DataRow(example.source, content, prompt, [[answer]], turn=turn_of(example, index), images=images)
        yield SkipReason.NO_IMAGES if images and _names_image([*prompt, answer]) else row


def _dpo_rows(example: TrainingExample) -> Iterator[DataRow | SkipReason]:
    for found in one_message_pairs(example):
        if isinstance(found, SkipReason):
            yield found
            continue
        prompt = _conversation(found.prompt)
        if isinstance(prompt, SkipReason):
            yield prompt
            continue
        system, turns = prompt
        sides = {"chosen": _turn(found.chosen[0]), "rejected": _turn(found.rejected[0])}
        row = preference_row(found, _content(turns, system, example) | sides)
        both = [*found.prompt, *found.chosen, *found.rejected]
        yield SkipReason.NO_IMAGES if row.images and _names_image(both) else row


def _content(turns: list[Turn], system: str, example: TrainingExample) -> dict[str, object]:
    """Every row has all columns, because the reader takes them from the first one."""
    tools = orjson.dumps(example.tools).decode() if example.tools else ""
    return {"conversations": turns, "system": system, "tools": tools}


def _names_image(messages: Sequence[ExportedMessage]) -> bool:
    """Return whether a text has the word that the reader replaces by an image."""
    return any(_IMAGE in message["content"] for message in messages)


def _conversation(prompt: Sequence[ExportedMessage]) -> tuple[str, list[Turn]] | SkipReason:
    """Return the system text and turns that begin and end with a person or a tool, and alternate. Messages of the same
    side that follow each other are joined."""
    start = next((index for index, message in enumerate(prompt) if message["role"] != "system"), len(prompt))
    system = "\n\n".join(message["content"] for message in prompt[:start])
    turns: list[Turn] = []
    for message in prompt[start:]:
        turn = _turn(message)
        if message["role"] == "system" or (not turns and turn["from"] not in _ASKING):
            return SkipReason.NO_ALTERNATION
        if not turns or (turn["from"] in _ASKING) != (turns[-1]["from"] in _ASKING):
            turns.append(turn)
        elif turn["from"] == turns[-1]["from"] and turn["from"] != "function_call":
            separator = "\n</tool_response>\n<tool_response>\n" if turn["from"] == "observation" else "\n\n"
            turns[-1] = {"from": turn["from"], "value": turns[-1]["value"] + separator + turn["value"]}
        else:
            return SkipReason.NO_ALTERNATION
    if not turns or turns[-1]["from"] not in _ASKING:
        return SkipReason.NO_ALTERNATION
    return system, turns


def _turn(message: ExportedMessage) -> Turn:
    if "tool_calls" not in message:
        name = {"user": "human", "assistant": "gpt", "tool": "observation"}.get(message["role"], "human")
        text = message["content"]
        return {"from": name, "value": text.replace(IMAGE, _IMAGE) if "images" in message else text}
    calls = [_call(call["function"]["name"], call["function"]["arguments"]) for call in message["tool_calls"]]
    text = orjson.dumps(calls[0] if len(calls) == 1 else calls).decode()
    # Its formatter finds calls beside text between these words.
    value = f"{message['content']}\n<tool_call>{text}</tool_call>" if message["content"] else text
    return {"from": "function_call", "value": value}


def _call(name: str, arguments: str) -> dict[str, object]:
    try:
        return {"name": name, "arguments": orjson.loads(arguments)}
    except orjson.JSONDecodeError:
        return {"name": name, "arguments": arguments}


_COLUMNS: dict[str, Column] = {"conversations": [_TURN], "system": "string", "tools": "string"}
_PAIR_COLUMNS: dict[str, Column] = {**_COLUMNS, "chosen": _TURN, "rejected": _TURN}
SFT = Format(
    name="llamafactory-sft",
    about='`{"conversations": [{"from", "value"}…], "system", "tools" (JSON text)}`, a row for each approved message',
    trained="the last turn alone, with `mask_history: true`",
    pairs=False,
    rows=_sft_rows,
    columns=_COLUMNS,
    images="files",
)
DPO = Format(
    name="llamafactory-dpo",
    about='`{"conversations", "chosen": {"from", "value"}, "rejected": {"from", "value"}, "system", "tools"}`',
    trained="chosen over rejected",
    pairs=True,
    rows=_dpo_rows,
    columns=_PAIR_COLUMNS,
    images="files",
)
FORMATS = (SFT, DPO)


def _config(files: Sequence[DataFile], longest: int) -> dict[str, str]:
    parts = [*files_of(files, SFT.name), *files_of(files, DPO.name)]
    if not parts:
        return {}
    info = {_name(part): _entry(part) for part in parts}
    configs = {_INFO: orjson.dumps(info, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()}
    for form in FORMATS:
        if own := files_of(files, form.name):
            configs[f"{form.name}.yaml"] = yaml(_settings(form, own, longest))
    return configs


def _name(file: DataFile) -> str:
    return f"{file.format}-{file.split}"


def _entry(file: DataFile) -> dict[str, object]:
    columns = {"messages": "conversations", "system": "system", "tools": "tools"}
    # It does not read compressed files: the commands on the card unpack them.
    entry: dict[str, object] = {"file_name": file.name.removesuffix(".gz"), "formatting": "sharegpt"}
    if file.images:
        columns["images"] = "images"
    if file.format == DPO.name:
        entry["ranking"] = True
        columns |= {"chosen": "chosen", "rejected": "rejected"}
    return {**entry, "columns": columns}


def _settings(form: Format, parts: Sequence[DataFile], longest: int) -> dict[str, object]:
    stage = "dpo" if form.pairs else "sft"
    settings: dict[str, object] = {
        "model_name_or_path": EXAMPLE_VISION_MODEL if parts[0].images else EXAMPLE_MODEL,
        "template": "qwen2_vl" if parts[0].images else "qwen",
        "stage": stage,
        "do_train": True,
        "finetuning_type": "lora",
        "dataset_dir": ".",
        "dataset": _name(parts[0]),
        "cutoff_len": sequence_length(longest),
        "per_device_train_batch_size": 1,
        "gradient_accumulation_steps": 8,
        "learning_rate": 5e-6 if form.pairs else 1e-4,
        "num_train_epochs": 1.0,
        "output_dir": form.name,
    }
    if not form.pairs:
        settings["mask_history"] = True
    if any(part.split == "val" for part in parts[1:]):
        settings |= {"eval_dataset": f"{form.name}-val", "eval_strategy": "epoch", "per_device_eval_batch_size": 1}
    return settings


def _commands(files: Sequence[DataFile]) -> list[str]:
    parts = [*files_of(files, SFT.name), *files_of(files, DPO.name)]
    packed = [f"gunzip --keep {part.name}" for part in parts if part.name.endswith(".gz")]
    return packed + [f"llamafactory-cli train {form.name}.yaml" for form in FORMATS if files_of(files, form.name)]


TRAINER = Trainer(
    name="llamafactory",
    title="LLaMA-Factory",
    formats=[form.name for form in FORMATS],
    config=_config,
    commands=_commands,
)
