"""`GET /projects/{slug}/trajectories`, `GET /trajectories/{id}`, its replay, `GET /projects/{slug}/pairs`."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from curation.projects.models import Project, Scope
from curation.runs.models import Run
from curation.trajectories.models import Pair, Trajectory
from tests.driving import end
from tests.factories import (
    BASH,
    called,
    make_bearer,
    make_imported,
    make_project,
    make_run,
    make_scenario,
    make_trajectory,
)
from tests.sandbox.fake import FakeBackend

pytestmark = pytest.mark.django_db
KEYS = {
    *("id", "scenario", "run", "sample_index", "model", "terminal", "panic_reason", "checker", "outcome"),
    *("keep", "facts", "replay", "sample", "environment", "task"),
    *("agent", "source", "source_id", "instance_id", "repo", "rewards", "reward", "exception", "cost", "steps"),
}
FULL = KEYS | {"turns", "tools", "metadata"}
TURN = {"kind", "text", "exit_code", "seconds", "truncated"}


@pytest.fixture
def bearer(project: Project) -> dict[str, str]:
    return make_bearer(project.members.get().user, Scope.READ, Scope.RUN)


def get(client: Client, bearer: dict[str, str], path: str, status: int = 200) -> Any:
    response = client.get(f"/api/v1{path}", headers=bearer)
    assert response.status_code == status, response.content
    return response.json()


def ids(client: Client, bearer: dict[str, str], query: str) -> list[int]:
    return [int(row["id"]) for row in get(client, bearer, f"/projects/acme/trajectories{query}")["data"]]


def test_one_trajectory_has_the_documented_fields(client: Client, project: Project, bearer: dict[str, str]) -> None:
    run = make_run(project, "rollout")
    row = make_trajectory(
        project, run=run, checker_output="fine\n", repeated_share=0.25, longest_repeat=2, axes={"provider_asked": "yes"}
    )
    shown = get(client, bearer, f"/trajectories/{row.pk}")
    assert set(shown) == FULL and all(set(turn) == TURN for turn in shown["turns"])
    assert shown["scenario"] == {"id": str(row.scenario_id), "name": row.subject}
    assert (shown["run"], shown["sample"]) == (str(run.pk), str(row.sample_id))
    assert shown["checker"] == {"passed": True, "output": "fine\n"}
    assert shown["facts"] == {
        "commands": 3,
        "repeated_share": 0.25,
        "longest_repeat": 2,
        "documentation_read": None,
        "provider_asked": True,
    }
    assert [turn["kind"] for turn in shown["turns"]][:3] == ["orientation", "action", "output"]
    assert (shown["terminal"], shown["panic_reason"], shown["replay"]) == ("exit", None, None)
    assert "You operate a shell" not in str(shown)


def test_an_imported_run_has_its_steps_in_the_names_of_atif(
    client: Client, project: Project, bearer: dict[str, str]
) -> None:
    row = make_imported(project, called("ls", "a.csv\n"), reward=1.0, rewards={"reward": 1.0}, metadata={"seed": 3})
    listed = get(client, bearer, "/projects/acme/trajectories?reward_min=1&agent=terminus-2&outcome=solved")["data"][0]
    assert (listed["task"], listed["agent"], listed["model"]) == ("sum", "terminus-2", "openai/stub-good")
    assert (listed["outcome"], listed["rewards"], listed["steps"]) == ("solved", {"reward": 1.0}, 3)
    shown = get(client, bearer, f"/trajectories/{row.pk}")
    assert shown["steps"] == row.text.steps and shown["tools"] == [BASH] and shown["metadata"] == {"seed": 3}
    assert [turn["kind"] for turn in shown["turns"]] == ["orientation", "orientation", "action", "output"]
    assert shown["turns"][2]["text"].startswith("[tool call] bash {") and shown["turns"][3]["text"] == "a.csv\n"


def test_a_panic_differs_from_a_missing_terminal(client: Client, project: Project, bearer: dict[str, str]) -> None:
    panic = make_trajectory(project, outcome="correct_panic", terminal="panic no access")
    none = make_trajectory(project, outcome="no_terminal", terminal="", checker_passed=None)
    shown = get(client, bearer, f"/trajectories/{panic.pk}")
    assert (shown["terminal"], shown["panic_reason"], shown["keep"]) == ("panic", "no access", True)
    shown = get(client, bearer, f"/trajectories/{none.pk}")
    assert (shown["terminal"], shown["checker"]["passed"], shown["keep"]) == (None, None, False)


def test_the_list_is_slim_unless_asked_and_reads_in_a_fixed_number_of_queries(
    client: Client, project: Project, bearer: dict[str, str]
) -> None:
    counts = []
    get(client, bearer, "/projects/acme/trajectories")
    for _ in range(2):
        for _ in range(3):
            make_trajectory(project)
        with CaptureQueriesContext(connection) as queries:
            rows = get(client, bearer, "/projects/acme/trajectories")["data"]
        counts.append(len(queries))
    assert counts[0] == counts[1]
    assert all(set(row) == KEYS and row["steps"] == 5 and "output" not in row["checker"] for row in rows)
    rows = get(client, bearer, "/projects/acme/trajectories?full=true&limit=2")["data"]
    assert all(set(row) == FULL and row["turns"] for row in rows)


def test_the_list_filters_sorts_counts_and_pages(client: Client, project: Project, bearer: dict[str, str]) -> None:
    run = make_run(project, "rollout")
    scenario = make_scenario(project, "archive it", bundle={"axes": {"task": "archive"}})
    solved = make_trajectory(project, scenario, run=run).pk
    failed = make_trajectory(project, scenario, outcome="checker_failed", commands=("ls",), sample_index=1).pk
    other = make_trajectory(project, model="operator-b", commands=("ls", "id"), sample={"status": "approved"}).pk
    make_trajectory(make_project())
    assert ids(client, bearer, "") == [other, failed, solved]
    assert ids(client, bearer, "?sort=commands") == [failed, other, solved]
    assert ids(client, bearer, "?outcome=checker_failed,timeout") == [failed]
    assert ids(client, bearer, "?keep=true&model=operator-a") == [solved]
    assert ids(client, bearer, f"?run={run.pk}") == [solved]
    assert ids(client, bearer, "?name=archive it&axes=task=archive") == [failed, solved]
    assert ids(client, bearer, "?status=approved") == [other]
    page = get(client, bearer, "/projects/acme/trajectories?limit=2&count=true")
    assert page["total"] == 3
    assert ids(client, bearer, f"?limit=2&cursor={page['next_cursor']}") == [solved]


@pytest.mark.parametrize("query", ["outcome=won", "colour=red", "sort=tokens", "keep=perhaps", "run=x"])
def test_unknown_parameters_of_the_list_are_refused(
    client: Client, project: Project, bearer: dict[str, str], query: str
) -> None:
    problem = get(client, bearer, f"/projects/acme/trajectories?{query}", status=400)
    assert problem["errors"][0]["path"] == query.partition("=")[0]


def test_a_replay_is_a_run_over_this_trajectory_alone(
    client: Client, project: Project, bearer: dict[str, str], rooms: FakeBackend
) -> None:
    row, other = make_trajectory(project), make_trajectory(project)
    response = client.post(f"/api/v1/trajectories/{row.pk}/replay", headers=bearer)
    assert response.status_code == 202
    run = Run.objects.get()
    assert response["Location"] == f"/api/v1/runs/{run.pk}" and response.json()["kind"] == "replay"
    assert end(run).state == "succeeded"
    assert get(client, bearer, f"/trajectories/{row.pk}")["replay"] == "agrees"
    assert Trajectory.objects.get(pk=other.pk).replay == ""


def test_a_trajectory_that_cannot_be_compared_is_not_replayed(
    client: Client, project: Project, bearer: dict[str, str], rooms: FakeBackend
) -> None:
    edited = make_trajectory(project, bundle_sha256="0" * 64)
    broken = make_trajectory(project, outcome="infra_error")
    for row in (edited, broken):
        response = client.post(f"/api/v1/trajectories/{row.pk}/replay", headers=bearer)
        assert (response.status_code, response.json()["code"]) == (409, "not_replayable")
    assert not Run.objects.exists()


def test_the_etag_changes_with_a_replay(client: Client, project: Project, bearer: dict[str, str]) -> None:
    row = make_trajectory(project)
    path = f"/api/v1/trajectories/{row.pk}"
    before = client.get(path, headers=bearer)["ETag"]
    assert client.get(path, headers=bearer)["ETag"] == before
    Trajectory.objects.update(replay="agrees")
    assert client.get(path, headers=bearer)["ETag"] != before


def test_pairs_name_both_sides(client: Client, project: Project, bearer: dict[str, str]) -> None:
    scenario = make_scenario(project)
    chosen = make_trajectory(project, scenario)
    rejected = make_trajectory(project, scenario, outcome="wrong_terminal", sample_index=1)
    run = make_run(project, "pairs")
    pair = Pair.objects.create(
        project=project, run=run, scenario=scenario, chosen=chosen, rejected=rejected, at=3, advantage=0.5
    )
    page = get(client, bearer, f"/projects/acme/pairs?count=true&run={run.pk}&strategy=first_divergence")
    assert page["total"] == 1
    assert page["data"] == [
        {
            "id": str(pair.pk),
            "scenario": {"id": str(scenario.pk), "name": scenario.name},
            "task": None,
            "run": str(run.pk),
            "chosen": str(chosen.pk),
            "rejected": str(rejected.pk),
            "chosen_outcome": "solved",
            "rejected_outcome": "wrong_terminal",
            "strategy": "first_divergence",
            "at": 3,
            "advantage": 0.5,
            "advantage_low": None,
            "advantage_high": None,
        }
    ]
    assert get(client, bearer, f"/projects/acme/pairs?scenario={scenario.pk + 1}")["data"] == []
    get(client, bearer, "/projects/acme/pairs?strategy=any", status=400)
    get(client, bearer, "/projects/acme/pairs?scenario=greeting", status=400)
