"""The demo project is made by real runs on scripted models, once, even after interruptions."""

import time
from collections import Counter
from pathlib import Path

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from pytest_django import Settings

from curation.dashboard.demo import project as demo_project
from curation.dashboard.demo.builder import Builder, DemoFailed
from curation.dashboard.demo.project import BASE, TUNED, make_demo_evaluation, make_demo_project, remove_demo_project
from curation.duels.models import Answer, Duel, Prompt, PullRequest, Verdict
from curation.evaluations.compare.compare import compare
from curation.evaluations.models import Evaluation, Split
from curation.evaluations.screen.figures import overall
from curation.exports.models import Export, Round
from curation.exports.rounds.figures import figures_of
from curation.imports.sources.stored import store_upload
from curation.projects.models import AuditEntry, Deletion, Project
from curation.review.models import Decision
from curation.runs.engine import dispatch
from curation.runs.engine.worker import drive
from curation.runs.launch import launch
from curation.runs.models import Call, Item, Run
from curation.samples.models import Bucket, Flag, Sample
from curation.scenarios.models import GateReport, Scenario
from curation.trajectories.models import Pair, Replay, Trajectory
from curation.trajectories.rollout.balance import terminal_balance
from tests.driving import end
from tests.evaluations.evaluating import model_in
from tests.factories import make_endpoint, make_project, make_user
from tests.projects.removal.every_model import rows_of

pytestmark = pytest.mark.django_db(transaction=True)
COUNTED = (
    *(Project, Run, Item, Call, Prompt, PullRequest, Answer, Duel, Verdict, Sample, Decision),
    *(Scenario, GateReport, Trajectory, Pair, Replay, Round, Export),
)


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.MEDIA_ROOT = tmp_path / "files"
    settings.SANDBOX = "none"
    monkeypatch.setattr(dispatch, "send_work", lambda *args: None)


def counts() -> dict[str, int]:
    return {model.__name__: model._default_manager.count() for model in COUNTED}


def quiet(line: str) -> None:
    """The demo's messages while it is made are for a person."""


def stop_after(monkeypatch: pytest.MonkeyPatch, drives: int) -> None:
    """After so many shards of work the demo is stopped."""
    done: list[int] = []

    def stopped(run_id: int) -> None:
        if len(done) == drives:
            raise KeyboardInterrupt  # as Ctrl+C does
        done.append(run_id)
        drive(run_id)

    monkeypatch.setattr("curation.dashboard.demo.builder.drive", stopped)


def begin(monkeypatch: pytest.MonkeyPatch, drives: int) -> None:
    """Start to make the demo, and interrupt it."""
    with monkeypatch.context() as patched:
        stop_after(patched, drives)
        with pytest.raises(KeyboardInterrupt):
            make_demo_project(quiet)


def assert_nothing_was_done_twice(project: Project) -> None:
    after = counts()
    answerable = Prompt.objects.of(project).answerable().with_record().count()
    controls = 30
    assert (after["Duel"], after["Sample"]) == (answerable, answerable)
    assert after["Verdict"] == 6 * (answerable + controls)
    assert Run.objects.filter(kind="duel").count() == 1
    assert set(project.runs.values_list("state", flat=True)) == {"succeeded"}
    # An answer against itself is the same request in both orders.
    calls = Call.objects.exclude(
        item__stage="judge", item__target_id__in=Duel.everything.filter(control="same").values("pk")
    )
    assert calls.values("content_hash").distinct().count() == calls.count()


def test_an_interrupted_demo_goes_on_shows_every_kind_of_duel_and_making_it_again_adds_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begin(monkeypatch, 4)
    said: list[str] = []
    project = make_demo_project(said.append)
    assert_nothing_was_done_twice(project)
    told = [line for line in said if "scenarios" in line]
    assert len(told) == 1 and "switched off" in told[0], "a missing sandbox is reported in one line"
    assert not Trajectory.objects.exists()
    buckets = Counter(Duel.objects.of(project).values_list("bucket", flat=True))
    assert sum(buckets.values()) >= 30
    assert all(buckets[bucket] >= 3 for bucket in Bucket.values), buckets
    flags = Counter(name for duel in Duel.objects.all() for name in duel.flag_names)
    assert flags["leak"] >= 2 and flags["flip"] >= 2, flags
    assert not Duel.objects.filter(flags__in=[f for f in range(64) if f & Flag.LEAK], bucket="final").exists()
    assert Verdict.objects.filter(parsed=False).exists()
    assert Answer.objects.exclude(refusal="").exists()
    assert set(Scenario.objects.of(project).values_list("status", flat=True)) == {"draft"}
    assert project.exports.count() == 1 and Decision.objects.count() >= 5
    run = Run.objects.get(kind="duel")
    assert run.result["skipped"]["challenger"] == {"no pull-request record: it cannot be challenged": 2}
    before, started = counts(), time.process_time()
    make_demo_project(quiet)
    assert counts() == before
    assert time.process_time() - started < 5


