"""Episodes on servers that play the requested task, that play another one, and that report none."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from curation.evaluations.models import Episode, EvaluatedModel, Evaluation, Split
from curation.projects.models import Project
from curation.runs.launch import launch
from curation.runs.models import Item, Run
from curation.samples.models import Sample
from curation.trajectories.models import Pair, Trajectory
from curation.trajectories.rollout.server_episode import outcome_of, turns_of
from curation.web.problems import Invalid
from sandbox.agent.environment import Observation
from sandbox.agent.live import LiveEpisode, LiveStep
from sandbox.agent.reported_task import TaskConfirmation, TaskFacts
from tests.driving import end
from tests.evaluations.evaluating import at_server, make_split
from tests.exports.exporting import approve, run_export
from tests.factories import make_bearer, make_member, make_project
from tests.model_server import ModelServer
from tests.sandbox.shop import CLOUD_TASKS as TASKS
from tests.sandbox.shop import start_server
from tests.serving import free_port

pytestmark = pytest.mark.django_db(transaction=True)
WHOLE_TASK = '{"task": {{row.task}}}'
Log = Callable[[], dict[str, list[dict[str, Any]]]]


@contextmanager
def cloud(log: Path, kind: str, most: int = 1) -> Iterator[tuple[str, Log]]:
    """A server's address, and its log by episode."""
    log.touch()
    port = free_port()
    process = start_server("cloud_server", port, log, kind, most)

    def read() -> dict[str, list[dict[str, Any]]]:
        episodes: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for line in log.read_text().splitlines():
            entry = json.loads(line)
            episodes[entry["episode"]].append(entry)
        return episodes

    try:
        yield f"http://127.0.0.1:{port}", read
    finally:
        process.kill()
        process.join()


@pytest.fixture(scope="module")
def stubborn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Log]]:
    with cloud(tmp_path_factory.mktemp("stubborn") / "log", "stubborn") as server:
        yield server


@pytest.fixture(scope="module")
def honours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Log]]:
    with cloud(tmp_path_factory.mktemp("honours") / "log", "honours", 4) as server:
        yield server


@pytest.fixture
def project(server: ModelServer) -> Project:
    made = make_project()
    for name, text in (("makes", "aws s3 mb"), ("stalls", "aws s3 ls")):
        at_server(made, server, name)
        server.behave(name, text=text)
    return made


def split_of(project: Project, tasks: list[dict[str, Any]]) -> Split:
    """Rows as files write them: the id is a text, the task is the server's own object."""
    rows = []
    for task in tasks:
        user = {"role": "user", "content": f"TASK: {task['description']}\n\nStep: 0"}
        row = {"task_id": str(task["task_id"]), "difficulty": task["difficulty"], "task": task}
        rows.append({**row, "messages": [user, {"role": "assistant", "content": "aws s3 mb"}]})
    return make_split(project, rows)


def play(project: Project, address: str, split: Split, *models: str, **params: Any) -> Run:
    given = {"kind": "live", "models": list(models), "environment": address, "split": str(split.pk), **params}
    return end(launch(project=project, kind="evaluate", params={"max_concurrency": 1, **given}, user=None))


def row_of(run: Run, model: str) -> dict[str, Any]:
    return next(row for row in run.result["models"] if row["model"] == model)


def test_an_episode_of_another_task_is_named_and_never_scored(
    project: Project, stubborn: tuple[str, Log], client: Client
) -> None:
    """The server plays warm-up tasks only, so that at most a warm-up row is played by chance."""
    address, log = stubborn
    split = split_of(project, [TASKS[0], TASKS[4], TASKS[1], TASKS[6]])
    run = play(project, address, split, "makes")
    row = row_of(run, "makes") if run.state == "succeeded" else None
    episodes = list(Episode.objects.all())
    played = {entry["task_id"] for steps in log().values() if len(steps) > 1 for entry in steps}
    assert {int(episode.key) for episode in episodes} == played
    assert all(episode.tier == "warmup" for episode in episodes)
    failed = Item.objects.filter(run=run, state="failed")
    assert failed.count() == 4 - len(episodes) >= 2
    reason = failed.get(data__task="4").reason
    assert "task 4 \"Create 3 buckets of the kind 'intermediate-a'.\" (intermediate) was asked for" in reason
    assert "the server plays task" in reason
    assert row is None or (row["n"], row["mismatches"], row["errors"]) == (len(episodes), 4 - len(episodes), 0)
    evaluation = run.result["evaluation"]
    client.force_login(make_member(project))
    found = client.get(f"/api/v1/evaluations/{evaluation}").json()
    other = next(one for one in found["mismatches"] if one["key"] == "4")
    assert other["asked"]["text"] == TASKS[4]["description"]
    assert other["played"]["tiers"] == ["warmup"]
    assert other["sent"] == {"task_id": 4, "seed": 0}
    page = client.get(f"/p/{project.slug}/evaluations/{evaluation}/").content.decode()
    assert "Create 3 buckets of the kind" in page


