"""LLaMA-Factory, Axolotl and verl read the files with their own code: each row is used, and only approved turns are in
the loss. `make consumers` installs them."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from curation.exports.models import Export
from curation.projects.models import Project
from curation.trajectories.models import Outcome, Strategy
from tests.exports.consumers.tiny_model import write_tokenizer
from tests.exports.exporting import (
    approve,
    content,
    export_of,
    make_approved,
    make_kept,
    make_pair,
    make_rejected,
    reject,
    rows,
    same_prompt,
)
from tests.factories import (
    CHALLENGER,
    HISTORY,
    KING,
    called,
    make_imported,
    make_project,
    make_scenario,
    make_trajectory,
    make_user,
    set_history,
)

INSTALLED = Path(sys.prefix) / "consumers"
HERE = Path(__file__).parent
COMMANDS = ["todo --help", "todo", "echo 'hello world' > greeting.txt", "exit"]
CALL = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
TOOLS = [{"type": "function", "function": {"name": "bash", "description": "Run it.", "parameters": {"type": "object"}}}]
CALLING = [
    *HISTORY,
    {"role": "assistant", "content": "I look.", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "billing"},
]
ANSWERED = [*HISTORY, {"role": "assistant", "content": "An unapproved turn."}, {"role": "user", "content": "Go on."}]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(600), pytest.mark.slow, pytest.mark.embedded]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    if not (INSTALLED / "torch").exists():
        if os.environ.get("CI"):
            pytest.fail("the trainers are not installed: make consumers")
        pytest.skip("the trainers are not installed: make consumers")
    yield write_tokenizer(tmp_path_factory.mktemp("model") / "tiny")


def exported(project: Project, recipe: dict[str, Any]) -> Export:
    """Three turns, one with an unapproved answer before it and one with tools; a rejected turn; a session of three
    commands with a pair at the first divergence and one of whole trajectories."""
    user, scenario = make_user(), make_scenario(project)
    for history, tools in ((HISTORY, []), (ANSWERED, []), (CALLING, TOOLS)):
        set_history(make_approved(project, by=user).duel.prompt, history, tools)
    make_rejected(project, by=user)
    kept = make_kept(project, scenario, by=user)
    lost: dict[str, Any] = {"outcome": Outcome.NO_TERMINAL, "terminal": "", "commands": ("todo --help", "ls")}
    failed = make_trajectory(project, scenario, **lost, outputs=("usage: todo\n", ""))
    for strategy in Strategy.values:
        make_pair(kept, failed, strategy)
    return export_of(project, recipe)


def exported_sessions(project: Project, recipe: dict[str, Any]) -> Export:
    """Imported runs with tools: one with a step that is not learned from and a failed one of its task, one that ends
    after its first step, and a rejected one. An approved and a rejected answer to one prompt."""
    user = make_user()
    done = {"source": "agent", "message": "One row."}
    steps = (called("ls", "a.csv\n"), called("cat a.csv", "1\n", 2), called("wc -l a.csv", "1\n", 3), done)
    solved = make_imported(project, *steps, marks={"3": {"learn": False}})
    failed = make_imported(project, called("pwd", "/app\n"), done, outcome=Outcome.FAILED)
    trimmed = make_imported(
        project, called("ls b", "b\n"), called("rm b", "", 2), task="trim", marks={"3": {"end": True}}
    )
    bad = make_imported(project, called("rm -rf a", ""), {**done, "message": "Gone."}, task="bad")
    for kept in (solved, trimmed):
        approve(kept.sample, by=user)
    for avoided in (failed, bad):
        reject(avoided.sample, by=user)
    make_pair(solved, failed, at=2)
    same_prompt(make_approved(project, by=user), make_rejected(project, by=user, challenger="A rejected answer."))
    return export_of(project, {"near_duplicates": None, **recipe})


def read(reader: str, export: Export, folder: Path, model: Path) -> dict[str, list[dict[str, str]]]:
    folder.mkdir()
    for file in export.files.all():
        (folder / file.name).write_bytes(content(export, file.name))
    folders = [INSTALLED / "prm", INSTALLED] if reader == "prm" else [INSTALLED]
    path = {"PYTHONPATH": os.pathsep.join(map(str, folders)), "HF_HOME": str(folder / "cache"), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, str(HERE / "readers.py"), reader, str(folder), str(model)]
    done = subprocess.run(command, env=os.environ | path, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, list[dict[str, str]]] = json.loads((folder / "read.json").read_text())
    return found


def losses(rows: list[dict[str, str]]) -> list[str]:
    return [row["loss"].strip().removesuffix("<|im_end|>") for row in rows]


@pytest.mark.parametrize("storage", [{}, {"parquet": True}])
def test_llamafactory_uses_every_row_and_learns_its_last_turn(
    tmp_path: Path, tokenizer: Path, storage: dict[str, Any]
) -> None:
    export = exported(make_project(), {"trainer": "llamafactory", **storage})
    found = read("llamafactory", export, tmp_path / "export", tokenizer)
    assert {name: len(rows) for name, rows in found.items()} == {"llamafactory-sft": 7, "llamafactory-dpo": 4}
    assert export.counts["rows"] == {name: {"train": len(rows)} for name, rows in found.items()}
    assert losses(found["llamafactory-sft"]) == [CHALLENGER] * 3 + COMMANDS
    called = found["llamafactory-sft"][2]["text"]
    assert '"description": "Run it."' in called and '{"name": "bash", "arguments": {"command": "ls"}}' in called
    assert losses(found["llamafactory-dpo"]) == [CHALLENGER] * 3 + ["todo"]


def test_axolotl_learns_the_approved_turns_of_every_row(tmp_path: Path, tokenizer: Path) -> None:
    export = exported(make_project(), {"trainer": "axolotl"})
    found = read("axolotl", export, tmp_path / "export", tokenizer)
    assert {name: len(rows) for name, rows in found.items()} == {"axolotl-chat": 4, "axolotl-dpo": 3}
    assert export.counts["rows"] == {name: {"train": len(rows)} for name, rows in found.items()}
    *turns, session = (row["loss"].split("<|im_end|>") for row in found["axolotl-chat"])
    assert [[part.strip() for part in parts if part.strip()] for parts in turns] == [[CHALLENGER]] * 3
    assert [part.strip() for part in session if part.strip()] == COMMANDS
    called = found["axolotl-chat"][2]["text"]
    assert '"arguments": {"command": "ls"}' in called and "Run it." in called
    assert losses(found["axolotl-dpo"]) == [CHALLENGER] * 2 + ["todo"]


def test_verl_learns_the_approved_turns_of_every_row(tmp_path: Path, tokenizer: Path) -> None:
    export = exported(make_project(), {"trainer": "verl"})
    found = read("verl", export, tmp_path / "export", tokenizer)["verl"]
    assert len(found) == 4 == export.counts["rows"]["verl"]["train"]
    *turns, session = (row["loss"].split("<|im_end|>") for row in found)
    assert [[part.strip() for part in parts if part.strip()] for parts in turns] == [[CHALLENGER]] * 3
    assert [part.strip() for part in session if part.strip()] == COMMANDS
    assert '"arguments": {"command": "ls"}' in found[2]["text"] and "Run it." in found[2]["text"]


@pytest.mark.slow
def test_one_step_of_sft_dpo_and_kto_on_a_tiny_model(tmp_path: Path, tokenizer: Path) -> None:
    export = exported(make_project(), {"trainer": "trl"})
    found = read("trl", export, tmp_path / "export", tokenizer)
    assert {name: len(rows) for name, rows in found.items()} == {"sft": 7, "dpo": 5, "kto": 12}
    assert losses(found["sft"]) == [CHALLENGER] * 3 + COMMANDS
    assert KING not in "".join(row["loss"] for row in found["sft"])


LEARNED = ["ls", "wc -l a.csv", "ls b"]


def trained(rows: list[dict[str, str]]) -> str:
    return "\n".join(row["loss"] for row in rows)


@pytest.mark.parametrize(
    ("trainer", "rows"),
    [
        ("llamafactory", {"llamafactory-sft": 5, "llamafactory-dpo": 2}),
        ("axolotl", {"axolotl-chat": 3, "axolotl-dpo": 1}),
        ("verl", {"verl": 3}),
        ("trl", {"sft": 5, "dpo": 2, "kto": 10}),
    ],
)
def test_sessions_with_tools_train_on_what_was_approved_alone(
    tmp_path: Path, tokenizer: Path, trainer: str, rows: dict[str, int]
) -> None:
    export = exported_sessions(make_project(), {"trainer": trainer})
    found = read(trainer, export, tmp_path / "export", tokenizer)
    assert {name: len(read) for name, read in found.items()} == rows
    loss = trained(next(iter(found.values())))
    assert all(f'"{command}"' in loss for command in LEARNED) and "One row." in loss and CHALLENGER in loss
    assert not any(text in loss for text in ("cat a.csv", "rm b", "pwd", "Gone.", "A rejected answer."))


def test_one_step_of_grpo_on_the_prompts(tmp_path: Path, tokenizer: Path) -> None:
    project, user = make_project(), make_user()
    scenario = make_scenario(project, "greet")
    make_kept(project, scenario, by=user)
    make_trajectory(project, scenario, sample_index=1, outcome=Outcome.NO_TERMINAL, terminal="")
    export = export_of(project, {"formats": ["rl-prompts"], "filter": {"status": "approved"}})
    found = read("grpo", export, tmp_path / "export", tokenizer)
    assert {row["loss"] for row in found["rl-prompts"]} == {"greet"}


def test_one_step_of_a_process_reward_model_on_labelled_steps(tmp_path: Path, tokenizer: Path) -> None:
    """Each label is at the last token of its completion, which is the separator of steps; the prompt has none."""
    project, user = make_project(), make_user()
    steps = (called("ls", "a.csv"), called("cat a.csv", "1", 2), called("rm a.csv", "", 3))
    marks = {"2": {"label": "correct"}, "4": {"label": "risky"}}
    approve(make_imported(project, *steps, marks=marks).sample, by=user)
    export = export_of(project, {"formats": ["stepwise"], "filter": {"status": "approved"}})
    (written,) = rows(export, "stepwise.train.jsonl")
    assert (len(written["completions"]), written["labels"]) == (2, [True, False])
    (read_row,) = read("prm", export, tmp_path / "export", tokenizer)["stepwise"]
    first, second = written["completions"]
    assert read_row["loss"] == f"{written['prompt']}{first}\n1|{second}\n0"
