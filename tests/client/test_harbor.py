"""Trials of a Harbor job are sent to a project: from a folder, and by Harbor's plugin as each ends."""

import asyncio
import itertools
import os
import subprocess
import tomllib
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pytest_django.live_server_helper import LiveServer

import winnow_client as client
from curation.projects.models import Project as ProjectRow
from curation.runs.engine.worker import drive
from curation.runs.models import Run as RunRow
from curation.trajectories.models import Trajectory
from sandbox.harbor.task_folder import read_task
from tests.e2e.test_harbor_tutorial import Model
from tests.parts import ROOT, harbor
from tests.sandbox.harbor.scripted_harbor import run_trial
from tests.sandbox.harbor.tasks import task_files
from tests.serving import serving, url_of
from winnow_client import command
from winnow_client.harbor import JobPlugin, finished_trials, push

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.portable]
AGENT = {"name": "terminus-2", "model_name": "openai/small"}


@pytest.fixture
def project(live_server: LiveServer, token: str, row: ProjectRow) -> Iterator[client.Project]:
    with client.Winnow(live_server.url, token) as site:
        yield site.project("acme")


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A job with two finished trials, one that runs, and a file of the agent that looks like a trial's."""
    folder = tmp_path / "jobs" / "nightly"
    for _ in range(2):
        end_trial(folder)
    running = folder / "sum__running"
    running.mkdir()
    (running / "config.json").write_text("{}")
    artifact = next(folder.glob("sum__*/artifacts")) / "result.json"
    artifact.write_text('{"trial_name": "made up", "finished_at": "now"}')
    return folder


def end_trial(job: Path) -> Path:
    task = job.parent.parent / "tasks" / "sum"
    task.mkdir(parents=True, exist_ok=True)
    job.mkdir(parents=True, exist_ok=True)
    return Path(job, run_trial(job, "job", task, AGENT)["trial_name"])


def end_imports() -> None:
    for run in RunRow.objects.filter(kind="import").order_by("id"):
        drive(run.pk)


def test_only_finished_trials_are_sent_and_each_once(project: client.Project, job: Path) -> None:
    assert len(finished_trials(job)) == 2 == len(finished_trials(job.parent))
    push(project, finished_trials(job))
    end_imports()
    assert set(Trajectory.objects.values_list("task", "agent", "source")) == {("acme/sum", "terminus-2", "nightly.zip")}
    assert Trajectory.objects.count() == 2
    end_trial(job)
    push(project, finished_trials(job))
    end_imports()
    last = RunRow.objects.latest("id").result
    assert (Trajectory.objects.count(), last["trajectories"], last["duplicates"]) == (3, 1, 2)


