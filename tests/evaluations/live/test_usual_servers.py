"""Live episodes on stand-ins for usual environments: refused actions, misfits, missing episodes."""

import json
from typing import Any

import pytest
from django.test import Client

from curation.evaluations.missing import missing_notes
from curation.evaluations.models import Episode, EvaluatedModel, Evaluation
from curation.projects.models import Project
from curation.runs.control import retry_failed
from curation.runs.launch import launch
from curation.runs.models import Item, Run
from curation.web.problems import Invalid
from tests.driving import end
from tests.evaluations import evaluating
from tests.evaluations.evaluating import at_server, figures, make_split
from tests.factories import make_bearer, make_member, make_project
from tests.model_server import ModelServer
from tests.sandbox.shop import shop_server, usual_servers

__all__ = ["shop_server", "usual_servers"]
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def project() -> Project:
    return make_project(settings_json={"evaluation": {"families": {"shop": "shop"}}})


def live(project: Project, *models: str, **params: Any) -> Run:
    return evaluating.live(project, *models, **{"family": "environment", **params})


def test_refused_actions_count_against_the_model(
    project: Project, server: ModelServer, usual_servers: str, client: Client
) -> None:
    """`goes` walks through the maze; `flies` sends actions that the server refuses, in another way each."""
    for name, text in (("goes", "3"), ("flies", "east"), ("jumps", "9")):
        at_server(project, server, name)
        server.behave(name, text=text)
    run = live(project, "goes", "flies", "jumps", environment=f"{usual_servers}/maze", episodes=2, max_steps=4)
    rows = figures(run)
    assert (rows["goes"]["completion_rate"], rows["goes"]["invalid_actions"]) == (1.0, 0)
    for name, refused in (("flies", 8), ("jumps", 6)):
        assert (rows[name]["n"], rows[name]["errors"], rows[name]["episodes_missing"]) == (2, 0, 0)
        assert (rows[name]["completion_rate"], rows[name]["invalid_actions"]) == (0.0, refused)
        assert (rows[name]["invalid_action_rate"], rows[name]["incomplete"]) == (1.0, False)
    one = Episode.objects.filter(by__name="flies").select_related("text")[0]
    assert one.text.trace[0]["refused"] and "valid integer" in one.text.trace[0]["observation"]["error"]
    client.force_login(make_member(project))
    page = f"/p/{project.slug}/evaluations/{one.evaluation_id}/episodes/{one.pk}/"
    assert "action refused" in client.get(page).content.decode()
    found = client.get(f"/api/v1/episodes/{one.pk}").json()
    assert (found["invalid_actions"], found["trace"][0]["refused"]) == (4, True)


@pytest.mark.parametrize("kind", ["maze", "grid", "coding", "reasoning", "form", "echo"])
def test_a_family_that_does_not_fit_is_refused_at_launch(
    project: Project, server: ModelServer, usual_servers: str, kind: str
) -> None:
    at_server(project, server, "goes")
    with pytest.raises(Invalid) as refused:
        live(project, "goes", environment=f"{usual_servers}/{kind}", family="shop")
    assert refused.value.errors[0].path == "params.family" and "`environment`" in refused.value.errors[0].message
    assert not Run.objects.exists()


def test_the_family_environment_is_only_for_servers(project: Project, server: ModelServer) -> None:
    at_server(project, server, "goes")
    split = make_split(project)
    Run.objects.all().delete()
    with pytest.raises(Invalid) as refused:
        launch(
            project=project,
            kind="evaluate",
            params={"models": ["goes"], "split": str(split.pk), "family": "environment"},
            user=None,
        )
    assert refused.value.errors[0].path == "params.family"


