"""Live episodes as runs: on a server of openenv-core's own classes, and in the sandbox."""

from typing import Any

import pytest
from django.test import Client

from curation.evaluations.models import Episode, Evaluation
from curation.projects.instructions.texts import instructions_for
from curation.projects.models import Project
from curation.runs.models import Call, Item, Run
from curation.web.problems import Invalid
from sandbox.protocol import SandboxBackend
from tests.evaluations.evaluating import at_server, figures, live, make_split
from tests.factories import make_bearer, make_member, make_project, make_scenario
from tests.model_server import ModelServer
from tests.sandbox.fake import FakeBackend
from tests.sandbox.shop import MOST, shop_server
from tests.trajectories.rolling import has_greeting, todo_machine

__all__ = ["shop_server"]
pytestmark = pytest.mark.django_db(transaction=True)
FAMILIES = {"evaluation": {"families": {"shop": "shop"}}}


@pytest.fixture
def shop() -> Project:
    return make_project(settings_json=FAMILIES)


@pytest.fixture
def rooms(monkeypatch: pytest.MonkeyPatch) -> FakeBackend:
    """The sandbox of this machine, as a run finds it."""
    backend = FakeBackend(todo_machine, passes=has_greeting)

    def choose(*_: object, **__: object) -> SandboxBackend:
        return backend

    monkeypatch.setattr("curation.runs.workers.sandbox.choose_backend", choose)
    return backend


def test_every_model_plays_every_task(shop: Project, server: ModelServer, shop_server: str) -> None:
    """Seeds 1, 2 and 3 want as many things on the shelf."""
    for name, text in (("good", "shop add"), ("asks", "shop help --task-hint"), ("talks", "I would add one.")):
        at_server(shop, server, name)
        server.behave(name, text=text)
    run = live(shop, "talks", "good", "asks", environment=shop_server, episodes=3, seed=1, max_steps=5)
    rows = figures(run)
    assert [row["model"] for row in run.result["models"]] == ["good", "talks", "asks"]
    good = rows["good"]
    assert (good["n"], good["errors"], good["completion_rate"], good["avg_max_progress"]) == (3, 0, 1.0, 1.0)
    assert (good["avg_steps_to_complete"], good["terminal_reward"]) == (2.0, 1.0)
    assert good["avg_episode_reward"] == 1.2  # 1.0, 1.2 and 1.4
    assert good["reward_std"] == 0.1633
    assert good["avg_reward_per_step"] == 0.6  # 3.6 in 6 steps
    assert (rows["asks"]["hint_usage_rate"], rows["asks"]["format_failure_rate"]) == (1.0, 0.0)
    assert (rows["talks"]["format_failure_rate"], rows["talks"]["completion_rate"]) == (1.0, 0.0)
    assert rows["talks"]["avg_steps_to_complete"] is None
    assert Episode.objects.get(by__name="talks", key="seed 1").text.trace[0]["action"] == "shop --help"


def test_episodes_wait_while_the_server_is_full(shop: Project, server: ModelServer, shop_server: str) -> None:
    at_server(shop, server, "good", max_concurrency=16)
    server.behave("good", text="shop add", latency=0.1)
    run = live(shop, "good", environment=shop_server, episodes=3 * MOST, seed=1, max_concurrency=3 * MOST)
    assert (run.items_done, run.items_failed) == (3 * MOST, 0)
    assert figures(run)["good"]["completion_rate"] == 1.0


def test_a_failed_episode_is_not_scored(shop: Project, server: ModelServer, shop_server: str) -> None:
    at_server(shop, server, "good")
    server.behave("good", text="shop add")
    messages = [{"role": "system", "content": "Keep the shop."}, {"role": "user", "content": "Fill the shelf."}]
    rows = [
        {"task_id": task, "tier": "easy", "messages": [*messages, {"role": "assistant", "content": "shop add"}]}
        for task in ("fine", "breaks", "fine")
    ]
    run = live(shop, "good", environment=shop_server, split=str(make_split(shop, rows).pk))
    assert (run.items_done, run.items_failed) == (1, 1), "one episode a task"
    assert (figures(run)["good"]["n"], figures(run)["good"]["errors"]) == (1, 1)
    assert "the shelf fell down" in Item.objects.get(run=run, state="failed").reason
    episode = Episode.objects.get()
    assert (episode.key, episode.tier, episode.completed) == ("fine", "easy", True)
    assert "SECRET-CRITERION" not in str(server.counts("good")) + str([s["prompt"] for s in episode.text.trace])


