"""Images of sessions leave with the rows of formats that have a place for them, each content once."""

import base64
from pathlib import Path
from typing import Any

import pytest

from curation.exports.formats.parts import parts_of
from curation.imports.layouts.session import AgentSession
from curation.projects.models import Project
from curation.trajectories.imported.images import keep_images
from curation.trajectories.models import Trajectory
from tests.exports.exporting import approve, content, export_of, make_approved, reasons, rows
from tests.factories import called, make_imported, make_project, make_user

datasets = pytest.importorskip("datasets")
pytestmark = pytest.mark.django_db(transaction=True)
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
DATA = "data:image/png;base64," + base64.b64encode(PIXEL).decode()
ANSWER = {"source": "agent", "message": "A red pixel."}
FORMATS = ["sft-prompt-completion", "openai-sft", "llamafactory-sft", "axolotl-chat"]


def image(address: str = DATA) -> dict[str, Any]:
    return {"type": "image", "source": {"media_type": "image/png", "path": address}}


def with_images(project: Project, *steps: dict[str, Any], task: str = "look") -> Trajectory:
    """An approved session whose images are kept as an import keeps them."""
    trajectory = make_imported(project, *steps, task=task)
    session, kept = keep_images(project.pk, AgentSession(layout="ATIF", steps=trajectory.text.steps))
    for row in kept:
        row.trajectory = trajectory
        row.save()
    trajectory.text.steps = list(session.steps)
    trajectory.text.save()
    approve(trajectory.sample, by=make_user())
    return trajectory


def asked(*parts: Any) -> dict[str, Any]:
    return {"source": "user", "message": [{"type": "text", "text": "What is this?"}, *parts]}


def shown(address: str = DATA) -> dict[str, Any]:
    """A step whose tool returns an image."""
    step = called("screenshot", "")
    step["observation"]["results"][0]["content"] = [image(address)]
    return step


def test_each_format_has_the_images_in_its_own_form() -> None:
    project = make_project()
    with_images(project, asked(image()), ANSWER)
    export = export_of(project, {"formats": FORMATS})
    (file,) = export.files.filter(name__startswith="images/")
    assert content(export, file.name) == PIXEL and file.name.endswith(f"{file.sha256}.png")

    (trl,) = rows(export, "sft-prompt-completion.train.jsonl")
    assert trl["prompt"][-1]["content"] == [{"type": "text", "text": "What is this?"}, {"type": "image"}]
    assert trl["images"] == [file.name]
    (openai,) = rows(export, "openai-sft.train.jsonl")
    assert openai["messages"][-2]["content"][1] == {"type": "image_url", "image_url": {"url": DATA}}
    (llamafactory,) = rows(export, "llamafactory-sft.train.jsonl")
    assert llamafactory["conversations"][0]["value"].endswith("What is this?\n<image>")
    assert llamafactory["images"] == [file.name]
    assert b'"images": "images"' in content(export, "dataset_info.json")
    assert export.counts["excluded"] == {"no_images": 1}  # of Axolotl's format


def test_an_image_is_written_once_for_all_rows() -> None:
    project = make_project()
    with_images(project, asked(image(), image()), ANSWER)
    with_images(project, {"source": "user", "message": "Begin."}, asked(image()), ANSWER, task="again")
    export = export_of(project, {"formats": ["llamafactory-sft"], "near_duplicates": None})
    assert export.files.filter(name__startswith="images/").count() == 1
    assert sorted(len(row["images"]) for row in rows(export, "llamafactory-sft.train.jsonl")) == [1, 2]


def test_rows_before_the_first_image_have_the_column_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`datasets` reads the folder by its card, and opens the images."""
    project = make_project()
    make_approved(project)
    with_images(project, asked(image()), ANSWER)
    export = export_of(project, {"trainer": "trl", "formats": ["sft-prompt-completion"]})
    written = rows(export, "sft-prompt-completion.train.jsonl")
    assert [len(row["images"]) for row in written] == [0, 1]
    (tmp_path / "images").mkdir()
    for file in export.files.all():
        (tmp_path / file.name).write_bytes(content(export, file.name))
    monkeypatch.chdir(tmp_path)
    loaded = datasets.load_dataset(str(tmp_path), cache_dir=str(tmp_path / "cache"))["train"]
    assert str(loaded.features["images"]) == "List(Image(mode=None, decode=True))"
    assert (
        loaded.cast_column("images", datasets.List(datasets.Image(decode=False)))[1]["images"][0]["path"]
        == (written[1]["images"][0])
    )


def test_an_image_of_a_tool_leaves_where_its_reader_takes_one() -> None:
    project = make_project()
    trajectory = with_images(project, shown(), ANSWER)
    export = export_of(project, {"formats": FORMATS})
    assert {file.format for file in export.files.exclude(format="")} == {"llamafactory-sft", "sft-prompt-completion"}
    turns = rows(export, "llamafactory-sft.train.jsonl")
    assert [row["images"] for row in turns][0] == [] and turns[1]["conversations"][-2]["value"] == "<image>"
    # The first step of the session is before the image.
    assert len(rows(export, "sft-prompt-completion.train.jsonl")) == 1
    assert reasons(export) == {str(trajectory.sample_id): "no_images"}


def test_an_image_that_the_project_does_not_keep_is_named_as_the_reason() -> None:
    project = make_project()
    with_images(project, asked(image("images/lost.png")), ANSWER)
    export = export_of(project, {"formats": ["sft-messages", "llamafactory-sft"]})
    assert export.counts["excluded"] == {"no_images": 1} and export.counts["exported"] == 0


@pytest.mark.parametrize(
    "row",
    [
        {"messages": [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "What is this?"}]}]},
        {"conversations": [{"from": "human", "value": "<image>What is this?"}]},
    ],
)
def test_rows_with_images_are_read_again(row: dict[str, Any]) -> None:
    (part,) = parts_of({**row, "images": ["images/a.png"]}).prompt
    assert part.text == "What is this?"