@pytest.mark.slow
@pytest.mark.bubblewrap
def test_a_later_start_with_a_sandbox_gates_rolls_out_and_pairs_scenarios(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_demo_project(quiet)
    settings.SANDBOX, settings.WINNOW_DATA = "bubblewrap", tmp_path
    begin(monkeypatch, 2)
    project = make_demo_project(quiet)
    statuses = Counter(Scenario.objects.of(project).values_list("status", flat=True))
    assert statuses["admitted"] >= 20 and statuses["rejected"] == 2 and statuses["draft"] == 1
    rejected = GateReport.objects.filter(verdict="rejected").values_list("reason", flat=True)
    assert {reason.split(":")[0] for reason in rejected} == {"untouched", "reference"}
    written = Item.objects.filter(run__kind="author", stage="author", state="done").values_list("result", flat=True)
    assert len(written) == 3 and max(result["attempts"] for result in written) > 1, "one is mended after a refusal"
    outcomes = Counter(Trajectory.objects.of(project).values_list("outcome", flat=True))
    assert outcomes["solved"] >= 15 and outcomes["correct_panic"] >= 2
    assert all(outcomes[name] for name in ("checker_failed", "no_terminal", "wrong_terminal")), outcomes
    assert Pair.objects.exists() and not Replay.objects.filter(agrees=False).exists()
    approved = Sample.objects.of(project).filter(kind="trajectory", status="approved")
    assert approved.count() == approved.filter(trajectory__keep=True).count() >= 5
    balance = terminal_balance(Trajectory.objects.of(project))
    assert balance.warnings(project.settings.balance) == []
    first, second = figures_of(list(Round.objects.of(project).order_by("number")))
    assert (first.state, second.state) == ("done", "review"), "the next step is the visitor's"
    assert 0 < first.rate.kept < first.rate.tried == second.rate.kept == second.rate.tried
    first_axes, second_axes = ({(one.axis, one.value) for one in found.by_axis} for found in (first, second))
    assert first.rows == first.rate.kept and first_axes == second_axes != set()
    before = counts()
    make_demo_project(quiet)
    assert counts() == before


@pytest.mark.slow
@pytest.mark.parametrize("drives", [1, 7])
def test_an_interrupted_start_continues(monkeypatch: pytest.MonkeyPatch, drives: int) -> None:
    begin(monkeypatch, drives)
    assert_nothing_was_done_twice(make_demo_project(quiet))


class TestReset:
    """On PostgreSQL `manage.py demo --reset` removes the project; on SQLite it removes the data folder's files."""

    def make(self) -> tuple[Project, str]:
        """A project `demo` with an upload and a run that nobody works on."""
        project = make_project("demo")
        make_endpoint(project, "scripted-king", model="scripted/king")
        launch(project=project, kind="test", params={"model": "scripted-king"}, user=None)
        return project, store_upload(project=project, file=ContentFile(b"{}", "a.jsonl"), name="a.jsonl")

    def test_nothing_of_the_project_is_left_and_others_stay(self) -> None:
        project, upload = self.make()
        other = make_project("other")
        kept = store_upload(project=other, file=ContentFile(b"{}", "a.jsonl"), name="a.jsonl")
        remove_demo_project()
        assert not default_storage.exists(upload)
        assert {label: number for label, number in rows_of(project.pk).items() if number} == {}
        assert [project.slug for project in Project.objects.all()] == ["other"]
        assert default_storage.exists(kept)
        assert AuditEntry.objects.filter(action="project.deleted").count() == 1
        remove_demo_project()  # there is none
        make_project("demo")

    def test_a_removal_that_was_interrupted_goes_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        project, upload = self.make()
        with monkeypatch.context() as patched:
            patched.setattr(demo_project, "REMOVED_WITHIN", 0.0)
            with pytest.raises(DemoFailed, match="The project `demo` is not removed yet"):
                remove_demo_project()
        remove_demo_project()
        assert not Project.objects.exists()
        assert not default_storage.exists(upload)
        assert Deletion.objects.count() == 1


@pytest.fixture(autouse=True)
def storage(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.MEDIA_ROOT = tmp_path / "files"
    monkeypatch.setattr(dispatch, "send_work", lambda *args: None)


class QuietBuilder(Builder):
    """Does runs without a line for each."""

    def drive(self, run: Run) -> None:
        assert end(run).state == "succeeded", run.error


def test_two_scripted_models_are_screened_checked_and_compared() -> None:
    project, user, said = make_project(), make_user(), list[str]()
    for _ in range(2):  # after an interrupted start only the missing parts are made
        make_demo_evaluation(QuietBuilder(project, user, said.append))
    evaluation = Evaluation.objects.get()
    split = Split.objects.get()
    assert split.rows_count == 24 and split.checks.get().counts["contaminated"] == 3
    rows = {str(row["model"]): row for row in overall(evaluation)}
    assert list(rows) == [TUNED, BASE]
    assert rows[BASE]["exact"] == pytest.approx(0.29, abs=0.01) and rows[TUNED]["exact"] == pytest.approx(
        0.88, abs=0.01
    )
    assert float(str(rows[TUNED]["exact_shell"])) > float(str(rows[TUNED]["exact"]))
    found = compare(before=model_in(evaluation, BASE), after=model_in(evaluation, TUNED))
    exact = next(change for change in found.metrics if change.name == "exact")
    assert exact.said.value == "clearly different" and len(found.losses) == 0 and len(found.gains) > 10
    assert split.baseline is not None and split.baseline.name == BASE and len(said) == 1