@pytest.mark.parametrize(
    ("params", "path"),
    [
        ({"environment": "localhost:8000"}, "params.environment"),
        ({"environment": "ws://169.254.169.254:80"}, "params.environment"),
        ({"environment": "ws://127.0.0.1:9", "file": "rows.jsonl"}, "params.file"),
        ({"environment": "ws://127.0.0.1:9", "family": "unheard of"}, "params.family"),
        ({"environment": "ws://127.0.0.1:9", "split": "4711"}, "params.split"),
    ],
)
def test_invalid_live_parameters_are_refused_at_launch(
    shop: Project, server: ModelServer, params: dict[str, Any], path: str
) -> None:
    at_server(shop, server, "good")
    with pytest.raises(Invalid) as refused:
        live(shop, "good", **params)
    assert refused.value.errors[0].path == path and not Run.objects.exists()


def test_scenarios_are_played_in_the_sandbox(shop: Project, server: ModelServer, rooms: FakeBackend) -> None:
    make_scenario(shop, name="greets", status="admitted")
    make_scenario(shop, name="not proven", status="draft")
    for name, text in (("leaves", "exit"), ("works", "echo 'hello world' > greeting.txt")):
        at_server(shop, server, name)
        server.behave(name, text=text)
    run = live(shop, "leaves", "works", environment="sandbox", max_steps=3)
    assert {(row.by.name, row.key, row.completed) for row in Episode.objects.select_related("by")} == {
        ("leaves", "greets", False),
        ("works", "greets", False),
    }
    left = Episode.objects.get(by__name="leaves").text.trace
    assert left[-1]["observation"]["outcome"] == "checker_failed"
    assert Evaluation.objects.get(run=run).split is None
    assert set(Call.objects.filter(run=run).values_list("instructions_hash", flat=True)) == {
        instructions_for(shop, "operator").sha256
    }
    assert all(session.closed for session in rooms.sessions)


def test_a_sandbox_trace_has_prompts_and_replies(shop: Project, server: ModelServer, rooms: FakeBackend) -> None:
    make_scenario(shop, name="greets", status="admitted")
    at_server(shop, server, "talks")
    refusal = "The fenced block of your reply is not closed. Close it after the command."
    replies = {refusal: "I look.\n```\nls\n```"}
    server.behave("talks", text="Two at once:\n```\nexit", replies=replies, thinking="Hm.")
    live(shop, "talks", environment="sandbox", max_steps=2)
    first, second = Episode.objects.get().text.trace
    assert (first["reply"], first["action"]) == ("Two at once:\n```\nexit", "")
    assert (first["format_failure"], first["thinking"]) == (True, "Hm.")
    assert second["prompt"] == first["observation"]["text"] == refusal
    assert (second["action"], second["format_failure"], second["done"]) == ("ls", False, False)
    assert (second["reward"], second["observation"]["outcome"]) == (0.0, "no_terminal")
    assert Episode.objects.get().format_failures == 1


def test_two_models_are_compared_task_by_task(
    shop: Project, server: ModelServer, shop_server: str, client: Client
) -> None:
    """`full` fills every shelf in time, `half` only the small ones."""
    for name in ("full", "half"):
        at_server(shop, server, name)
        server.behave(name, text="shop add")
    half = live(shop, "half", environment=shop_server, episodes=4, seed=1, max_steps=2)
    full = live(shop, "full", environment=shop_server, episodes=4, seed=1, max_steps=4)
    client.force_login(make_member(shop))
    before, after = half.result["evaluation"], full.result["evaluation"]
    found = client.get(f"/api/v1/evaluations/{before}/compare/{after}").json()
    completed = next(metric for metric in found["metrics"] if metric["metric"] == "completed")
    assert (completed["before"], completed["after"], completed["gained"], completed["lost"]) == (0.5, 1.0, 2, 0)
    assert [row["preview"] for row in found["gains"]] == ["seed 3", "seed 4"]
    models = [Evaluation.objects.get(pk=pk).models.get().pk for pk in (before, after)]
    page = client.get(f"/p/{shop.slug}/evaluations/compare/?before={models[0]}&after={models[1]}")
    assert page.status_code == 200 and "completed now, not before" in page.content.decode()
    said = "Whether full and half differ is not known: tasks completed 50 % → 100 % (+50.0 pp"
    assert said in page.content.decode().replace("\xa0", " ") and found["conclusion"].startswith(said)
    chart = f"/p/{shop.slug}/evaluations/compare/chart/?before={models[0]}&after={models[1]}&shown="
    for shown in ("reward", "steps"):
        lines = client.get(f"{chart}{shown}").json()["data"]
        assert [(line["name"], line["x"]) for line in lines] == [
            (name, [1, 2, 3, 4]) for name in ("half (before)", "full (after)")
        ]
    assert lines[0]["y"] == [1, 2, 2, 2] and lines[1]["y"] == [1, 2, 3, 4]
    one = Episode.objects.get(evaluation=after, key="seed 3")
    assert f"/evaluations/{after}/episodes/{one.pk}/" in page.content.decode()


