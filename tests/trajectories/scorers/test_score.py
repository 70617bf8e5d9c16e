"""A scorer of one's own gives trajectories a reward: a Python function, a server, and a rubric that a model reads."""

import json
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from curation.llm.client.completion import CompletionRequest
from curation.projects.models import Project
from curation.runs.engine.waiting import wake_due
from curation.runs.engine.worker import drive
from curation.runs.kinds import kind_of
from curation.runs.launch import estimate
from curation.runs.models import Item, Run, ServerOutage
from curation.trajectories.models import Trajectory
from curation.web.problems import Invalid
from tests.driving import end
from tests.factories import called, make_bearer, make_imported, make_trajectory, make_user
from tests.serving import serving, url_of
from tests.trajectories.rolling import Operators, make_stage, run_to_end, start

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("bubblewrap")]
SHORT = "def score(trajectory):\n    return 1 / len(trajectory['steps'])\n"
LOOKS = "def score(step, trajectory):\n    return 'ls' in str(step['tool_calls'])\n"


@pytest.fixture
def project() -> Project:
    return make_stage()


def scored(project: Project, **params: Any) -> Run:
    return run_to_end(project, "score", **{"name": "style", **params})


def failure(run: Run) -> str:
    return Item.objects.get(run=run).reason


@pytest.mark.bubblewrap
class TestPython:
    def test_a_session_gets_a_reward_that_is_filtered_by(self, project: Project, client: Client) -> None:
        short = make_imported(project, called("ls", "a"), rewards={"reward": 1.0}, reward=1.0)
        long = make_imported(project, *(called("ls", "a", number) for number in range(9)))
        run = scored(project, python=SHORT)

        assert (run.state, run.result["scored"]) == ("succeeded", 2)
        assert kind_of("score").results(run)[0].url.endswith("?reward=style"), "scores below 0 are listed too"
        short.refresh_from_db()
        long.refresh_from_db()
        assert (short.rewards, short.reward) == ({"reward": 1.0, "style": 1 / 3}, 1.0)
        assert (long.rewards, long.reward) == ({"style": 1 / 11}, 1 / 11)
        headers = make_bearer(make_user(is_superuser=True), "read")
        path = f"/api/v1/projects/{project.slug}/trajectories"
        for query, found in (
            ({"reward": "style", "reward_min": "0.2"}, [short.pk]),
            ({"reward": "style", "reward_max": "0.2"}, [long.pk]),
            ({"reward": "other"}, []),
            ({"reward_min": "0.5"}, [short.pk]),
        ):
            rows = client.get(path, query, headers=headers).json()["data"]
            assert [row["id"] for row in rows] == list(map(str, found)), query

    def test_a_rollout_shows_its_score_and_has_no_other_reward(self, project: Project, client: Client) -> None:
        row = make_trajectory(project)
        scored(project, python="def score(trajectory):\n    return 0.75\n")
        row.refresh_from_db()
        assert (row.rewards, row.reward) == ({"style": 0.75}, None)
        client.force_login(make_user(is_superuser=True))
        page = client.get(reverse("trajectory-page", args=[project.slug, row.pk])).content.decode()
        assert "style 0.75" in page

    def test_each_step_is_scored_and_the_mean_counts(self, project: Project) -> None:
        row = make_imported(project, called("ls", "a"), called("pwd", "/", 2))
        run = scored(project, python=LOOKS, subject="step")
        row.refresh_from_db()
        assert row.rewards == {"style": 0.5}
        assert Item.objects.get(run=run).result["steps"] == {"3": 1.0, "4": 0.0}

    def test_the_answer_is_the_last_message(self, project: Project) -> None:
        row = make_imported(project, called("ls", "a"), {"source": "agent", "message": "There is one file."})
        scored(
            project,
            python="def score(answer, trajectory):\n    return answer == 'There is one file.'\n",
            subject="answer",
        )
        row.refresh_from_db()
        assert row.rewards == {"style": 1.0}

    @pytest.mark.parametrize(
        ("python", "why"),
        [
            ("def score(trajectory):\n    raise ValueError('no steps of mine')\n", "no steps of mine"),
            ("x = 1\n", "cannot import name 'score'"),
            ("def score(trajectory):\n    return 'good'\n", '"good", which is no number'),
            ("def score(trajectory):\n    return float('nan')\n", "which is no number"),
            ("def score(trajectory):\n    return 10**400\n", "which is no number"),
            ("import os\ndef score(trajectory):\n    os._exit(0)\n", "ended the program"),
        ],
    )
    def test_a_function_that_gives_no_score_fails_and_says_why(self, project: Project, python: str, why: str) -> None:
        row = make_imported(project)
        run = scored(project, python=python)
        assert why in failure(run)
        row.refresh_from_db()
        assert row.rewards == {}

    def test_a_reward_of_a_verifier_stays_and_one_s_own_is_replaced(self, project: Project) -> None:
        theirs = make_imported(project, rewards={"style": 0.25}, reward=0.25)
        own = make_imported(project, task="sort")
        scored(project, python=SHORT)
        again = scored(project, python="def score(trajectory):\n    return 7\n")
        theirs.refresh_from_db()
        own.refresh_from_db()
        assert (theirs.rewards, own.rewards) == ({"style": 0.25}, {"style": 7.0})
        assert "gave it a reward of this name" in Item.objects.get(run=again, state="skipped").reason