def test_ten_episodes_of_other_tasks_in_a_row_end_the_run(
    project: Project, stubborn: tuple[str, Log], server: ModelServer
) -> None:
    address, _ = stubborn
    split = split_of(project, TASKS[2:])
    run = play(project, address, split, "makes", episodes=3)
    assert run.state == "failed"
    assert "10 episodes in a row were of other tasks" in run.error
    assert "Create 3 buckets of the kind 'intermediate-b'" in run.error
    assert "'warmup-" in run.error
    assert not Episode.objects.exists()
    assert Item.objects.filter(run=run, state="failed").count() < 24
    assert server.counts("makes").asked == 0


@pytest.mark.parametrize("kind", ["stubborn", "honours"])
def test_with_the_right_reset_every_figure_is_that_of_the_servers_log(
    project: Project, kind: str, request: pytest.FixtureRequest
) -> None:
    address, log = request.getfixturevalue(kind)
    before = set(log())
    split = split_of(project, TASKS)
    template = {"reset_template": WHOLE_TASK} if kind == "stubborn" else {}
    run = play(project, address, split, "makes", "stalls", max_steps=4, **template)
    assert run.state == "succeeded", run.error
    logged = [steps for episode, steps in log().items() if episode not in before]
    theirs = sorted(
        (
            steps[0]["task_id"],
            len(steps) - 1,
            round(sum(step["reward"] for step in steps), 6),
            steps[-1]["reward"],
            steps[-1]["achieved"],
        )
        for steps in logged
    )
    ours = sorted(
        (int(one.key), one.steps, round(one.total_reward or 0, 6), one.terminal_reward, one.completed)
        for one in Episode.objects.all()
    )
    assert ours == theirs
    assert {one.played for one in Episode.objects.all()} == {"confirmed"}
    assert (row_of(run, "makes")["n"], row_of(run, "makes")["mismatches"], row_of(run, "makes")["unconfirmed"]) == (
        10,
        0,
        0,
    )
    for model in ("makes", "stalls"):
        mine = list(Episode.objects.filter(by__name=model))
        row = row_of(run, model)
        assert row["avg_steps"] == round(sum(one.steps for one in mine) / 10, 4)
        assert row["completion_rate"] == sum(one.completed for one in mine) / 10
    assert "SECRET-CRITERION" not in str(
        [one.text.trace[0]["prompt"] for one in Episode.objects.select_related("text")]
    )


def test_a_server_that_says_nothing_leaves_its_episodes_unconfirmed(
    project: Project, tmp_path: Path, client: Client
) -> None:
    with cloud(tmp_path / "log", "silent") as (address, _):
        run = play(project, address, split_of(project, TASKS[:2]), "makes")
    assert (row_of(run, "makes")["n"], row_of(run, "makes")["unconfirmed"]) == (2, 2)
    client.force_login(make_member(project))
    page = client.get(f"/p/{project.slug}/evaluations/{run.result['evaluation']}/").content.decode()
    assert "2 unconfirmed" in page


def test_an_echoed_id_does_not_confirm_another_text(project: Project, tmp_path: Path) -> None:
    with cloud(tmp_path / "log", "echoes") as (address, _):
        run = play(project, address, split_of(project, TASKS[2:4]), "makes")
    assert run.items_failed == 2
    assert not Episode.objects.exists()


def test_a_reset_is_tried_before_a_launch(project: Project, stubborn: tuple[str, Log], client: Client) -> None:
    address, log = stubborn
    split, user = split_of(project, TASKS[8:]), make_member(project, role="curator")
    headers, known = make_bearer(user, "read", "run"), len(log())
    here = f"/api/v1/projects/{project.slug}/evaluations/try-reset"
    given: dict[str, object] = {"environment": address, "split": str(split.pk), "task": 2}

    def tried(**more: object) -> dict[str, Any]:
        answer = client.post(here, {**given, **more}, content_type="application/json", headers=headers)
        assert answer.status_code == 200, answer.content
        found: dict[str, Any] = answer.json()
        return found

    wrong, right = tried(), tried(reset_template=WHOLE_TASK)
    assert (wrong["sent"], wrong["confirmation"]) == ({"task_id": 9, "seed": 0}, "mismatch")
    assert (right["sent"], right["confirmation"]) == ({"task": TASKS[9]}, "confirmed")
    assert right["said"]["text"] == right["asked"]["text"] == TASKS[9]["description"]
    assert "SECRET-CRITERION" not in right["text"]
    assert len(log()) == known + 2
    assert not Run.objects.filter(kind="evaluate").exists()
    refused = client.post(
        here, {"environment": "http://169.254.169.254"}, content_type="application/json", headers=headers
    )
    assert refused.status_code == 422
    client.force_login(user)
    page = client.post(
        f"/p/{project.slug}/evaluations/try-reset/",
        {"environment": address, "split": str(split.pk), "reset_template": ""},
    ).content.decode()
    assert "the server plays another task" in page
    assert "Create 5 buckets of the kind" in page