def test_an_evaluation_and_its_episodes_on_pages_and_by_rest(
    shop: Project, server: ModelServer, shop_server: str, client: Client
) -> None:
    at_server(shop, server, "talks")
    server.behave("talks", text="<b>\x1b[2J no command")
    run = live(shop, "talks", environment=shop_server, episodes=1, seed=2, max_steps=2)
    pk = run.result["evaluation"]
    user = make_member(shop)
    headers = make_bearer(user, "read")
    row = client.get(f"/api/v1/evaluations/{pk}", headers=headers).json()["rows"][0]
    assert (row["completion_rate"], row["format_failure_rate"], row["intervals"]["completion_rate"][0]) == (0.0, 1.0, 0)
    listed = client.get(f"/api/v1/evaluations/{pk}/episodes?completed=false", headers=headers).json()["data"]
    assert [(one["task"], one["steps"], one["format_failures"]) for one in listed] == [("seed 2", 2, 2)]
    one = client.get(f"/api/v1/episodes/{listed[0]['id']}", headers=headers).json()
    assert one["trace"][0]["observation"]["shelf"] == {"things": 0, "expected_things": "SECRET-CRITERION"}
    assert one["description"] == "Put 2 things on the shelf."
    client.force_login(user)
    here = f"/p/{shop.slug}/evaluations/{pk}/"
    for address in (here, f"{here}live/", f"{here}episodes/", f"{here}episodes/{listed[0]['id']}/"):
        page = client.get(address)
        assert page.status_code == 200, address
    text = page.content.decode()
    assert "&lt;b&gt;" in text and "\x1b" not in text


def test_a_form_starts_episodes_and_shows_errors_at_its_fields(
    shop: Project, server: ModelServer, shop_server: str, client: Client
) -> None:
    at_server(shop, server, "good")
    client.force_login(make_member(shop, role="curator"))
    here = f"/p/{shop.slug}/evaluations/new/live/"
    given = {"models": ["good"], "family": "shop", "environment": "elsewhere", "max_steps": 3}
    refused = client.post(here, given)
    assert refused.status_code == 422 and "ws:// or wss:// address" in refused.content.decode()
    started = client.post(here, {**given, "environment": shop_server, "episodes": 2})
    assert started.status_code == 302
    run = Run.objects.get()
    assert (run.params["episodes"], run.params["max_steps"], run.items_total) == (2, 3, 2)


def test_the_form_filters_the_scenarios(shop: Project, server: ModelServer, client: Client, rooms: FakeBackend) -> None:
    at_server(shop, server, "good")
    for name in ("oven", "harbour"):
        make_scenario(shop, name=name, status="admitted")
    client.force_login(make_member(shop, role="curator"))
    here = f"/p/{shop.slug}/evaluations/new/live/"
    given = {"models": ["good"], "family": "shop", "environment": "sandbox"}
    refused = client.post(here, {**given, "filter.status": "nosuch"})
    assert refused.status_code == 422 and "nosuch" in str(refused.context["form"].errors["filter"])
    bound = client.post(f"{here}estimate/", {**given, "filter.text": "oven"}).content.decode()
    # One episode of at most 15 steps.
    assert '<span class="figure__value">15</span>' in bound and not Run.objects.exists()
    assert client.post(here, {**given, "filter.text": "oven"}).status_code == 302
    run = Run.objects.get()
    assert (run.params["filter"], run.items_total) == ({"text": "oven"}, 1)