def test_figures_with_missing_episodes_are_incomplete_and_equal_to_nothing(
    project: Project, server: ModelServer, shop_server: str, client: Client
) -> None:
    """The server breaks at one of the three tasks of the first evaluation."""
    for name in ("first", "second"):
        at_server(project, server, name)
        server.behave(name, text="shop add")
    answer = {"role": "assistant", "content": "shop add"}
    rows = [
        {"task_id": task, "tier": "easy", "messages": [{"role": "user", "content": task}, answer]}
        for task in ("one", "two", "breaks")
    ]
    params = {"environment": shop_server, "split": str(make_split(project, rows).pk), "family": "shop", "max_steps": 3}
    broken = live(project, "first", **params)
    whole = live(project, "second", reset_template='{"seed": 2}', **params)
    row = figures(broken)["first"]
    assert (row["n"], row["errors"], row["episodes_missing"], row["incomplete"]) == (2, 1, 1, True)
    assert (figures(whole)["second"]["completion_rate"], figures(whole)["second"]["incomplete"]) == (1.0, False)
    client.force_login(make_member(project))
    before, after = broken.result["evaluation"], whole.result["evaluation"]
    found = client.get(f"/api/v1/evaluations/{before}").json()
    assert found["by_tier"][0]["rows"][0]["episodes_missing"] == 1
    assert "1 episode is missing, of 3" in found["notes"][0] and "shifts them" in found["notes"][0]
    compared = client.get(f"/api/v1/evaluations/{before}/compare/{after}").json()
    assert (compared["missing"], compared["incomplete"]) == (1, True)
    assert {metric["said"] for metric in compared["metrics"]} == {"incomplete"}
    assert "cannot be compared yet" in compared["conclusion"]
    page = client.get(f"/p/{project.slug}/evaluations/{before}/").content.decode()
    assert "incomplete: 1 missing" in page and "Not all that was asked for" in page
    board = client.get(f"/p/{project.slug}/evaluations/leaderboard/").content.decode()
    assert "incomplete" in board and board.index("second") < board.index("first</a>")


def test_what_an_environment_does_not_report_is_no_figure(
    project: Project, server: ModelServer, usual_servers: str, client: Client
) -> None:
    """Echo gives neither rewards nor progress. The shell rewards its last step alone, so that `walks` has earned 0."""
    call = '{"tool_name": "echo_message", "arguments": {"message": "hi"}}'
    for name, text in (("calls", call), ("wins", '{"command": "submit right"}'), ("walks", '{"command": "ls"}')):
        at_server(project, server, name)
        server.behave(name, text=text)
    silent = live(project, "calls", "wins", environment=f"{usual_servers}/echo", episodes=1, max_steps=2)
    row = figures(silent)["calls"]
    assert (row["n"], row["completion_rate"], row["episodes_missing"]) == (1, 0.0, 0)
    names = ("terminal_reward", "avg_episode_reward", "avg_reward_per_step", "reward_std", "avg_max_progress")
    assert [row[name] for name in names] == [None] * 5
    sparse = figures(live(project, "wins", "walks", environment=f"{usual_servers}/shell", episodes=1, max_steps=2))
    assert [sparse[name]["completion_rate"] for name in ("wins", "walks")] == [1.0, 0.0]
    assert [sparse[name]["avg_episode_reward"] for name in ("wins", "walks")] == [1.0, 0.0]
    client.force_login(make_member(project))
    evaluation = silent.result["evaluation"]
    pair = f"{evaluation}/compare/{evaluation}?model_before=calls&model_after=wins"
    compared = client.get(f"/api/v1/evaluations/{pair}").json()
    assert not {"total_reward", "max_progress", "reward_std"} & {one["metric"] for one in compared["metrics"]}
    one = Episode.objects.get(by__name="calls")
    found = client.get(f"/api/v1/episodes/{one.pk}").json()
    assert (found["total_reward"], found["terminal_reward"], found["max_progress"]) == (None, None, None)
    here = f"/p/{project.slug}/evaluations/{evaluation}"
    assert "no reward" in client.get(f"{here}/episodes/{one.pk}/").content.decode()
    assert client.get(f"{here}/chart/?shown=reward").json()["data"] == []
    assert [line["y"] for line in client.get(f"{here}/chart/?shown=steps").json()["data"]] == [[2.0], [2.0]]
    models = {model.name: model.pk for model in EvaluatedModel.objects.filter(evaluation=evaluation)}
    chart = f"/p/{project.slug}/evaluations/compare/chart/?before={models['calls']}&after={models['wins']}"
    assert client.get(f"{chart}&shown=reward").json()["data"][0]["y"] == []