class Scorer(BaseHTTPRequestHandler):
    given: list[Any]
    answer: Any
    status = 200

    def do_POST(self) -> None:
        self.given.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        body = json.dumps(self.answer).encode()
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


class Endless(Scorer):
    def do_POST(self) -> None:
        self.send_response(200)
        self.end_headers()
        with suppress(OSError):  # the scorer closes the connection
            while True:
                self.wfile.write(b"[0.5, " * 10_000)


class TestServer:
    @pytest.fixture
    def given(self, settings: Settings) -> Iterator[list[Any]]:
        settings.ALLOW_PRIVATE_WEBHOOK_HOSTS = True
        found: list[Any] = []
        with serving(Scorer, given=found, answer={"scores": [0.5, 1]}) as server:
            self.url = url_of(server)
            yield found

    def test_a_server_scores_steps(self, project: Project, given: list[Any]) -> None:
        row = make_imported(project)
        scored(project, url=self.url, subject="step")
        row.refresh_from_db()
        assert row.rewards == {"style": 0.75}
        assert given[0]["subject"] == "step" and given[0]["trajectory"]["schema_version"].startswith("ATIF")
        assert [step["step_id"] for step in given[0]["subjects"]] == [3, 4]

    def test_another_number_of_scores_is_refused(self, project: Project, given: list[Any]) -> None:
        make_imported(project)
        assert "no list of 1 scores" in failure(scored(project, url=self.url))

    def test_an_answer_without_an_end_is_refused(self, project: Project, settings: Settings) -> None:
        settings.ALLOW_PRIVATE_WEBHOOK_HOSTS = True
        make_imported(project)
        with serving(Endless) as server:
            assert "more than 1 MB" in failure(scored(project, url=url_of(server)))

    def test_trajectories_wait_for_a_server_that_is_down(self, project: Project, settings: Settings) -> None:
        settings.ALLOW_PRIVATE_WEBHOOK_HOSTS = True
        rows = [make_imported(project, task=task) for task in ("count", "sort")]
        with serving(Scorer, given=[], answer=[0.5]) as server:
            url, port = url_of(server), server.server_port
        run = start(project, "score", name="style", url=url)
        drive(run.pk)
        assert set(Item.objects.filter(run=run).values_list("state", flat=True)) == {"waiting"}
        assert ServerOutage.objects.get().server == url
        with serving(Scorer, port=port, given=[], answer=[0.5]):
            ServerOutage.objects.update(probe_at=timezone.now())
            wake_due()
            end(run)
        for row in rows:
            row.refresh_from_db()
        assert [row.rewards for row in rows] == [{"style": 0.5}] * 2 and not ServerOutage.objects.exists()

    @pytest.mark.parametrize("status", [429, 503])
    def test_trajectories_wait_for_a_server_that_asks_to_wait(
        self, project: Project, given: list[Any], monkeypatch: pytest.MonkeyPatch, status: int
    ) -> None:
        row = make_imported(project)
        monkeypatch.setattr(Scorer, "status", status)
        run = start(project, "score", name="style", url=self.url, subject="step")
        drive(run.pk)
        assert Item.objects.get(run=run).state == "waiting" and str(status) in ServerOutage.objects.get().reason
        monkeypatch.setattr(Scorer, "status", 200)
        ServerOutage.objects.update(probe_at=timezone.now())
        wake_due()
        end(run)
        row.refresh_from_db()
        assert row.rewards == {"style": 0.75}

    def test_an_error_of_a_server_is_the_reason(
        self, project: Project, given: list[Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        make_imported(project)
        monkeypatch.setattr(Scorer, "status", 500)
        assert 'answered 500: {"scores"' in failure(scored(project, url=self.url))

    def test_a_private_address_is_refused_at_launch(self, project: Project, settings: Settings) -> None:
        make_imported(project)
        settings.ALLOW_PRIVATE_WEBHOOK_HOSTS = False
        with pytest.raises(Invalid, match="ALLOW_PRIVATE_WEBHOOK_HOSTS"):
            start(project, "score", name="style", url="http://127.0.0.1:9/")


class TestRubric:
    def test_a_model_reads_the_session_and_the_rubric(self, project: Project, operators: Operators) -> None:
        row = make_imported(project)
        operators.scripts["operator-a"] = ('{"score": 8, "reason": "Brief."}',)
        run = scored(project, rubric="Is it brief?", model="operator-a")
        row.refresh_from_db()
        assert row.rewards == {"style": 0.8} and Item.objects.get(run=run).result["reason"] == "Brief."
        system, user = (str(message["content"]) for message in operators.asked[0].messages)
        assert "- score (0 to 10): Is it brief?" in system and "awk a.csv" in user
        assert kind_of("score").conclude(run) == "1 trajectory got the reward style, 0.80 on average."

    def test_an_average_says_which_trajectories_it_lacks(self, project: Project, operators: Operators) -> None:
        make_imported(project)
        make_imported(project, task="sort")

        def says(request: CompletionRequest) -> str:
            return '{"score": 8, "reason": ""}' if "Task: sort" in str(request.messages[1]["content"]) else "Fine work."

        operators.scripts["operator-a"] = says
        run = scored(project, rubric="Is it brief?", model="operator-a")
        assert kind_of("score").conclude(run).endswith("1 trajectory got none, and the average is without them.")
        assert kind_of("score").results(run)[0].words == "1 of 2"

    def test_steps_are_shown_with_what_came_before(self, project: Project, operators: Operators) -> None:
        row = make_imported(project)

        def says(request: CompletionRequest) -> str:
            return json.dumps({"score": 10 if "awk" in str(request.messages[1]["content"]) else 0, "reason": ""})

        operators.scripts["operator-a"] = says
        scored(project, rubric="Does it use awk?", model="operator-a", subject="step")
        row.refresh_from_db()
        assert row.rewards == {"style": 0.5}

    def test_a_reply_that_cannot_be_read_is_asked_for_again_and_then_fails(
        self, project: Project, operators: Operators
    ) -> None:
        row = make_imported(project)
        operators.scripts["operator-a"] = ("Fine work.",)
        run = scored(project, rubric="Is it brief?", model="operator-a")
        row.refresh_from_db()
        assert "no score in 3 replies: the reply has no JSON object" in failure(run) and row.rewards == {}
        assert len(operators.asked) == 3

    def test_an_estimate_counts_the_calls(self, project: Project) -> None:
        make_imported(project)
        params = {"name": "style", "rubric": "Is it brief?", "model": "operator-a"}
        assert estimate(project=project, kind="score", params=params).calls == 1
        assert estimate(project=project, kind="score", params={**params, "subject": "step"}).calls == 4


@pytest.mark.parametrize(
    ("params", "why"),
    [
        ({}, "name one scorer"),
        ({"python": SHORT, "url": "https://example.org"}, "name one scorer"),
        ({"rubric": "Brief?"}, "a rubric needs a `model`"),
        ({"rubric": "[[criterion]]\n", "model": "operator-a"}, "needs a description"),
        ({"rubric": "Brief?", "model": "nobody"}, "There is no model nobody"),
        ({"python": SHORT, "filter": {"task": "none"}}, "No trajectory matches"),
    ],
)
def test_a_launch_says_what_is_wrong(project: Project, params: dict[str, Any], why: str) -> None:
    make_imported(project)
    with pytest.raises(Invalid) as refused:
        start(project, "score", **{"name": "style", **params})
    assert why in str([refused.value.detail, *(error.message for error in refused.value.errors)])


def test_trajectories_of_others_are_not_scored(project: Project, operators: Operators) -> None:
    other = make_imported(make_stage())
    make_imported(project)
    operators.scripts["operator-a"] = ('{"score": 8, "reason": "Brief."}',)
    scored(project, rubric="Is it brief?", model="operator-a")
    assert not Trajectory.objects.get(pk=other.pk).rewards
