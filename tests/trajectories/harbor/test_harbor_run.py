"""A run of kind `harbor`: its trials arrive while the job runs, each once, also after stops and kills."""

import json
import sys
import threading
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from pytest_django import Settings

from curation.projects.models import Project
from curation.runs.control import cancel, resume, retry_failed
from curation.runs.engine.worker import drive
from curation.runs.launch import estimate, launch
from curation.runs.models import Item, ItemState, Run, RunState
from curation.scenarios.bundles.harbor import parse_scenario
from curation.scenarios.bundles.save import save_scenario
from curation.scenarios.models import Scenario
from curation.trajectories.harbor import stage
from curation.trajectories.harbor.plan import HarborParams, job_plan
from curation.trajectories.models import Trajectory
from curation.web.problems import Invalid
from sandbox.harbor import command
from sandbox.harbor.providers import read_providers
from tests.factories import make_endpoint, make_member, make_project
from tests.sandbox.harbor.test_command import SCRIPTED, make_task
from tests.scenarios.harbor import harbor_document

pytestmark = pytest.mark.django_db(transaction=True)
Make = Callable[..., Run]


@pytest.fixture
def project(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    settings.HARBOR_COMMAND = f"{sys.executable} {SCRIPTED}"
    settings.HARBOR_PROVIDERS = read_providers("elsewhere; docker@other")
    settings.HARBOR_FOLDER = tmp_path / "jobs"
    settings.IMPORT_FOLDERS = [str(tmp_path)]
    monkeypatch.setattr(command, "_SETTLE_SECONDS", 0.0)
    monkeypatch.setattr(stage, "POLL_SECONDS", 0.05)
    made = make_project("demo")
    make_endpoint(made, "small", model="openai/small", api_base="http://127.0.0.1:9/v1", price_in=100, price_out=1000)
    return made


def start(project: Project, tmp_path: Path, budget: Decimal | None = None, **params: Any) -> Run:
    given = {"tasks": str(tmp_path / "tasks"), "models": ["small"], "provider": "elsewhere", **params}
    return launch(project=project, kind="harbor", params=given, user=None, budget=budget)


def run_to_end(run: Run) -> Run:
    drive(run.pk)
    run.refresh_from_db()
    return run


def trials(run: Run) -> list[Item]:
    return list(Item.objects.filter(run=run, stage="trials").exclude(key="job"))


def test_each_trial_is_an_item_and_a_trajectory(project: Project, tmp_path: Path, client: Client) -> None:
    make_task(tmp_path, "sum", rewards=[1, 0])
    make_task(tmp_path, "sort")
    run = run_to_end(start(project, tmp_path, agents=["terminus-2", "oracle"], attempts=2))
    assert (run.state, run.outcome, run.items_total, run.items_done) == (RunState.SUCCEEDED, "", 9, 9)
    rows = Trajectory.objects.filter(run=run)
    assert {(row.task, row.agent, row.model, row.source) for row in rows} == {
        ("acme/sum", "terminus-2", "small", "tasks"),
        ("acme/sort", "terminus-2", "small", "tasks"),
    }
    assert rows.count() == 4 and all(row.outcome in ("solved", "failed") for row in rows)
    # 1,000 tokens at $100 and 100 at $1,000 per million; the oracle calls no model.
    assert run.cost == Decimal("0.8") and run.cost_unknown_calls == 0
    agents = {(row["agent"], row["model"]): row["trials"] for row in run.result["agents"]}
    assert agents == {("oracle", ""): 4, ("terminus-2", "small"): 4} and run.result["trials"] == 8
    client.force_login(make_member(project, role="viewer"))
    page = client.get(f"/p/demo/runs/{run.pk}/").content.decode()
    assert "acme/sort" in page and "$0.20" in page and "Of 8 trials in all." in page


def test_the_cost_of_an_agent_that_counts_no_tokens_is_not_known(project: Project, tmp_path: Path) -> None:
    make_task(tmp_path, "sum", tokens=[[None, None]], costs=[None])
    run = run_to_end(start(project, tmp_path, agents=["terminus-2"]))
    assert (run.cost, run.cost_unknown_calls, run.tokens_in) == (Decimal(0), 1, 0)
    (trial,) = trials(run)
    assert (trial.result["tokens"], trial.result["cost"]) == (None, None)
    assert (run.result["agents"][0]["cost_unknown"], run.result["agents"][0]["trials"]) == (1, 1)


@pytest.mark.parametrize(
    ("agent", "used", "cost"),
    [
        ({"name": "oracle"}, {}, Decimal(0)),
        ({"name": "mini-swe-agent"}, {"n_input_tokens": 10, "n_output_tokens": 1}, None),
        ({"name": "mini-swe-agent"}, {"cost_usd": 0.5}, Decimal("0.5")),
        ({"name": "mini-swe-agent"}, {"cost_usd": 1e30, "n_input_tokens": 1e30}, None),
        ({"name": "mini-swe-agent", "model_name": "openai/small"}, {"n_input_tokens": 10}, None),
    ],
)
def test_a_cost_that_nothing_prices_is_not_known(agent: Any, used: Any, cost: Decimal | None) -> None:
    assert stage.usage_of({"config": {"agent": agent}, "agent_result": used}, []).cost == cost


def test_the_launch_page_shows_what_a_provider_needs(project: Project, client: Client, settings: Settings) -> None:
    settings.HARBOR_PROVIDERS = read_providers("docker; modal; docker@other")
    client.force_login(make_member(project, role="curator"))
    page = client.get("/p/demo/runs/new/?kind=harbor").content.decode()
    assert "docker: needs Docker with the Compose plugin on the workers" in page
    assert "modal: needs MODAL_TOKEN_ID and MODAL_TOKEN_SECRET in the workers" in page


def test_admitted_scenarios_are_tasks(project: Project, tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="No admitted scenario of the family Harbor"):
        start(project, tmp_path, tasks="")
    for name, status in (("sum", "admitted"), ("draft", "draft")):
        save_scenario(project=project, bundle=parse_scenario(harbor_document(name)), user=None)
        Scenario.objects.filter(name=f"acme/{name}").update(status=status)
    run = run_to_end(start(project, tmp_path, tasks=""))
    assert run.state == RunState.SUCCEEDED, run.error
    row = Trajectory.objects.get(run=run)
    assert row.task.startswith("acme/acme") and row.source == "Harbor scenarios"


def test_the_model_s_key_has_a_name_that_no_task_knows(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODEL_KEY_A", "secret-key")
    make_endpoint(project, "keyed", model="openai/keyed", api_key_env="MODEL_KEY_A")
    make_task(tmp_path, "sum")
    run = run_to_end(start(project, tmp_path, models=["keyed"]))
    assert run.state == RunState.SUCCEEDED, run.error
    config = (tmp_path / "jobs" / str(run.pk) / "config.json").read_text()
    named = json.loads(config)["agents"][0]["model_api_key_name"]
    assert named.startswith("HARBOR_KEY_") and "secret-key" not in config and "MODEL_KEY_A" not in config


def test_a_cancelled_run_keeps_its_trials_and_goes_on(project: Project, tmp_path: Path) -> None:
    make_task(tmp_path, "sum", seconds=[0.01, 0.01, 30, 0.01])
    run = start(project, tmp_path, attempts=4)
    with working(run):
        waits(lambda: len(trials(run)) == 2)
        cancel(run=run, user=None)
    run.refresh_from_db()
    before = {item.key for item in trials(run)}
    # The third trial was cancelled; its tokens are paid.
    assert run.state == RunState.CANCELLED and len(before) == 2 and run.cost == Decimal("0.6")
    resume(run=run, user=None)
    run_to_end(run)
    after = {item.key for item in trials(run)}
    assert run.state == RunState.SUCCEEDED and before < after and len(after) == 4 == run.items_done - 1
    assert Trajectory.objects.filter(run=run).count() == 4 and run.cost == Decimal("1.0")


def test_a_job_whose_worker_was_killed_goes_on(project: Project, tmp_path: Path) -> None:
    make_task(tmp_path, "sum", seconds=[0.01, 0.01, 2, 0.01])
    run = start(project, tmp_path, attempts=4)
    # What a worker has left that was killed after two trials: nothing is saved, and Harbor is at the third.
    folder = stage.folder_of(run)
    plan, secrets = job_plan(run, HarborParams.model_validate(run.params), folder)
    job = command.Job(stage.folder_of(run))
    job.start(command.Harbor.of(f"{sys.executable} {SCRIPTED}"), plan, secrets=secrets)
    waits(lambda: len(list(job.trials())) == 2)
    run_to_end(run)
    assert run.state == RunState.SUCCEEDED and len(trials(run)) == 4
    assert Trajectory.objects.filter(run=run).count() == 4


def test_a_run_stops_when_its_budget_is_spent(project: Project, tmp_path: Path) -> None:
    make_task(tmp_path, "sum", seconds=[0.01, 0.01, 30, 0.01])
    run = run_to_end(start(project, tmp_path, attempts=4, budget=Decimal("0.3")))
    assert run.state == RunState.CANCELLED and "one more trial" in run.error and len(trials(run)) == 2
    resume(run=run, user=None, budget=Decimal(5))
    assert run_to_end(run).state == RunState.SUCCEEDED and len(trials(run)) == 4


def test_trials_that_the_machine_ended_are_run_again(project: Project, tmp_path: Path) -> None:
    make_task(tmp_path, "sum", exceptions=["EnvironmentStartTimeoutError*1"])
    make_task(tmp_path, "slow", exceptions=["AgentTimeoutError"], rewards=[0])
    run = run_to_end(start(project, tmp_path))
    assert run.state == RunState.SUCCEEDED and not run.outcome
    assert [item.reason for item in trials(run)].count("AgentTimeoutError") == 1
    # An agent that ran out of time is not run again; the attempt that the machine ended is paid.
    assert len(trials(run)) == 2 and run.cost == Decimal("0.6")
    assert run.events.filter(message__contains="EnvironmentStartTimeoutError").count() == 1


def test_what_the_machine_ends_again_and_again_fails(project: Project, tmp_path: Path) -> None:
    make_task(tmp_path, "sum", exceptions=["EnvironmentStartTimeoutError*3"])
    make_task(tmp_path, "sort")
    run = run_to_end(start(project, tmp_path))
    assert run.state == RunState.SUCCEEDED and run.outcome == "with_failures" and len(trials(run)) == 1
    failed = Item.objects.get(run=run, state=ItemState.FAILED)
    assert "1 trial ended by errors of the machine (EnvironmentStartTimeoutError)" in failed.reason
    retry_failed(run=run, user=None)
    run_to_end(run)
    assert not run.outcome and len(trials(run)) == 2 and run.items_done == 3 == run.items_total


def test_harbor_s_own_words_are_shown_if_it_fails(project: Project, tmp_path: Path, settings: Settings) -> None:
    make_task(tmp_path, "sum")
    settings.HARBOR_COMMAND = f"{sys.executable} -c \"raise SystemExit('no such dataset')\""
    run = run_to_end(start(project, tmp_path))
    assert run.state == RunState.FAILED and "no such dataset" in run.error


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"provider": "docker"}, "does not let this project use the provider 'docker'"),
        ({"models": []}, "Choose a model for terminus-2"),
        ({"models": ["fake"]}, "fake is a scripted model"),
        ({"models": ["elsewhere"]}, "OTHER_KEY is not a variable that this server sends as a key"),
        ({"tasks": "/etc"}, "may not be read"),
        ({"tasks": "no such; name"}, "name of a dataset"),
    ],
)
def test_a_launch_says_what_is_wrong(project: Project, tmp_path: Path, params: dict[str, Any], reason: str) -> None:
    make_task(tmp_path, "sum")
    make_endpoint(project, "fake", model="scripted/king")
    make_endpoint(project, "elsewhere", model="openai/x", api_key_env="OTHER_KEY")
    with pytest.raises(Invalid, match=reason):
        start(project, tmp_path, **params)


