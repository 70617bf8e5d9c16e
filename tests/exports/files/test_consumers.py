"""Real consumers read the files: `datasets`, by file and by the card of the folder."""

from pathlib import Path
from typing import Any

import duckdb
import pytest

from curation.exports.models import Export
from curation.projects.models import Project
from tests.exports.exporting import OF_ANSWERS, approve, content, export_of, make_approved, make_rejected
from tests.factories import CHALLENGER, HISTORY, KING, called, make_imported, make_project, make_user, set_history
from tests.sampled import one_of

pytestmark = pytest.mark.django_db(transaction=True)
RECIPE: dict[str, Any] = {"formats": ["sft-messages", "dpo"], "splits": {"train": 0.5, "val": 0.5}, "metadata": True}
CALL = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": {"command": "ls", "n": 1}}}
TOOLS = [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object", "properties": {}}}}]
CALLING = [
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
        prompt = sample.duel.prompt
        set_history(prompt, [*prompt.text.history, *CALLING[len(HISTORY) :]], TOOLS)


def datasets() -> Any:
    """The library, loaded by the process that runs these tests: all processes import this file."""
    return pytest.importorskip("datasets")


def load(tmp_path: Path, **options: Any) -> Any:
    return datasets().load_dataset(cache_dir=str(tmp_path / "cache"), **options)


@pytest.mark.parametrize("gzipped", [False, True])
def test_every_data_file_loads_as_json(tmp_path: Path, gzipped: bool) -> None:
    project = make_project()
    filled(project)
    export = export_of(project, {**RECIPE, "gzip": gzipped})
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
    export = export_of(project, RECIPE)
    folder = unpack(export, tmp_path / "export")
    names = set(datasets().get_dataset_config_names(str(folder)))
    assert names == {"sft-messages", "dpo"}
    loaded = load(tmp_path, path=str(folder), name="dpo")
    assert {split: len(part) for split, part in loaded.items()} == {
        file.split: file.rows for file in export.files.filter(format="dpo")
    }


def test_labels_of_answers_and_of_steps_are_true_or_false(tmp_path: Path) -> None:
    project, user = make_project(), make_user()
    make_approved(project, by=user)
    make_rejected(project, by=user)
    steps = (called("ls", "a"), called("cat a", "1", 2))
    session = make_imported(project, *steps, marks={"2": {"label": "correct"}, "3": {"label": "wrong"}})
    approve(session.sample, by=user)
    recipe = {"formats": ["kto", "stepwise", "atif"], "sources": ["decisions"], "metadata": True}
    folder = unpack(export_of(project, recipe), tmp_path / "export")
    assert datasets().get_dataset_config_names(str(folder)) == ["kto", "stepwise"]
    assert load(tmp_path, path=str(folder), name="kto")["train"]["label"] == [True, False, True, True]
    row = load(tmp_path, path=str(folder), name="stepwise")["train"][0]
    assert (row["labels"], len(row["completions"]), type(row["prompt"])) == ([True, False], 2, str)


@pytest.mark.parametrize("storage", one_of(3, [{}, {"gzip": True}, {"parquet": True}]))
def test_the_folder_alone_loads_with_the_messages_of_each_row(tmp_path: Path, storage: dict[str, Any]) -> None:
    """Rows with and without tools have the same columns, and no message has a key that it does not need."""
    project = make_project()
    filled(project)
    names = OF_ANSWERS
    recipe = {"formats": names, "metadata": True, "near_duplicates": None, **storage}
    export = export_of(project, recipe)
    folder = unpack(export, tmp_path / "export")
    default = load(tmp_path, path=str(folder))["train"]
    assert default.features == load(tmp_path, path=str(folder), name="sft-messages")["train"].features
    turn, called = default[0], default[12]
    assert set(map(tuple, turn["messages"])) == {("role", "content")} and turn["tools"] is None
    assert called["tools"] == TOOLS
    assert called["messages"][2:4] == [
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {"role": "tool", "content": "billing", "tool_call_id": "c1"},
    ]
    for name in set(names) - ({"verl"} if "parquet" not in storage else set()):
        parts = load(tmp_path, path=str(folder), name=name)
        file = export.files.get(format=name)
        assert len(parts["train"]) == file.rows == (12 if name == "axolotl-dpo" else 32 if name == "kto" else 16)
        assert parts["train"][0]["id"] and parts["train"][15 % file.rows]["reviewers"]


def test_parquet_has_the_columns_for_sql_and_the_same_bytes_twice(tmp_path: Path) -> None:
    project = make_project()
    for number in range(3):
        make_approved(project, instance_id=f"task-{number}", score=90.0)
    recipe = {"formats": ["dpo", "verl"], "parquet": True, "metadata": True}
    one, two = export_of(project, recipe), export_of(project, recipe)
    for name in ("dpo.train.parquet", "verl.train.parquet"):
        assert content(one, name) == content(two, name)
    path = unpack(one, tmp_path / "export") / "dpo.train.parquet"
    query = "SELECT count(*), any_value(chosen[1].content), min(score) FROM read_parquet(?)"
    found = duckdb.connect().execute(query, [str(path)]).fetchall()
    assert found == [(3, CHALLENGER, 90.0)]


def test_a_compressed_file_has_the_same_bytes_twice() -> None:
    project = make_project()
    make_approved(project)
    recipe = {"formats": ["dpo"], "gzip": True}
    name = "dpo.train.jsonl.gz"
    assert content(export_of(project, recipe), name) == content(export_of(project, recipe), name)
