"""Real consumers read the files: `datasets`, by file and by the card of the folder."""

from pathlib import Path
from typing import Any

import pytest

from curation.exports.models import Export
from curation.projects.models import Project
from tests.exports.exporting import content, make_approved, run_export
from tests.factories import CHALLENGER, HISTORY, KING, make_project, make_user

datasets = pytest.importorskip("datasets")
pytestmark = pytest.mark.django_db(transaction=True)
RECIPE: dict[str, Any] = {"formats": ["sft-messages", "dpo"], "splits": {"train": 0.5, "val": 0.5}, "metadata": True}
CALL = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": {"command": "ls", "n": 1}}}
TOOLS = [
    *HISTORY,
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "billing"}]},
]


def unpack(export: Export, folder: Path) -> Path:
    folder.mkdir()
    for file in export.files.all():
        (folder / file.name).write_bytes(content(export, file.name))
    return folder


def filled(project: Project) -> None:
    user = make_user()
    for number in range(12):
        make_approved(project, by=user, instance_id=f"task-{number}", score=None if number < 4 else 70.0 + number)
    for number in range(4):
        sample = make_approved(project, by=user, instance_id=f"tools-{number}")
        text = sample.duel.prompt.text
        text.history = TOOLS
        text.save()


def load(tmp_path: Path, **options: Any) -> Any:
    return datasets.load_dataset(cache_dir=str(tmp_path / "cache"), **options)


@pytest.mark.parametrize("gzipped", [False, True])
def test_every_data_file_loads_as_json(tmp_path: Path, gzipped: bool) -> None:
    project = make_project()
    filled(project)
    export = run_export(project, {**RECIPE, "gzip": gzipped})
    folder = unpack(export, tmp_path / "export")
    data = export.files.exclude(format="")
    assert {(f.format, f.split) for f in data} == {(a, b) for a in RECIPE["formats"] for b in ("train", "val")}
    for file in data:
        loaded = load(tmp_path, path="json", data_files=str(folder / file.name))["train"]
        assert len(loaded) == file.rows
        last = loaded[0]["messages"][-1] if file.format == "sft-messages" else loaded[0]["chosen"][0]
        assert (last["role"], last["content"]) == ("assistant", CHALLENGER)
        if file.format == "dpo":
            assert [m["content"] for m in loaded[0]["rejected"]] == [KING]
        assert loaded[0]["reviewers"] and isinstance(loaded[0]["score"], float)


def test_the_card_makes_the_folder_a_dataset_with_named_configurations(tmp_path: Path) -> None:
    project = make_project(name='A "quoted": name # and --- more')
    filled(project)
    export = run_export(project, RECIPE)
    folder = unpack(export, tmp_path / "export")
    names = set(datasets.get_dataset_config_names(str(folder)))
    assert names == {"sft-messages", "dpo", "sft-messages-tools", "dpo-tools"}
    loaded = load(tmp_path, path=str(folder), name="dpo")
    assert {split: len(part) for split, part in loaded.items()} == {
        file.split: file.rows for file in export.files.filter(format="dpo") if ".tools." not in file.name
    }


def test_tool_calls_are_kept_in_a_shape_that_has_columns(tmp_path: Path) -> None:
    project = make_project()
    filled(project)
    export = run_export(project, {"formats": ["sft-messages"]})
    folder = unpack(export, tmp_path / "export")
    loaded = load(tmp_path, path="json", data_files=str(folder / "sft-messages.train.tools.jsonl"))["train"]
    called, answered = loaded[0]["messages"][2:4]
    assert called["tool_calls"][0]["function"] == {"name": "bash", "arguments": '{"command":"ls","n":1}'}
    assert (answered["role"], answered["tool_call_id"], answered["content"]) == ("tool", "c1", "billing")
    assert set(map(len, loaded[0]["messages"])) == {5}
