"""One training: a program in a process of its own gets rows and prompts, and returns its answers, or one figure."""

import contextlib
import json
import math
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings

from curation.evaluations.uplift.params import Arm
from curation.imports.sources.open import open_stored
from curation.imports.sources.rows import BadRow, SourcePosition
from curation.runs.kinds import ItemFailed, Json
from sandbox.harbor.command import environment

SMALL = Path(__file__).with_name("train_small.py")
# Variables of machines with graphics cards and of model caches, which a trainer gets besides those of any program.
PASSED = re.compile(r"(CUDA|HF|HSA|NCCL|NVIDIA|ROCR|TORCH|TRL)_\w+|(OMP|MKL)_NUM_THREADS|PYTHONPATH|LD_LIBRARY_PATH")
# The kernel's signal at the death of the worker.
WATCHED = ("setpriv", "--pdeathsig", "KILL")
POLL_SECONDS = 0.2
SHOWN = 1_500


@dataclass(frozen=True, slots=True)
class TrainedModel:
    """The answers by row, or a `figure` from 0 to 1 without them. `costs` are the trainer's own figures of its use."""

    answers: Mapping[int, str]
    figure: float | None
    seconds: float
    costs: Json


def command_of(trainer: str) -> list[str]:
    """Return the words of the trainer's command; empty if the server has none."""
    return [sys.executable, str(SMALL)] if trainer == "small" else shlex.split(settings.TRAIN_COMMAND)


def write_rows(arm: Arm, seed: int, path: Path) -> None:
    """Write the arm's rows as `{"prompt": […], "completion": […]}`; the seed draws those of a smaller arm."""
    rows = [_row(value) for file in arm.files for value in _values(file.stored_as)]
    if arm.rows is not None:
        rows = random.Random(seed).sample(rows, arm.rows)  # noqa: S311 - a seeded draw, no secret
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def _values(key: str) -> list[dict[str, Any]]:
    with open_stored(key) as opened:
        rows = list(opened.reader.rows(SourcePosition()))
    if bad := next((row for row in rows if isinstance(row, BadRow)), None):
        raise ItemFailed(f"Line {bad.offset + 1} of the export cannot be read: {bad.reason}")
    return [row.value for row in rows if not isinstance(row, BadRow)]


def _row(value: dict[str, Any]) -> Json:
    messages = value.get("messages") or [*value["prompt"], *value["completion"]]
    last = len(value["prompt"]) if "prompt" in value else len(messages) - 1
    row = {"prompt": messages[:last], "completion": messages[last:]}
    return {**row, "tools": value["tools"]} if value.get("tools") else row


def train(
    command: list[str],
    folder: Path,
    *,
    rows: Path,
    prompts: Mapping[int, object],
    seed: int,
    given: Json,
    seconds: float,
    checkpoint: Callable[[], None],
) -> TrainedModel:
    """Run the trainer to its end. `prompts` are messages by row. Raises `ItemFailed`, and what `checkpoint` raises;
    then the trainer and its processes are killed."""
    asked, output = folder / "prompts.jsonl", folder / "output"
    output.mkdir()
    asked.write_text("".join(json.dumps({"row": row, "messages": said}) + "\n" for row, said in prompts.items()))
    words = ["--rows", rows, "--prompts", asked, "--seed", seed, "--settings", json.dumps(given), "--output", output]
    begun, log = time.monotonic(), folder / "log.txt"
    passed = {name: value for name, value in os.environ.items() if PASSED.fullmatch(name)}
    with log.open("wb") as said:
        try:
            process = subprocess.Popen(  # noqa: S603 - the operator's command, or our own
                [*WATCHED, *command, *map(str, words)],
                cwd=folder,
                env=environment({"HF_HUB_OFFLINE": "1", **passed}),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
        except OSError as error:
            raise ItemFailed(f"The trainer cannot be started: {error.strerror}.") from None
        try:
            while process.poll() is None:
                checkpoint()
                if time.monotonic() - begun > seconds:
                    raise ItemFailed(f"The training took longer than {seconds / 3600:g} hours.")
                time.sleep(POLL_SECONDS)
        finally:
            _kill(process)
    took = time.monotonic() - begun
    if process.returncode:
        raise ItemFailed(_why(process.returncode, log))
    costs = _read(output / "costs.json") if (output / "costs.json").exists() else {}
    if (output / "answers.jsonl").exists():
        return TrainedModel(_answers(output / "answers.jsonl", prompts), None, took, costs)
    return TrainedModel({}, _figure(output / "figure.json"), took, costs)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the rest of the trainer's group, also after its own end."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _why(returned: int, log: Path) -> str:
    text = log.read_text(errors="replace").strip()[-SHOWN:]
    if missing := re.search(r"ModuleNotFoundError: No module named '(\w+)", text):
        return f"{missing[1]} is not installed on this worker: pip install 'winnow-curation[train]'."
    return f"The trainer ended with {returned}: {text or 'it said nothing'}"


def _read(path: Path) -> Json:
    try:
        found = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse)
    except ValueError as error:
        raise ItemFailed(f"The trainer's {path.name} is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise ItemFailed(f"The trainer's {path.name} is no object.")
    return found


def _refuse(constant: str) -> None:
    raise ValueError(f"it has {constant}")


def _answers(path: Path, prompts: Mapping[int, object]) -> dict[int, str]:
    found: dict[int, str] = {}
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            entry = json.loads(line)
            found[entry["row"]] = "".join([entry["answer"]])
        except (ValueError, KeyError, TypeError):
            reason = f"Line {number} of the trainer's answers is no object with `row` and the text `answer`."
            raise ItemFailed(reason) from None
        if number > len(found):
            raise ItemFailed(f"Line {number} of the trainer's answers is a second one for the row {entry['row']}.")
    if foreign := found.keys() - prompts.keys():
        raise ItemFailed(f"The trainer answered rows that it was not asked for, such as {min(map(str, foreign))}.")
    if missing := len(prompts.keys() - found.keys()):
        raise ItemFailed(f"The trainer answered {len(prompts) - missing} of {len(prompts)} prompts.")
    return {row: found[row] for row in prompts}


def _figure(path: Path) -> float:
    if not path.exists():
        raise ItemFailed("The trainer wrote neither `answers.jsonl` nor `figure.json`.")
    value = _read(path).get("value")
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or not 0 <= value <= 1:
        raise ItemFailed("`value` in the trainer's `figure.json` is no number from 0 to 1.")
    return float(value)