@pytest.mark.parametrize("tier", ["hard", ""])
def test_a_tier_that_may_lack_an_episode_is_incomplete(
    project: Project, server: ModelServer, shop_server: str, client: Client, tier: str
) -> None:
    """Without a tier of its own, the episode that broke may be of the tier that the server names."""
    at_server(project, server, "first")
    server.behave("first", text="shop add")
    answer = {"role": "assistant", "content": "shop add"}
    tiers = {"one": "easy" if tier else "", "breaks": tier}
    rows = [
        {"task_id": task, "tier": tier, "messages": [{"role": "user", "content": task}, answer]}
        for task, tier in tiers.items()
    ]
    run = live(project, "first", environment=shop_server, split=str(make_split(project, rows).pk), family="shop")
    client.force_login(make_member(project))
    evaluation = run.result["evaluation"]
    found = client.get(f"/api/v1/evaluations/{evaluation}").json()
    by_tier = {one["tier"]: one["rows"][0] for one in found["by_tier"]}
    lacking, other = by_tier[tier], by_tier["easy" if tier else "warmup"]
    assert (lacking["n"], lacking["episodes_missing"], lacking["incomplete"]) == (0, 1, True)
    assert (lacking["completion_rate"], other["completion_rate"]) == (None, 1.0)
    assert (other["episodes_missing"], other["incomplete"]) == ((0, False) if tier else (None, True))
    page = client.get(f"/p/{project.slug}/evaluations/{evaluation}/").content.decode()
    assert page.count(">incomplete<") >= 12, "each figure of the tier"
    chart = client.get(f"/p/{project.slug}/evaluations/{evaluation}/chart/?shown=reward").json()
    assert [line["name"] for line in chart["data"]] == ["first (incomplete)"]


def test_a_second_try_of_what_failed_is_said(
    project: Project, server: ModelServer, shop_server: str, client: Client
) -> None:
    at_server(project, server, "first")
    server.behave("first", text="shop add")
    run = live(project, "first", environment=shop_server, family="shop", episodes=1, seed=1)
    Item.objects.filter(run=run).update(state="failed")
    Run.objects.filter(pk=run.pk).update(items_done=0, items_failed=1)
    run = end(retry_failed(run=run, user=None))
    assert figures(run)["first"]["episodes_missing"] == 0
    (note,) = missing_notes(Evaluation.objects.get(run=run), run.result["models"])
    assert "1 episode is the second try" in note and "shifts the figures" in note
    at_server(project, server, "second")
    server.behave("second", text="shop add")
    other = live(project, "second", environment=shop_server, family="shop", episodes=1, seed=1)
    pair = f"{run.result['evaluation']}/compare/{other.result['evaluation']}"
    headers = make_bearer(make_member(project), "read")
    assert client.get(f"/api/v1/evaluations/{pair}", headers=headers).json()["notes"] == [note]
    file = client.get(f"/api/v1/evaluations/{pair}/comparison.md", headers=headers).content.decode()
    assert "second try" in file


def test_the_tools_of_a_server_are_called_as_functions(
    project: Project, server: ModelServer, usual_servers: str
) -> None:
    """The model server calls the first function that it is offered."""
    at_server(project, server, "caller")
    server.behave("caller", calls=True, arguments='{"message": "hi"}')
    run = live(project, "caller", environment=f"{usual_servers}/echo", tools=True, episodes=1, max_steps=2)
    one = Episode.objects.select_related("text").get(by__evaluation__run=run)
    called = [json.loads(step["action"]) for step in one.text.trace]
    assert called == [{"tool_name": "echo_message", "arguments": {"message": "hi"}}] * 2
    assert "hi" in str(one.text.trace[0]["observation"]) and one.format_failures == 0
    with pytest.raises(Invalid, match="calls of tools"):
        live(project, "caller", environment=f"{usual_servers}/maze", tools=True)
