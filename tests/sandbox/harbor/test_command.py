"""Harbor's command: a job that is stopped, killed and cut off loses no trial, and none is run twice."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sandbox.errors import SandboxUnavailable
from sandbox.harbor import command
from sandbox.harbor.command import Agent, Harbor, HarborRuns, Job, JobPlan, environment

SCRIPTED = Path(__file__).with_name("scripted_harbor.py")
HARBOR = Harbor((sys.executable, str(SCRIPTED)))


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "_SETTLE_SECONDS", 0.0)


def make_task(folder: Path, name: str, **script: object) -> Path:
    task = folder / "tasks" / name
    task.mkdir(parents=True)
    (task / "task.toml").write_text('schema_version = "1.4"\n')
    (task / "script.json").write_text(json.dumps(script))
    return task


def make_plan(*tasks: Path, attempts: int = 1) -> JobPlan:
    return JobPlan([Agent("terminus-2", "openai/small")], tasks, attempts=attempts, provider="elsewhere")


def waits(job: Job, begun: int = 0) -> None:
    """Wait until the job has ended, or has begun so many trials."""
    until = time.monotonic() + 20
    while job.runs() and (not begun or len(list(job.path.glob("*/config.json"))) < begun):
        assert time.monotonic() < until, job.output()
        time.sleep(0.02)


def test_each_trial_has_its_result(tmp_path: Path) -> None:
    plan = make_plan(make_task(tmp_path, "sum", rewards=[1, 0]), make_task(tmp_path, "sort"), attempts=2)
    job = Job(tmp_path / "job")
    job.start(HARBOR, plan, secrets={})
    waits(job)
    assert job.is_finished() and job.total() == 4
    found = sorted((trial.task, trial.rewards["reward"]) for trial in job.trials())
    assert found == [("acme/sort", 1), ("acme/sort", 1), ("acme/sum", 0), ("acme/sum", 1)]
    assert not list(job.trials(known=[trial.name for trial in job.trials()]))


def test_a_job_runs_once_at_a_time(tmp_path: Path) -> None:
    plan = make_plan(make_task(tmp_path, "slow", seconds=[60]))
    Job(tmp_path / "job").start(HARBOR, plan, secrets={})
    other = Job(tmp_path / "job")
    assert other.runs()
    with pytest.raises(HarborRuns):
        other.start(HARBOR, plan, secrets={})
    other.stop(plan, seconds=1)
    assert not other.runs() and not other.is_finished()


def test_a_stopped_job_goes_on_where_it_was(tmp_path: Path) -> None:
    plan = make_plan(make_task(tmp_path, "sum", seconds=[0.01, 0.01, 30, 0.01]), attempts=4)
    job = Job(tmp_path / "job")
    job.start(HARBOR, plan, secrets={})
    waits(job, begun=3)
    job.stop(plan, seconds=10)
    before = {trial.name for trial in job.trials() if not trial.exception}
    assert len(before) == 2 and [trial.exception for trial in job.trials() if trial.exception] == ["CancelledError"]
    job.start(HARBOR, plan, secrets={})
    waits(job)
    after = {trial.name for trial in job.trials()}
    assert job.is_finished() and before < after and len(after) == 4


@pytest.mark.parametrize("cut", ["config.json", "lock.json", "result.json", "trial"])
def test_a_file_that_was_cut_off_loses_no_trial(tmp_path: Path, cut: str) -> None:
    plan = make_plan(make_task(tmp_path, "sum", seconds=[0.01, 0.01, 30, 0.01]), attempts=4)
    job = Job(tmp_path / "job")
    job.start(HARBOR, plan, secrets={})
    waits(job, begun=3)
    os.killpg(int((job.folder / "alive").read_text()), signal.SIGKILL)
    waits(job)
    before = {trial.name for trial in job.trials()}
    path = job.path / cut if cut != "trial" else job.path / sorted(before)[0] / "result.json"
    path.write_text(path.read_text()[:20])
    job.start(HARBOR, plan, secrets={})
    waits(job)
    after = {trial.name for trial in job.trials()}
    kept = before - ({path.parent.name} if cut == "trial" else set())
    assert job.is_finished() and kept < after and len(after) == 4


def test_a_trial_without_a_verdict_or_a_reason_is_run_again(tmp_path: Path) -> None:
    plan = make_plan(make_task(tmp_path, "sum"), attempts=2)
    job = Job(tmp_path / "job")
    job.start(HARBOR, plan, secrets={})
    waits(job)
    path = next(job.path.glob("*/result.json"))
    path.write_text(json.dumps({**json.loads(path.read_text()), "verifier_result": None, "reward_valid": False}))
    assert sorted(trial.exception for trial in job.trials()) == ["", "CancelledError"]
    job.start(HARBOR, plan, secrets={})
    waits(job)
    assert [trial.exception for trial in job.trials()] == ["", ""] and not path.exists()


def test_harbor_ends_with_the_worker_that_watches_it(tmp_path: Path) -> None:
    plan = make_plan(make_task(tmp_path, "sum", seconds=[0.01, 30, 0.01]), attempts=2)
    code = (
        "import sys, time; from pathlib import Path; from sandbox.harbor.command import *; here = Path(sys.argv[1]);"
        "plan = JobPlan([Agent('terminus-2', 'openai/small')], [here / 'tasks/sum'], attempts=2, provider='elsewhere');"
        f"Job(here / 'job').start(Harbor({HARBOR.command}), plan, secrets={{}}); time.sleep(60)"
    )
    worker = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)])
    job = Job(tmp_path / "job")
    waits_for_trial = time.monotonic() + 20
    while len(list(job.path.glob("*/config.json"))) < 2:
        assert time.monotonic() < waits_for_trial
        time.sleep(0.02)
    worker.kill()
    worker.wait()
    waits(job)
    assert sorted(trial.exception for trial in job.trials()) == ["", "CancelledError"]
    job.start(HARBOR, plan, secrets={})
    waits(job)
    assert job.is_finished() and [trial.exception for trial in job.trials()] == ["", ""]


def test_trials_that_the_machine_ended_are_run_again(tmp_path: Path) -> None:
    plan = make_plan(make_task(tmp_path, "sum", exceptions=["EnvironmentStartTimeoutError*1"]), attempts=2)
    job = Job(tmp_path / "job")
    job.start(HARBOR, plan, secrets={})
    waits(job)
    assert sorted(trial.exception for trial in job.trials()) == ["", "EnvironmentStartTimeoutError"]
    assert "EnvironmentStartTimeoutError" not in job.lasting_exceptions()
    job.start(HARBOR, plan, secrets={}, without=["EnvironmentStartTimeoutError"])
    waits(job)
    assert [trial.exception for trial in job.trials()] == ["", ""]


def test_secrets_of_the_server_stay_here(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SECRET_KEY", "DATABASE_URL", "MODEL_KEY_A", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "secret")
    found = environment({"KEY_OF_THIS_JOB": "one"})
    assert [name for name, value in found.items() if value == "secret"] == []
    assert found["KEY_OF_THIS_JOB"] == "one" and found["HARBOR_TELEMETRY"] == "off" and "PATH" in found


def test_a_command_that_is_missing_is_named() -> None:
    with pytest.raises(SandboxUnavailable, match="no-such-program"):
        Harbor.of("no-such-program run")
    with pytest.raises(SandboxUnavailable, match="No command"):
        Harbor.of(" ")


def test_another_program_is_not_harbor(tmp_path: Path) -> None:
    assert HARBOR.version(tmp_path) == "0.26.0"
    with pytest.raises(SandboxUnavailable, match="--version failed"):
        Harbor((sys.executable, "-c", "raise SystemExit('no')")).version(tmp_path)