def test_the_command_pushes_a_job(
    live_server: LiveServer, token: str, row: ProjectRow, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINNOW_TOKEN", token)
    monkeypatch.setattr(client.Run, "wait", lambda run, **given: end_imports())
    command.main(["--url", live_server.url, "push", str(job), "--project", "acme"])
    assert Trajectory.objects.count() == 2
    (job / "empty").mkdir()
    with pytest.raises(SystemExit, match="no finished trial"):
        command.main(["--url", live_server.url, "push", str(job / "empty"), "--project", "acme"])


class FakeJob:
    """What a plugin sees of Harbor's job."""

    def __init__(self) -> None:
        self.hooks: list[Callable[[Any], Awaitable[None]]] = []

    def on_trial_ended(self, hook: Callable[[Any], Awaitable[None]]) -> None:
        self.hooks.append(hook)

    async def end(self, trial: Path) -> None:
        config = SimpleNamespace(trials_dir=trial.parent, trial_name=trial.name)
        for hook in self.hooks:
            await hook(SimpleNamespace(config=config))


def test_the_plugin_sends_trials_while_the_job_runs(
    live_server: LiveServer, token: str, row: ProjectRow, tmp_path: Path
) -> None:
    folder = tmp_path / "jobs" / "nightly"

    async def run() -> None:
        plugin, job = JobPlugin("acme", live_server.url, token, every=0.05), FakeJob()
        await plugin.on_job_start(job)
        await job.end(end_trial(folder))
        async with asyncio.timeout(10):
            while not await asyncio.to_thread(RunRow.objects.count):
                await asyncio.sleep(0.05)
        await job.end(end_trial(folder))
        await job.end(end_trial(folder))
        await plugin.on_job_end(None)

    asyncio.run(run())
    assert RunRow.objects.filter(kind="import").count() == 2
    end_imports()
    assert Trajectory.objects.count() == 3


def test_a_site_that_is_down_stops_no_trial(
    live_server: LiveServer, token: str, row: ProjectRow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "jobs" / "nightly"
    tries: list[int] = []

    def down(project: client.Project, trials: list[Path]) -> client.Run:
        tries.append(len(trials))
        if len(tries) == 1:
            raise client.ConnectionFailed("refused")
        return push(project, trials)

    monkeypatch.setattr("winnow_client.harbor.push", down)

    async def run() -> None:
        plugin, job = JobPlugin("acme", live_server.url, token, every=0.05), FakeJob()
        await plugin.on_job_start(job)
        await job.end(end_trial(folder))
        await plugin.on_job_end(None)

    asyncio.run(run())
    end_imports()
    assert tries == [1, 1] and Trajectory.objects.count() == 1


def test_a_wrong_project_stops_the_job_before_it_begins(live_server: LiveServer, token: str, row: ProjectRow) -> None:
    with pytest.raises(client.NotFound):
        asyncio.run(JobPlugin("other", live_server.url, token).on_job_start(FakeJob()))


@pytest.mark.slow
@pytest.mark.docker
@pytest.mark.timeout(600)
def test_the_real_harbor_sends_trials_while_its_job_runs(
    live_server: LiveServer, token: str, row: ProjectRow, tmp_path: Path
) -> None:
    """An installed client is the plugin `winnow` of Harbor's command; the same job pushed afterwards adds nothing."""
    installed = tmp_path / "site" / "winnow_client-0.1.0.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: winnow-client\nVersion: 0.1.0\n")
    own = tomllib.loads((ROOT / "winnow_client/pyproject.toml").read_text())["project"]["entry-points"]
    points = "".join(f"{name} = {value}\n" for name, value in own["harbor.plugins"].items())
    (installed / "entry_points.txt").write_text(f"[harbor.plugins]\n{points}")
    installed.with_name("winnow_client").symlink_to(ROOT / "winnow_client")
    read_task(task_files()).write(tmp_path / "tasks" / "greet")
    with serving(Model, sessions=itertools.count()) as server:
        model = ("-a", "terminus-2", "-m", "openai/base", "--ak", f"api_base={url_of(server)}/v1")
        plugin = ("--plugin", "winnow", "--plugin-kwarg", "project=acme", "--plugin-kwarg", "every=0.5")
        where = ("-p", "tasks", "-o", "jobs", "--job-name", "nightly", "-k", "2", "-n", "1", "-y", "-q")
        done = subprocess.run(
            [harbor(), "run", *where, *model, *plugin],
            cwd=tmp_path,
            env={
                **os.environ,
                "PYTHONPATH": str(installed.parent),
                "WINNOW_URL": live_server.url,
                "WINNOW_TOKEN": token,
                "OPENAI_API_KEY": "none",
                "HARBOR_TELEMETRY": "off",
            },
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    ended = finished_trials(tmp_path / "jobs" / "nightly")
    assert RunRow.objects.filter(kind="import").count() == 2, done.stdout  # the first was sent before the second ended
    end_imports()
    assert (len(ended), Trajectory.objects.count()) == (2, 2)
    with client.Winnow(live_server.url, token) as site:
        push(site.project("acme"), ended)
    end_imports()
    last = RunRow.objects.latest("id").result
    assert (Trajectory.objects.count(), last["trajectories"], last["duplicates"]) == (2, 0, 2)
