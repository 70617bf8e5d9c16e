"""OpenAI's fine-tuning formats, which Together and Fireworks read as well. They have no field for reasoning."""

from collections.abc import Iterator, Sequence
from typing import Any

from curation.exports.formats.row import (
    PLAIN_MESSAGE,
    SCRIPTS,
    DataFile,
    DataRow,
    Format,
    Trainer,
    TrainingExample,
    files_of,
    one_message_pairs,
    preference_row,
    with_tools,
)
from curation.exports.rows.images import are_asked, images_of, with_parts
from curation.exports.rows.messages import ExportedMessage, call_order_reason
from curation.exports.rows.skip_reasons import SkipReason


def _message(message: ExportedMessage) -> dict[str, object]:
    """Return a message with the keys of OpenAI's API: content may be missing beside calls, a tool has no name."""
    kept: dict[str, object] = {"role": message["role"]}
    if message["content"] or "tool_calls" not in message:
        kept["content"] = message["content"]
    if "tool_calls" in message:
        kept["tool_calls"] = message["tool_calls"]
    if "tool_call_id" in message:
        kept["tool_call_id"] = message["tool_call_id"]
    if "images" in message:
        kept["content"] = with_parts(message, _image)["content"]
    return kept


def _image(address: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": address}}


def _sft_rows(example: TrainingExample) -> Iterator[DataRow | SkipReason]:
    messages, approved = example.messages, example.approved
    if reason := call_order_reason(messages) or (None if are_asked(messages) else SkipReason.NO_IMAGES):
        yield reason
        return
    weighted = [
        {**_message(message), "weight": int(index in approved)} if message["role"] == "assistant" else _message(message)
        for index, message in enumerate(messages)
    ]
    content = with_tools({"messages": weighted}, example.tools)
    yield DataRow(example.source, content, messages, [[]], images=images_of(messages))


def _preference_rows(example: TrainingExample) -> Iterator[DataRow | SkipReason]:
    for found in one_message_pairs(example):
        if isinstance(found, SkipReason):
            yield found
        elif reason := call_order_reason([*found.prompt, *found.chosen]):
            yield reason
        elif not are_asked(found.prompt):
            yield SkipReason.NO_IMAGES
        else:
            given = [_message(message) for message in found.prompt]
            content: dict[str, object] = {
                "input": {"messages": given, "tools": example.tools, "parallel_tool_calls": True},
                "preferred_output": [_message(found.chosen[0])],
                "non_preferred_output": [_message(found.rejected[0])],
            }
            yield preference_row(found, content)


SFT = Format(
    name="openai-sft",
    about='`{"messages": […], "tools"?}`, each assistant message with its `weight`',
    trained="assistant messages of `weight` 1, the approved ones; the others have 0",
    pairs=False,
    rows=_sft_rows,
    columns={"messages": ["json"], "tools": ["json"]},
    plain_columns={"messages": [{"role": "string", "content": "string", "weight": "int64"}]},
    images="inline",
)
PREFERENCE = Format(
    name="openai-preference",
    about='`{"input": {"messages", "tools", "parallel_tool_calls"}, "preferred_output": [one], "non_preferred_output":'
    " [one]}`",
    trained="the preferred output over the other",
    pairs=True,
    rows=_preference_rows,
    columns={"input": "json", "preferred_output": ["json"], "non_preferred_output": ["json"]},
    plain_columns={
        "input": {"messages": [PLAIN_MESSAGE], "tools": ["string"], "parallel_tool_calls": "bool"},
        "preferred_output": [PLAIN_MESSAGE],
        "non_preferred_output": [PLAIN_MESSAGE],
    },
    images="inline",
)
FORMATS = (SFT, PREFERENCE)


def _script(name: str, files: Sequence[DataFile]) -> dict[str, str]:
    given = any(files_of(files, form.name) for form in FORMATS)
    return {name: (SCRIPTS / name).read_text()} if given else {}


def _commands(script: str, files: Sequence[DataFile]) -> list[str]:
    return [f"python {script} {form.name}" for form in FORMATS if files_of(files, form.name)]


OPENAI = Trainer(
    name="openai",
    title="OpenAI",
    formats=[form.name for form in FORMATS],
    config=lambda files, longest: _script("openai_finetune.py", files),
    commands=lambda files: _commands("openai_finetune.py", files),
)
TOGETHER = Trainer(
    name="together",
    title="Together",
    formats=[form.name for form in FORMATS],
    config=lambda files, longest: _script("together_finetune.py", files),
    commands=lambda files: _commands("together_finetune.py", files),
)
