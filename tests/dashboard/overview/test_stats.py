"""The figures of the overview."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client

from curation.dashboard.overview import stats as stats_module
from curation.dashboard.overview.charts import SHOWN, model_days, outcome_bars, score_histogram
from curation.dashboard.overview.checklist import checklist_of
from curation.dashboard.overview.stats import project_stats
from curation.projects.access import access_of
from curation.projects.models import Project
from curation.review.models import Decision
from curation.runs.launch import launch
from curation.runs.models import Call
from curation.samples.models import Flag
from curation.trajectories.models import Trajectory
from curation.trajectories.rollout.balance import terminal_balance
from tests.exports.exporting import make_approved, make_kept, run_export
from tests.factories import (
    make_bearer,
    make_duel,
    make_endpoint,
    make_imported,
    make_member,
    make_project,
    make_prompt,
    make_run,
    make_sample,
    make_scenario,
    make_trajectory,
    make_user,
)

pytestmark = pytest.mark.django_db


def test_counts_by_bucket_status_and_score() -> None:
    project = make_project()
    for score, bucket in ((0.0, "defeat"), (64.9, "defeat"), (66.0, "refined"), (80.0, "final"), (100.0, "final")):
        make_sample(project, score=score, bucket=bucket)
    make_sample(project, score=None, bucket="unparsed")
    make_sample(make_project(), score=90.0, bucket="final")
    stats = project_stats(project)
    assert stats.buckets == {"final": 2, "refined": 1, "defeat": 2, "unparsed": 1}
    assert stats.statuses["pending"] == 6
    assert {index: n for index, n in enumerate(stats.histogram) if n} == {0: 1, 12: 1, 13: 1, 16: 1, 19: 1}


def test_one_process_counts_and_others_answer_what_was_counted_before(monkeypatch: pytest.MonkeyPatch) -> None:
    project = make_project()
    make_sample(project)
    project_stats(project)
    make_sample(project)
    monkeypatch.setattr(stats_module, "CACHE_SECONDS", 0)
    cache.set(f"stats:{project.pk}:False", {**cache.get(f"stats:{project.pk}:False"), "until": 0})
    cache.set(f"stats:{project.pk}:False:counting", True)  # another process
    assert project_stats(project).statuses["pending"] == 1
    cache.delete(f"stats:{project.pk}:False:counting")
    assert project_stats(project).statuses["pending"] == 2


def test_requests_at_once_count_once(monkeypatch: pytest.MonkeyPatch) -> None:
    project = make_project()
    figures, begun, counts = project_stats(project), threading.Event(), list[int]()
    cache.clear()

    def count(project: Project, *, blind: bool) -> stats_module.StatsOut:
        counts.append(1)
        begun.wait(10)
        return figures

    monkeypatch.setattr(stats_module, "_count", count)
    clock = SimpleNamespace(time=time.time, monotonic=time.monotonic, sleep=lambda seconds: begun.set())
    monkeypatch.setattr(stats_module, "time", clock)  # the other request waits
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda _: project_stats(project), range(2)))
    assert answers == [figures, figures] and len(counts) == 1


def test_the_funnel_leads_from_prompts_to_approved() -> None:
    project = make_project()
    make_duel(project, status="approved", score=90.0, bucket="final")
    make_duel(project, score=50.0, bucket="defeat")
    funnel = project_stats(project).funnel
    assert (funnel["prompts"], funnel["challenged"], funnel["duels"]) == (2, 2, 2)
    assert (funnel["final or refined"], funnel["decided"], funnel["approved"]) == (1, 1, 1)
    assert funnel["in the last export"] == 0


def test_scenarios_and_trajectories_join_the_funnel() -> None:
    project = make_project(settings_json={"balance": {"panic_low": 0.5, "panic_high": 0.9}})
    solved, stuck = make_scenario(project), make_scenario(project, bundle={"axes": {"task": "blocked"}})
    make_scenario(project, status="rejected")
    make_trajectory(make_project(), outcome="solved")
    for outcome in ("solved", "solved", "checker_failed", "timeout"):
        make_trajectory(project, solved, outcome=outcome)
    make_trajectory(project, stuck, outcome="correct_panic", terminal="panic no oil")
    make_trajectory(project, stuck, outcome="wrong_terminal")
    stats = project_stats(project)
    assert (stats.funnel["scenarios"], stats.funnel["scenarios admitted"]) == (3, 2)
    assert (stats.funnel["trajectories"], stats.funnel["trajectories kept"]) == (6, 3)
    assert stats.scenarios == {"draft": 0, "admitted": 2, "held": 0, "rejected": 1, "dry_run": 0}
    assert {name: n for name, n in stats.outcomes.items() if n} == {
        **{"solved": 2, "correct_panic": 1, "checker_failed": 1, "timeout": 1, "wrong_terminal": 1}
    }
    assert (stats.balance.kept, stats.balance.panic, stats.balance.blocked) == (3, 1 / 3, 1 / 3)
    assert stats.balance == terminal_balance(Trajectory.objects.filter(project=project))
    bars = outcome_bars(stats, "/p/x/trajectories/")["data"][0]
    assert dict(zip(bars["y"], bars["x"], strict=True))["Solved"] == 2
    assert "/p/x/trajectories/?outcome=timeout" in bars["customdata"]


def test_a_project_without_scenarios_has_no_steps_for_them(client: Client) -> None:
    user = make_user()
    project = make_project(user=user)
    make_duel(project, score=50.0, bucket="defeat")
    client.force_login(user)
    page = client.get(f"/p/{project.slug}/").content.decode()
    assert "Answered by challenger" in page and "Rollouts of scenarios" not in page and "How rollouts end" not in page
    make_trajectory(project, outcome="solved")
    cache.clear()
    page = client.get(f"/p/{project.slug}/").content.decode()
    assert "Rollouts of scenarios" in page and "How rollouts end" in page and "fewer than the project" in page


def test_each_pipeline_in_use_is_a_funnel_with_rates() -> None:
    project = make_project()
    make_duel(project, status="approved", score=90.0, bucket="final")
    make_duel(project, score=50.0, bucket="defeat")
    make_sample(project, status="rejected")  # imported
    turns, imported = project_stats(project).pipelines
    steps = {step.name: (step.count, step.of, step.rate) for step in turns.steps}
    assert (turns.name, imported.name) == ("Duels of single turns", "Imported samples")
    assert steps["Answered by challenger"] == (2, "Prompts", 1.0)
    assert steps["Duels"] == (2, None, None)
    assert steps["Final or refined"] == (1, "Parsed", 0.5)
    assert (steps["Decided"], steps["Approved"]) == ((1, "Samples", 0.5), (1, "Decided", 1.0))
    assert [(step.count, step.rate) for step in imported.steps] == [(1, None), (1, 1.0), (0, 0.0), (0, None)]


def test_answers_of_a_file_are_no_duels() -> None:
    project = make_project()
    make_duel(project, score=50.0, bucket="defeat")
    make_duel(project, status="approved", score=None, bucket="", run=make_run(project, kind="import"))
    stats = project_stats(project)
    turns, answers = stats.pipelines
    assert (stats.funnel["duels"], answers.name) == (1, "Imported answers")
    assert {step.name: (step.count, step.rate) for step in turns.steps}["Samples"] == (1, 1.0)
    assert [(step.name, step.count) for step in answers.steps][:3] == [("Samples", 1), ("Decided", 1), ("Approved", 1)]


@pytest.mark.usefixtures("signed_in")
def test_imported_runs_have_no_terminal_and_unknown_ones_are_not_dropped(client: Client, project: Project) -> None:
    make_imported(project, outcome="unknown")

    def steps() -> list[tuple[str, int, float | None]]:
        cache.clear()
        return [(step.name, step.count, step.rate) for step in project_stats(project).pipelines[0].steps]

    assert steps()[:3] == [("Trajectories", 1, None), ("Outcome known", 0, 0.0), ("Samples", 1, None)]
    make_imported(project, outcome="solved")
    assert steps()[1:3] == [("Outcome known", 1, 0.5), ("Kept", 1, 1.0)]
    balance = project_stats(project).balance
    assert (balance.kept, balance.exit, balance.panic, balance.empty_queue) == (0, None, None, None)
    assert balance == terminal_balance(Trajectory.objects.all())
    page = client.get(f"/p/{project.slug}/").content.decode()
    assert "How rollouts end" in page and "How kept trajectories end" not in page and "out of balance" not in page


@pytest.mark.usefixtures("signed_in")
def test_each_funnel_ends_with_the_samples_that_left_in_finished_exports(client: Client, project: Project) -> None:
    """Each once, in any number of exports and rows; not those that an export skipped."""
    for text in ("cat a.py", "cat b.py"):
        make_approved(project, challenger=text)
    leak = make_approved(project, challenger="cat c.py")
    leak.flags = Flag.LEAK.value
    leak.save()
    make_kept(project)
    make_approved(make_project())
    recipe = {"formats": ["sft-messages", "dpo"], "filter": {"status": "approved"}}

    def ends() -> dict[str, tuple[str, int, object]]:
        cache.clear()
        found = project_stats(project).pipelines
        return {one.name: (one.steps[-1].name, one.steps[-1].count, one.steps[-1].rate) for one in found}

    assert ends()["Duels of single turns"] == ("Exported", 0, None)
    launch(project=project, kind="export", params={"recipe": recipe}, user=None)
    assert ends()["Duels of single turns"] == ("Exported", 0, None), "it is not written"
    for _ in range(2):
        run_export(project, recipe)
    assert ends() == {"Duels of single turns": ("Exported", 2, None), "Rollouts of scenarios": ("Exported", 1, None)}
    cache.clear()
    page = client.get(f"/p/{project.slug}/").content.decode()
    assert page.count(f'<a href="/p/{project.slug}/exports/">Exported</a>') == 2


def test_calls_are_counted_by_day_and_model() -> None:
    project = make_project()
    run = make_run(project)
    for status, cost, latency in (("ok", "0.5", 1000), ("ok", None, 3000), ("error", None, 9000), ("sent", None, None)):
        call = Call(project=project, run=run, endpoint_name="judge-a", content_hash="x", status=status)
        call.cost, call.latency_ms = Decimal(cost) if cost else None, latency
        call.save()
    Call.objects.create(project=make_project(), run=run, endpoint_name="other", content_hash="x", status="ok")
    stats = project_stats(project)
    (day,) = stats.calls_by_day
    assert (day.model, day.calls, day.failed, day.cost) == ("judge-a", 3, 1, "0.5")
    assert (day.cost_unknown_calls, day.latency_ms) == (2, 2000)
    assert model_days(stats, "errors")["data"][0]["y"] == [pytest.approx(100 / 3)]
    assert model_days(stats, "latency")["data"][0]["y"] == [2.0]


def test_a_blind_reviewer_sees_no_calls_of_models_until_all_samples_are_decided(client: Client) -> None:
    project = make_project("billing")
    sample = make_sample(project)
    call = {"run": make_run(project), "endpoint_name": "judge-a", "content_hash": "x", "status": "ok"}
    Call.objects.create(project=project, **call, cost=Decimal("0.5"), latency_ms=1000)
    member = make_member(project)
    client.force_login(member)

    def models(path: str) -> bool:
        cache.clear()
        return "judge-a" in client.get(path, headers=make_bearer(member)).content.decode()

    paths = ["/api/v1/projects/billing/stats", *(f"/p/billing/charts/models.json?shown={name}" for name in SHOWN)]
    assert not any(models(path) for path in paths)
    cache.clear()
    assert "?shown=cost" not in client.get("/p/billing/").content.decode()
    sample.status = "approved"
    sample.save()
    assert all(models(path) for path in paths[:2])
    assert "?shown=cost" in client.get("/p/billing/").content.decode()


class TestChecklist:
    """The first page of a project without an export."""

    @pytest.mark.usefixtures("signed_in")
    def test_an_empty_project_has_the_chosen_checklist_and_nothing_else(self, client: Client, project: Project) -> None:
        page = client.get(f"/p/{project.slug}/?start=prompts").content.decode()
        assert f'<a class="btn btn--primary" href="/p/{project.slug}/models/new/">Add a model</a>' in page
        assert page.count("btn--primary") == 1
        assert "data-figure-url" not in page and "No runs yet" not in page and "unknown cost" not in page

    def test_the_next_step_moves_on_and_optional_ones_do_not_block(self) -> None:
        project = make_project()
        make_endpoint(project)
        assert self._next(project) == "Prompts"
        make_prompt(project)
        cache.clear()
        assert self._next(project) == "Duel"
        make_duel(project, bucket="final", score=90.0)
        make_run(project, kind="duel", state="succeeded")
        cache.clear()
        assert self._next(project) == "Review"

    def test_imported_samples_are_reviewed_at_once(self) -> None:
        project = make_project()
        make_sample(project)
        steps = self._steps(project)
        assert [(step["title"], step["action"]) for step in steps][0] == ("Review", "Review 1 sample")

    def test_a_viewer_reads_who_does_a_step(self) -> None:
        project = make_project()
        viewer = access_of(make_member(project, role="viewer"), project)
        assert viewer is not None
        steps = checklist_of(viewer, project_stats(project), "prompts")
        assert {step["url"] for step in steps} == {""}
        assert steps[0]["needs"] == "An admin of the project does this."

    def _steps(self, project: Project) -> list[dict[str, Any]]:
        access = access_of(make_member(project, role="admin"), project)
        assert access is not None
        return checklist_of(access, project_stats(project), "prompts")

    def _next(self, project: Project) -> str:
        (found,) = [str(step["title"]) for step in self._steps(project) if step["next"]]
        return found


def test_pace_ignores_undone_decisions() -> None:
    project = make_project()
    reviewer = make_member(project)
    samples = [make_sample(project) for _ in range(3)]
    for sample, seconds in zip(samples, (30, 8, 9), strict=True):
        Decision.objects.create(sample=sample, reviewer=reviewer, action="approve", version=1, seconds=seconds)
    undo = Decision.objects.create(sample=samples[0], reviewer=reviewer, action="undo", version=2)
    Decision.objects.filter(sample=samples[0], action="approve").update(undone_by=undo)
    stats = project_stats(project)
    assert [(entry["reviewer"], entry["n"]) for entry in stats.pace] == [(reviewer.username, 2)]
    assert stats.seconds_per_decision == 8.5


def test_unknown_cost_is_counted_separately() -> None:
    project = make_project()
    make_run(project, cost=Decimal("0.5"), cost_unknown_calls=3)
    make_run(project, cost=Decimal("0.25"))
    stats = project_stats(project)
    assert Decimal(stats.cost) == Decimal("0.75")
    assert stats.cost_unknown_calls == 3


def test_bars_change_colour_at_the_projects_own_edges() -> None:
    project = make_project(settings_json={"thresholds": {"final": 50.0, "refined": 40.0}})
    make_sample(project, score=62.0, bucket="final")
    figure = score_histogram(project_stats(project), project.settings.thresholds)
    assert {bar["name"]: sum(bar["y"]) for bar in figure["data"]} == {"final": 1, "refined": 0, "defeat": 0}
    assert [shape["x0"] for shape in figure["layout"]["shapes"]] == [40.0, 50.0]


class TestDoors:
    @pytest.mark.usefixtures("signed_in")
    def test_page_and_call_show_the_same(self, client: Client, project: Project, headers: dict[str, str]) -> None:
        make_sample(project, score=90.0, bucket="final")
        body = client.get(f"/api/v1/projects/{project.slug}/stats", headers=headers).json()
        assert body["buckets"]["final"] == 1
        assert client.get(f"/p/{project.slug}/").status_code == 200
        assert client.get(f"/p/{project.slug}/charts/scores.json").json()["data"]
        assert client.get(f"/p/{project.slug}/charts/outcomes.json").json()["data"]

    @pytest.mark.usefixtures("signed_in")
    def test_the_system_page_reports_missing_workers(self, client: Client, project: Project) -> None:
        page = client.get(f"/p/{project.slug}/system/").content.decode()
        assert "No worker has reported" in page
        assert "no worker" in page