def test_repeats_of_a_task_are_episodes_of_their_own(project: Project, honours: tuple[str, Log]) -> None:
    address, _ = honours
    run = play(project, address, split_of(project, TASKS[:4]), "makes", "stalls", episodes=3, max_steps=2)
    row = row_of(run, "makes")
    assert (row["n"], row["tasks"], row["completion_rate"]) == (12, 4, 1.0)
    assert list(Episode.objects.filter(by__name="makes", key="0").values_list("repeat", flat=True)) == [0, 1, 2]
    evaluation = Evaluation.objects.get(run=run)
    low = evaluation.models.get(name="makes").figures["intervals"]["completion_rate"][0]
    assert low == 0.51, "12 episodes of 4 tasks that all agree say no more than 4 episodes"


def test_live_models_have_a_leaderboard_and_a_baseline(
    project: Project, honours: tuple[str, Log], client: Client
) -> None:
    """Where `makes` is the baseline, `stalls` is a regression: it completes none of the ten tasks."""
    address, _ = honours
    split = split_of(project, TASKS)
    run = play(project, address, split, "stalls", "makes", max_steps=5)
    user = make_member(project, role="admin")
    headers = make_bearer(user)
    here = f"/api/v1/projects/{project.slug}/leaderboard?split={split.pk}"
    board = client.get(here, headers=headers).json()
    assert (board["kind"], [row["figures"]["model"] for row in board["data"]]) == ("live", ["makes", "stalls"])
    pin = f"/api/v1/evaluations/{run.result['evaluation']}/baseline"
    pinned = client.post(pin, {"model": "makes"}, content_type="application/json", headers=headers).json()["data"]
    assert [(row["baseline"], row["regressed"]) for row in pinned] == [(True, False), (False, True)]
    assert "completed" in pinned[1]["against"]["worse"]
    assert client.get(f"{here}&kind=static", headers=headers).json()["data"] == []
    client.force_login(user)
    page = client.get(f"/p/{project.slug}/evaluations/leaderboard/?split={split.pk}")
    assert page.status_code == 200
    assert "regressed" in page.content.decode()
    chart = client.get(f"/p/{project.slug}/evaluations/{run.result['evaluation']}/chart/?shown=steps").json()
    assert {line["name"]: line["y"] for line in chart["data"]} == {
        "stalls": [5.0] * 10,
        "makes": [1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0, 5.0, 5.0],
    }
    ids = {model.name: model.pk for model in EvaluatedModel.objects.filter(evaluation__run=run)}
    pair = f"?before={ids['stalls']}&after={ids['makes']}"
    compared = client.get(f"/p/{project.slug}/evaluations/compare/{pair}")
    assert "without a hint" in compared.content.decode()
    found = client.get(
        f"{pin.removesuffix('/baseline')}/compare/{run.result['evaluation']}?model_before=stalls&model_after=makes",
        headers=headers,
    ).json()
    assert [tier["tier"] for tier in found["tiers"]] == ["warmup", "beginner", "intermediate", "advanced", "expert"]
    per_step = next(metric for metric in found["metrics"] if metric["metric"] == "reward_per_step")
    rows = {row["model"]: row for row in run.result["models"]}
    assert (per_step["before"], per_step["after"]) == tuple(
        rows[name]["avg_reward_per_step"] for name in ("stalls", "makes")
    )
    assert "steps_to_complete" not in [metric["metric"] for metric in found["metrics"]]
    gone = client.delete(f"/api/v1/splits/{split.pk}/baseline?kind=live", headers=headers)
    assert gone.status_code == 204
    assert not EvaluatedModel.objects.filter(regressed=True).exists()


