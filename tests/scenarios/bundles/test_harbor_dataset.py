"""Admitted scenarios leave as a Harbor data set, with the reason for each that does not."""

import io
import json
import os
import shutil
import subprocess
import tomllib
import zipfile
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.test import Client

from curation.projects.models import Project
from curation.scenarios.bundles.harbor import parse_scenario
from curation.scenarios.bundles.save import save_scenario
from curation.scenarios.models import Scenario
from sandbox.harbor.command import Harbor
from sandbox.harbor.export import registry
from sandbox.harbor.tasks import TaskFile, read_task
from sandbox.harbor.trials import LocalRunner
from tests.factories import make_scenario
from tests.parts import missing
from tests.scenarios.harbor import harbor_document

pytestmark = pytest.mark.django_db


def make_set(project: Project) -> None:
    make_scenario(project, "greeting")
    blocked = "todo > /dev/null\npanic no key"
    make_scenario(
        project,
        "blocked",
        bundle={
            "env": {"LEVEL": "3\nfour"},
            "announcement": {"kind": "env", "text": "todo tells"},
            "reference_solution": blocked,
            "checker": '[ "$PANIC_REASON" = "no key" ] && unchanged',
            "expected_terminal": "panic",
        },
    )
    make_scenario(project, "records", bundle={"checker": "asked todo"})
    make_scenario(project, "draft", status="draft")
    document = parse_scenario(harbor_document("given"))
    save_scenario(project=project, bundle=document, user=None)
    Scenario.objects.filter(family="harbor").update(status="admitted")


def test_both_families_leave_with_their_provenance(project: Project, client: Client) -> None:
    make_set(project)
    answer = client.get("/api/v1/projects/shell/scenarios/harbor.zip?image=ubuntu:24.04")
    packed = zipfile.ZipFile(io.BytesIO(b"".join(answer)))

    (listed,) = json.loads(packed.read("registry.json"))
    tasks = {task["name"]: task["path"] for task in listed["tasks"]}
    assert [name.split("-", 1)[-1] for name in tasks] == ["greeting", "blocked", "acme/given"]
    reason = "its checker uses `asked`, and Harbor has no record of the programs that ran"
    assert json.loads(packed.read("skipped.json")) == {"records": reason}
    for path in tasks.values():
        names = [name for name in packed.namelist() if name.startswith(f"{path}/")]
        task = read_task({name[len(path) + 1 :]: TaskFile(packed.read(name)) for name in names})
        config = tomllib.loads(task.files["task.toml"].data.decode())
        assert config["metadata"]["winnow"]["project"] == "shell"
    greeting = tasks[next(name for name in tasks if name.endswith("greeting"))]
    assert packed.read(f"{greeting}/instruction.md") == b"Work is announced by: todo\n"
    assert packed.getinfo(f"{greeting}/tests/test.sh").external_attr >> 16 == 0o755
    assert packed.read(f"{greeting}/environment/Dockerfile").startswith(b"FROM ubuntu:24.04\n")


def test_a_name_that_is_no_image_is_refused(project: Project, client: Client) -> None:
    answer = client.get("/api/v1/projects/shell/scenarios/harbor.zip", {"image": "x\nRUN rm -rf /"})

    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, "image")


def test_the_command_names_what_it_leaves_out(project: Project, tmp_path: Path) -> None:
    make_set(project)
    out, err = StringIO(), StringIO()
    arguments = ["export", str(tmp_path / "set"), "--as", "harbor", "--project", "shell"]
    call_command("bundles", *arguments, stdout=out, stderr=err)

    assert "3 tasks in" in out.getvalue()
    assert "records: left out: its checker uses `asked`" in err.getvalue()
    assert len(list(tmp_path.glob("set/tasks/*/task.toml"))) == 3


def test_a_registry_is_what_harbor_reads() -> None:
    assert registry("acme", "1.0.0", "About", {"winnow/one": "tasks/one"}) == [
        {
            "name": "acme",
            "version": "1.0.0",
            "description": "About",
            "tasks": [{"name": "winnow/one", "path": "tasks/one"}],
        }
    ]


@pytest.mark.docker
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_harbor_confirms_them(project: Project, tmp_path: Path) -> None:
    """It needs the command of Harbor in `TEST_HARBOR`, and an image with Perl in `TEST_HARBOR_IMAGE`."""
    command, image = os.environ.get("TEST_HARBOR", ""), os.environ.get("TEST_HARBOR_IMAGE", "ubuntu:24.04")
    if not command or shutil.which(command) is None:
        missing("no Harbor: name its command in TEST_HARBOR (it needs Python 3.12 or newer)")
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "image", "inspect", image], capture_output=True).returncode:
        missing(f"no Docker image {image}: name one in TEST_HARBOR_IMAGE")
    make_set(project)
    call_command("bundles", "export", str(tmp_path / "set"), "--as", "harbor", "--image", image, "--project", "shell")
    folders = {
        tomllib.loads(path.read_text())["task"]["name"]: path.parent for path in tmp_path.glob("set/tasks/*/*.toml")
    }

    ended = LocalRunner(Harbor.of(command), tmp_path, concurrent=2).run(folders, ["oracle", "nop"], 1)

    rewards = {(one.task, one.agent): one.reward for one in ended}
    assert rewards == {(name, agent): float(agent == "oracle") for name in folders for agent in ("oracle", "nop")}