def test_a_server_without_harbor_says_so(project: Project, tmp_path: Path, settings: Settings) -> None:
    make_task(tmp_path, "sum")
    settings.HARBOR_COMMAND = ""
    with pytest.raises(Invalid, match="HARBOR_COMMAND"):
        start(project, tmp_path)


def test_an_estimate_goes_by_earlier_trials(project: Project, tmp_path: Path) -> None:
    make_task(tmp_path, "sum")
    params = {"tasks": str(tmp_path / "tasks"), "models": ["small"], "provider": "elsewhere", "attempts": 3}
    before = estimate(project=project, kind="harbor", params=params)
    assert before.items == 3 and any("a guess of 30 turns" in note for note in before.notes)
    run_to_end(launch(project=project, kind="harbor", params=params, user=None))
    after = estimate(project=project, kind="harbor", params=params)
    assert after.tokens_in + after.tokens_out == 3300 and any("3 earlier trials" in note for note in after.notes)


def waits(reached: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not reached():
        assert time.monotonic() < until
        time.sleep(0.02)


class working:
    """A worker in a thread, until the block ends and the worker has left the run."""

    def __init__(self, run: Run) -> None:
        self._thread = threading.Thread(target=self._work, args=(run.pk,))

    def _work(self, run_id: int) -> None:
        try:
            drive(run_id)
        finally:
            connection.close()

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._thread.join()