def test_episodes_become_samples_and_pairs(project: Project, honours: tuple[str, Log], client: Client) -> None:
    """`makes` succeeds and `stalls` fails on each task, from the first command on."""
    address, _ = honours
    split = split_of(project, TASKS[2:4])
    run = play(project, address, split, "makes", "stalls", max_steps=3, trajectories=True)
    rows = Trajectory.objects.select_related("text", "sample").order_by("task", "model")
    assert [(row.task, row.model, row.outcome, row.keep) for row in rows] == [
        ("2", "makes", "solved", True),
        ("2", "stalls", "no_terminal", False),
        ("3", "makes", "solved", True),
        ("3", "stalls", "no_terminal", False),
    ]
    solved, failed = rows[0], rows[1]
    assert [turn["kind"] for turn in solved.text.turns] == ["orientation", "action", "output", "action"]
    assert solved.text.turns[0]["text"] == f"{TASKS[2]['description']}\n\nEverything was wiped."
    assert "SECRET-CRITERION" not in str(solved.text.turns) + str(solved.text.exchange)
    assert solved.sample is not None
    assert (solved.sample.kind, solved.sample.instance_id, solved.sample.status) == ("trajectory", "2", "pending")
    assert failed.text.turns[-1]["kind"] == "output"
    pairs = end(launch(project=project, kind="pairs", params={}, user=None))
    assert pairs.result["pairs"] == 2
    assert {(pair.chosen.model, pair.rejected.model, pair.at) for pair in Pair.objects.all()} == {
        ("makes", "stalls", 1)
    }
    user = make_member(project, role="admin")
    client.force_login(user)
    headers = make_bearer(user)
    here = f"/p/{project.slug}"
    places = [f"{here}/trajectories/", f"{here}/trajectories/{solved.pk}/", f"{here}/pairs/"]
    places += [f"{here}/samples/{solved.sample_id}/", f"{here}/evaluations/splits/{split.pk}/"]
    for place in places:
        page = client.get(place, follow=True)
        assert page.status_code == 200, place
    assert "4 samples came from episodes on this split" in page.content.decode()
    approve(solved.sample, by=user)
    export = run_export(project, {"formats": ["sft-messages"]})
    against = {"split": str(split.pk), "export": str(export.pk)}
    found = end(launch(project=project, kind="contamination", params=against, user=None)).result
    assert (found["contaminated"], found["origin"]) == (1, 1), (
        "its text is that of a session, its origin a held-out row"
    )
    evaluation = Episode.objects.get(trajectory=solved).evaluation_id
    whole = json.loads(client.get(f"/api/v1/evaluations/{evaluation}/result.json").getvalue())
    assert [len(episode["trace"]) for episode in whole["episodes"]] == [one["steps"] for one in whole["episodes"]]
    assert whole["episodes"][0]["trace"][0]["action"] and whole["episodes"][0]["reset"]
    one = client.get(f"/api/v1/trajectories/{solved.pk}", headers=headers).json()
    assert (one["scenario"], one["task"], one["environment"]) == (None, "2", address.replace("http", "ws"))
    refused = client.post(f"/api/v1/trajectories/{solved.pk}/replay", headers=headers)
    assert refused.status_code == 409
    assert Episode.objects.get(trajectory=solved).evaluation.run_id == run.pk


def test_a_mismatch_is_no_sample(project: Project, stubborn: tuple[str, Log]) -> None:
    address, _ = stubborn
    play(project, address, split_of(project, [TASKS[9]]), "makes", trajectories=True)
    assert not Trajectory.objects.exists()
    assert not Sample.objects.exists()


def test_a_solved_episode_with_a_reply_without_a_command_is_not_kept() -> None:
    said = TaskFacts(frozenset({frozenset({"2"})}))

    def step(reply: str, action: str, *, done: bool) -> LiveStep:
        return LiveStep("prompt", reply, "", action, reply != action, False, {"output": "made"}, 1.0, 1.0, done)

    steps = (step("I would look.", "aws help", done=False), step("aws s3 mb", "aws s3 mb", done=True))
    episode = LiveEpisode("Make one.", "", steps, True, said, TaskConfirmation.CONFIRMED, Observation("", {}))
    assert outcome_of(episode) == "format_error"
    assert [turn["text"] for turn in turns_of(episode)] == ["Make one.", "I would look.", "made", "aws s3 mb"]


@pytest.mark.parametrize(
    ("template", "says"),
    [
        ('{"task": {{row.nothing}}}', "has no `nothing`"),
        ('{"task": {{row.task}}', "not JSON"),
        ("[{{row.task}}]", "not a JSON object"),
    ],
)
def test_a_reset_that_cannot_be_filled_in_is_refused_at_launch(project: Project, template: str, says: str) -> None:
    with pytest.raises(Invalid) as refused:
        play(project, "http://127.0.0.1:9", split_of(project, TASKS[:1]), "makes", reset_template=template)
    assert says in str(refused.value)
    assert refused.value.errors[0].path == "params.reset_template"
    assert not Run.objects.filter(kind="evaluate").exists()
