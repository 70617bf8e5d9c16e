"""Harbor tasks come in from archives, folders and data sets as scenarios of the family `harbor`."""

import io
import json
import tarfile
import zipfile
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from curation.imports.kinds import ImportParams
from curation.imports.pages.preview import preview
from curation.projects.models import Project
from curation.scenarios.models import Scenario
from sandbox.harbor.task_folder import TaskFile
from tests.factories import make_project, make_user
from tests.imports.bringing import bad_rows, bring, upload, zipped
from tests.sandbox.harbor.tasks import TOML, task_files
from tests.scenarios.harbor import harbor_document

pytestmark = pytest.mark.django_db(transaction=True)
Files = Mapping[str, TaskFile]


def tarred(files: Mapping[str, bytes], mode: str = "w:gz") -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as archive:  # type: ignore[call-overload]
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
        link = tarfile.TarInfo("one/environment/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    return packed.getvalue()


def below(folder: str, files: Files) -> dict[str, bytes]:
    return {f"{folder}/{path}": file.data for path, file in files.items()}


@pytest.fixture
def project(storage: Path, client: Client) -> Project:
    ada = make_user("ada")
    client.force_login(ada)
    return make_project("shell", user=ada)


class TestArchives:
    @pytest.mark.parametrize("pack", [zipped, tarred])
    def test_tasks_become_drafts(self, project: Project, pack: Any) -> None:
        files = below("set/one", task_files("one")) | below("set/two", task_files("two", instruction_md="Do two."))
        run = bring(project, "scenarios", pack(files), "tasks.zip")

        assert (run.state, run.result["scenarios"]) == ("succeeded", 2)
        row = Scenario.objects.with_bundle().get(name="acme/two")
        assert (row.family, row.status, row.title) == ("harbor", "draft", "Write a greeting")
        stored = {part["path"]: part for part in row.text.bundle["files"]}
        assert stored["instruction.md"]["content"] == "Do two."
        assert stored["tests/test.sh"]["mode"] == "755"
        assert "link" not in str(stored)

    def test_the_kind_need_not_be_chosen(self, project: Project) -> None:
        key = upload(project, zipped(below("one", task_files("one"))), "tasks.zip")
        seen = preview(project=project, params=ImportParams(kind="", upload=key))

        assert (seen.kind, seen.layout, seen.rows) == ("scenarios", "Harbor tasks", 1)
        assert "Write `hello world`" in seen.shown[0].text

    def test_the_same_again_changes_nothing(self, project: Project) -> None:
        packed = zipped(below("one", task_files("one")))
        bring(project, "scenarios", packed, "tasks.zip")
        run = bring(project, "scenarios", packed, "again.zip")

        assert (run.result["scenarios"], run.result["unchanged"]) == (0, 1)

    def test_bad_and_hostile_tasks_are_named_and_others_come_in(self, project: Project) -> None:
        files = below("good", task_files("good"))
        files |= below("bare", task_files("bare", tests__test_sh=None))
        files |= below("up", task_files("up")) | {"up/../../../etc/cron.d/x": b"* * * * * root true"}
        files |= below("big", task_files("big")) | {"big/environment/data": b"x" * (8 * 1024 * 1024)}
        run = bring(project, "scenarios", zipped(files), "tasks.zip")

        assert [row.name for row in Scenario.objects.all()] == ["acme/good"]
        said = " ".join(bad_rows(run).values())
        assert "bare: tests/test.sh: missing" in said
        assert "up: ../../../etc/cron.d/x: must be relative" in said
        assert "big: has more than 8 MiB" in said

    def test_a_bomb_is_refused(self, project: Project) -> None:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for path, file in task_files("one").items():
                archive.writestr(f"one/{path}", file.data)
            archive.writestr("one/environment/bomb", b"\0" * (80 * 1024 * 1024))
        run = bring(project, "scenarios", packed.getvalue(), "bomb.zip")

        assert run.state == "failed"
        assert not Scenario.objects.exists()

    def test_a_data_set_names_the_source_and_what_is_not_there(self, project: Project) -> None:
        tasks = [{"name": "one", "path": "tasks/one"}, {"name": "far", "path": "far", "git_url": "https://x.example"}]
        registry = [{"name": "acme", "version": "2.0", "description": "", "tasks": tasks}]
        files = {"registry.json": json.dumps(registry).encode()} | below("tasks/one", task_files("one"))
        run = bring(project, "scenarios", zipped(files), "set.zip")

        assert Scenario.objects.with_bundle().get().text.bundle["source"] == "acme@2.0"
        assert list(bad_rows(run).values()) == [
            "far: registry.json lists it, but it is not here; only tasks whose folders are sent are imported"
        ]

    def test_files_in_no_task_are_named(self, project: Project) -> None:
        registry = [{"name": "acme", "version": "2.0", "tasks": [{"name": "one", "path": "set/one"}]}]
        files = below("set/one", task_files("one")) | below("set/bad", task_files("bad", tests__test_sh=None))
        files |= {"set/README.md": b"Read me.", "set/one/.git/HEAD": b"ref: main", "notes.md": b"Mine."}
        run = bring(project, "scenarios", zipped(files | {"registry.json": json.dumps(registry).encode()}), "tasks.zip")
        told = {one["field"]: (one["rows"], one["becomes"]) for one in run.result["account"]}
        outside, left = "ignored: outside of every task's folder", "ignored: left by version control or another program"
        assert told == {
            "(file) notes.md": (1, outside),
            "(file) set/README.md": (1, outside),
            "(file) set/one/.git/HEAD": (1, left),
            "(files) *.md": (2, outside),
            "(files)": (1, left),
            "(files) *.json": (1, "the tasks of a data set"),
        }

    def test_a_task_inside_a_task_is_its_file(self, project: Project) -> None:
        files = below("one", task_files("one")) | below("one/environment/inner", task_files("inner"))
        bring(project, "scenarios", zipped(files), "tasks.zip")

        assert [row.name for row in Scenario.objects.all()] == ["acme/one"]


def test_the_command_imports_a_folder(project: Project, tmp_path: Path) -> None:
    for path, file in task_files("one").items():
        (tmp_path / "set/one" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "set/one" / path).write_bytes(file.data)
    out = StringIO()
    call_command("bundles", "import", str(tmp_path / "set"), project="shell", stdout=out)

    assert "1 created" in out.getvalue()
    assert Scenario.objects.get().family == "harbor"


class TestPages:
    def test_a_task_is_shown_with_what_it_needs(self, project: Project, client: Client) -> None:
        document = harbor_document(task_toml=TOML.replace("cpus = 1", "gpus = 1"), tests__note_md="<b>bold</b>")
        key = client.post("/api/v1/projects/shell/scenarios", document, content_type="application/json").json()["id"]
        page = client.get(reverse("scenario-page", args=["shell", key])).content.decode()

        for text in ("Instruction", "Environment", "Solution", "Tests", "It cannot be run here", "It needs a GPU."):
            assert text in page
        assert "&lt;b&gt;bold" in page
        row = client.get(f"/api/v1/scenarios/{key}").json()
        assert (row["family"], row["not_run_here"]) == ("harbor", ["It needs a GPU."])

    def test_what_the_api_returns_can_be_sent_back(self, project: Project, client: Client) -> None:
        made = client.post("/api/v1/projects/shell/scenarios", harbor_document(), content_type="application/json")
        row = client.get(f"/api/v1/scenarios/{made.json()['id']}").json()
        next(part for part in row["files"] if part["path"] == "instruction.md")["content"] = "Other."
        answer = client.put(f"/api/v1/scenarios/{row['id']}", row, content_type="application/json")

        assert (answer.status_code, answer.json()["version"]) == (200, 2)
        row["checker"] = "true"
        refused = client.put(f"/api/v1/scenarios/{row['id']}", row, content_type="application/json")
        assert [error["path"] for error in refused.json()["errors"]] == ["checker"]

    def test_errors_have_the_place_of_the_file(self, project: Project, client: Client) -> None:
        document = harbor_document(task_toml="x = [")
        answer = client.post("/api/v1/projects/shell/scenarios", document, content_type="application/json")

        number = [part["path"] for part in document["files"]].index("task.toml")
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["path"] == f"files.{number}"

    def test_a_file_is_edited_added_and_removed(self, project: Project, client: Client) -> None:
        made = client.post("/api/v1/projects/shell/scenarios", harbor_document(), content_type="application/json")
        row = Scenario.objects.get(pk=made.json()["id"])
        url = reverse("scenario-edit", args=["shell", row.pk])
        assert "Write `hello world`" in client.get(url).content.decode()

        edit = {"path": "instruction.md", "content": "Say hi.\r\nNow.\r\n", "version": "1"}
        assert client.post(url, edit).status_code == 302
        stale = client.post(url, edit | {"content": "lost?"})
        assert stale.status_code == 412
        assert "lost?" in stale.content.decode()
        added = {"path": "environment/in.txt", "content": "1", "program": "on", "version": "2"}
        assert client.post(url, added).status_code == 302
        wrong = client.post(url, {"path": "tests/test.sh", "content": "", "version": "3", "then": "remove"})
        assert wrong.status_code == 422
        assert "tests/test.sh: missing" in wrong.content.decode()

        stored = {part["path"]: part for part in Scenario.objects.with_bundle().get().text.bundle["files"]}
        assert stored["instruction.md"]["content"] == "Say hi.\nNow.\n"
        assert stored["environment/in.txt"]["mode"] == "755"
        assert "tests/test.sh" in stored

    def test_bytes_are_kept_and_not_edited_on_a_page(self, project: Project, client: Client) -> None:
        document = harbor_document()
        document["files"].append({"path": "environment/data.bin", "base64": "AAEC"})
        made = client.post("/api/v1/projects/shell/scenarios", document, content_type="application/json")
        url = reverse("scenario-edit", args=["shell", made.json()["id"]]) + "?path=environment/data.bin"
        assert "replace it by the API" in client.get(url).content.decode()

        answer = client.post(url, {"path": "environment/data.bin", "content": "x", "version": "1"})
        assert answer.status_code == 422
        assert Scenario.objects.get().version == 1


def test_a_rollout_does_not_take_a_harbor_task(project: Project, client: Client) -> None:
    client.post("/api/v1/projects/shell/scenarios", harbor_document(), content_type="application/json")
    Scenario.objects.update(status="admitted")

    assert not Scenario.objects.for_rollout().exists()
