"""Admitted scenarios leave as a Harbor data set, with the reason for each that does not."""

import io
import json
import tomllib
import zipfile
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.test import Client

from curation.projects.models import Project
from curation.scenarios.bundles.document import parse_bundle
from curation.scenarios.bundles.harbor import parse_scenario
from curation.scenarios.bundles.harbor_dataset import HarborDataset
from curation.scenarios.bundles.save import save_scenario
from curation.scenarios.models import Scenario
from sandbox.harbor.command import Harbor
from sandbox.harbor.export import registry
from sandbox.harbor.task_folder import TaskFile, read_task
from sandbox.harbor.trials import LocalRunner
from tests.factories import make_scenario
from tests.parts import HARBOR_IMAGE, ROOT, harbor
from tests.scenarios.harbor import harbor_document

pytestmark = pytest.mark.django_db
SHIPPED = ROOT / "curation/scenarios/shipped"


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
    make_scenario(project, "records", bundle={"checker": "asked todo", "reference_solution": "todo\nexit"})
    compiled = {"path": "/usr/local/bin/tool", "mode": "755", "content": "no first line"}
    make_scenario(project, "compiled", bundle={"checker": "asked tool", "fixtures": [compiled]})
    make_scenario(project, "draft", status="draft")
    document = parse_scenario(harbor_document("given"))
    save_scenario(project=project, bundle=document, user=None)
    Scenario.objects.filter(family="harbor").update(status="admitted")


def make_shipped(project: Project) -> None:
    for path in SHIPPED.glob("*.json"):
        save_scenario(project=project, bundle=parse_bundle(json.loads(path.read_text())), user=None)
    Scenario.objects.filter(family="shell").exclude(name="draft").update(status="admitted")


def test_both_families_leave_with_their_provenance(project: Project, client: Client) -> None:
    make_set(project)
    answer = client.get("/api/v1/projects/shell/scenarios/harbor.zip?image=ubuntu:24.04")
    packed = zipfile.ZipFile(io.BytesIO(b"".join(answer)))

    (listed,) = json.loads(packed.read("registry.json"))
    tasks = {task["name"]: task["path"] for task in listed["tasks"]}
    assert [name.split("-", 1)[-1] for name in tasks] == ["greeting", "blocked", "records", "acme/given"]
    reason = "its checker uses `asked`, and nothing records the runs of /usr/local/bin/tool, which has no `#!`"
    assert json.loads(packed.read("skipped.json")) == {"compiled": reason}
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

    assert "4 tasks in" in out.getvalue()
    assert "compiled: left out: its checker uses `asked`" in err.getvalue()
    assert len(list(tmp_path.glob("set/tasks/*/task.toml"))) == 4


def test_a_registry_is_what_harbor_reads() -> None:
    assert registry("acme", "1.0.0", "About", {"winnow/one": "tasks/one"}) == [
        {
            "name": "acme",
            "version": "1.0.0",
            "description": "About",
            "tasks": [{"name": "winnow/one", "path": "tasks/one"}],
        }
    ]


def test_every_shipped_scenario_leaves(project: Project) -> None:
    make_shipped(project)
    leaving = HarborDataset(project, Scenario.objects.of(project))
    tasks = sum(path.endswith("/task.toml") for path, _, _ in leaving.files())

    assert (tasks, leaving.skipped) == (20, {})


@pytest.mark.docker
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_harbor_confirms_them(project: Project, tmp_path: Path) -> None:
    command = harbor()
    make_set(project)
    make_shipped(project)
    folder = str(tmp_path / "set")
    call_command("bundles", "export", folder, "--as", "harbor", "--image", HARBOR_IMAGE, "--project", "shell")
    folders = {
        tomllib.loads(path.read_text())["task"]["name"]: path.parent for path in tmp_path.glob("set/tasks/*/*.toml")
    }
    assert len(folders) == 24

    ended = LocalRunner(Harbor.of(command), tmp_path, concurrent=3).run(folders, ["oracle", "nop"], 1)

    rewards = {(one.task, one.agent): one.reward for one in ended}
    assert rewards == {(name, agent): float(agent == "oracle") for name in folders for agent in ("oracle", "nop")}
