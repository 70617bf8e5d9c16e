"""verl's multi-turn SFT rows, as Parquet, which is all that it reads."""

from collections.abc import Sequence

from curation.exports.formats.row import (
    EXAMPLE_MODEL,
    MARKED_MESSAGE,
    SCRIPTS,
    DataFile,
    Format,
    Trainer,
    files_of,
    marked_rows,
    sequence_length,
)

_SCRIPT, _DATASET = "verl-sft.sh", "verl_dataset.py"


SFT = Format(
    name="verl",
    about="Parquet with `messages` and `tools` (JSON text); each message has a `train` flag",
    trained="assistant messages with `train: true`, the approved ones, through `verl_dataset.py`. verl's own reader"
    " learns from every assistant message",
    pairs=False,
    rows=marked_rows,
    columns={"messages": [MARKED_MESSAGE], "tools": "string"},
    parquet=True,
)
FORMATS = (SFT,)


def _config(files: Sequence[DataFile], longest: int) -> dict[str, str]:
    parts = {file.split: file.name for file in files_of(files, SFT.name)}
    if not parts:
        return {}
    train, length = next(iter(parts.values())), sequence_length(longest)
    arguments = {
        "data.train_files": train,
        "data.val_files": parts.get("val", "null"),
        "data.custom_cls.path": _DATASET,
        "data.custom_cls.name": "ApprovedTurnsDataset",
        "data.max_length": length,
        "data.max_token_len_per_gpu": length,
        "data.train_batch_size": 16,
        "data.micro_batch_size_per_gpu": 1,
        "data.ignore_input_ids_mismatch": "true",
        "model.path": EXAMPLE_MODEL,
        "trainer.total_epochs": 1,
        "trainer.project_name": "winnow",
        "trainer.experiment_name": "sft",
        "trainer.logger": "console",
    }
    lines = [
        "#!/usr/bin/env bash",
        "set -euo pipefail",
        'cd "$(dirname "$0")"',
        'torchrun --standalone --nproc_per_node="${GPUS:-1}" -m verl.trainer.sft_trainer \\',
        *(f"    {name}={value} \\" for name, value in arguments.items()),
        '    "$@"',
    ]
    return {_SCRIPT: "\n".join(lines) + "\n", _DATASET: (SCRIPTS / _DATASET).read_text()}


TRAINER = Trainer(
    name="verl",
    title="verl",
    formats=[SFT.name],
    config=_config,
    commands=lambda files: [f"bash {_SCRIPT}"] if files_of(files, SFT.name) else [],
)
