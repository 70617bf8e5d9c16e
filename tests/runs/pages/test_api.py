"""Runs by REST: launch, look, control; and refusals by role."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from curation.projects.models import Project, Role
from curation.runs.engine.worker import drive
from curation.runs.models import Call, Item, Run, RunEvent
from tests.factories import make_bearer, make_endpoint, make_member, make_project, make_prompt, make_run, make_user

pytestmark = pytest.mark.django_db


class Script:
    """A client with a token, of a member of a project."""

    def __init__(self, role: str = Role.ADMIN, *scopes: str, project: Project | None = None) -> None:
        self.user: User = make_user()
        self.project = project or make_project()
        make_member(self.project, self.user, role)
        self._client = Client(headers=make_bearer(self.user, *scopes))

    def get(self, path: str, **query: Any) -> tuple[int, Any]:
        response = self._client.get(f"/api/v1{path}", query)
        return response.status_code, response.json()

    def post(self, path: str, body: object = None, **headers: str) -> tuple[int, Any]:
        self.response = self._client.post(
            f"/api/v1{path}", body if body is not None else {}, content_type="application/json", headers=headers
        )
        return self.response.status_code, self.response.json()

    @property
    def runs(self) -> str:
        return f"/projects/{self.project.slug}/runs"


def make_script(prompts: int = 2, **endpoint: Any) -> Script:
    script = Script()
    make_endpoint(script.project, "small", **{"model": "scripted/king", **endpoint})
    for number in range(prompts):
        # Prompts of their own words: two that are alike may be answered by one call.
        make_prompt(script.project, history=[{"role": "user", "content": f"Fix the rounding of bill {number}."}])
    return script


KING = {"kind": "king", "params": {"model": "small"}}


def test_a_launch_answers_202_with_the_run_and_its_address() -> None:
    script = make_script()
    status, run = script.post(script.runs, KING)
    assert (status, script.response["Location"]) == (202, f"/api/v1/runs/{run['id']}")
    assert run == script.get(f"/runs/{run['id']}")[1]
    assert {key: run[key] for key in ("kind", "state", "stage", "project", "items", "cost", "cost_unknown_calls")} == {
        "kind": "king",
        "state": "queued",
        "stage": "king",
        "project": script.project.slug,
        "items": {"total": 2, "done": 0, "failed": 0, "skipped": 0},
        "cost": "0",
        "cost_unknown_calls": 0,
    }
    assert (run["params"]["model"], run["started_at"], run["error"], run["result"]) == ("small", None, None, {})


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"kind": "dual", "params": {}}, None),
        ({"kind": "test", "params": {"model": "small"}}, None),
        ({"kind": "king", "params": {"model": "small", "sample": 2}}, "params.sample"),
        ({"kind": "king", "params": {"model": "small", "samples": 99}}, "params.samples"),
        ({"kind": "king", "params": {"model": "large"}}, "params.model"),
        ({"kind": "king", "params": {"model": "small"}, "budget": "-1"}, "budget"),
        ({"kind": "king", "params": {"model": "small"}, "budget": "1e30"}, "budget"),
        ({"kind": "king", "params": {"model": "small"}, "budget": "lots"}, "budget"),
        ({"kind": "king", "params": {"model": "small"}, "buget": "1"}, "buget"),
        ({"kind": "king", "params": []}, "params"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place_and_nothing_is_launched(body: object, path: str | None) -> None:
    script = make_script()
    status, problem = script.post(script.runs, body)
    assert status == 422, problem
    if path is not None:
        assert path in [error["path"] for error in problem["errors"]]
    assert not Run.objects.exists()


def test_an_estimate_launches_nothing_and_says_what_it_does_not_know() -> None:
    script = make_script(model="openai/small", price_in=None)
    status, found = script.post(f"{script.runs}/estimate", KING)
    assert (status, found["calls"], found["cost"], found["unpriced"]) == (200, 2, None, ["small"])
    status, problem = script.post(script.runs, {**KING, "budget": "1"})
    assert (status, problem["code"]) == (422, "unpriced_model")
    assert not Run.objects.exists()


def test_the_list_is_newest_first_filters_and_does_not_show_tests_of_endpoints() -> None:
    script = Script()
    king = make_run(script.project, "king", state="succeeded")
    judge = make_run(script.project, "judge")
    make_run(script.project, "test")
    make_run(make_project(), "king")

    def ids(**query: str) -> list[str]:
        return [row["id"] for row in script.get(script.runs, **query)[1]["data"]]

    assert ids() == [str(judge.pk), str(king.pk)]
    assert ids(kind="king,duel") == [str(king.pk)]
    assert ids(state="queued") == [str(judge.pk)]
    page = script.get(script.runs, limit=1, count="true")[1]
    assert (page["total"], len(page["data"])) == (2, 1)
    assert ids(cursor=page["next_cursor"]) == [str(king.pk)]
    assert [script.get(script.runs, **wrong)[0] for wrong in ({"kind": "dual"}, {"state": "x"}, {"colour": "red"})] == [
        400
    ] * 3


def make_looked_at(script: Script) -> Run:
    run = make_run(script.project, "king", stage="king")
    for number, state in enumerate(("done", "failed", "skipped")):
        item = Item.objects.create(run=run, stage="king", key=str(number), state=state, reason=f"why {number}")
        Call.objects.create(
            project=script.project, run=run, item=item, endpoint_name="small", content_hash="0", status="ok"
        )
        RunEvent.objects.create(run=run, message=f"event {number}")
    return run


def test_items_with_their_reasons() -> None:
    script = Script()
    run = make_looked_at(script)
    rows = script.get(f"/runs/{run.pk}/items", state="failed,skipped")[1]["data"]
    assert [(row["key"], row["state"], row["reason"]) for row in rows] == [
        ("1", "failed", "why 1"),
        ("2", "skipped", "why 2"),
    ]
    assert script.get(f"/runs/{run.pk}/items", stage="judge")[1]["data"] == []


def test_events_after_the_last_one_that_was_seen() -> None:
    script = Script()
    run = make_looked_at(script)
    first = script.get(f"/runs/{run.pk}/events")[1]["data"][0]
    rows = script.get(f"/runs/{run.pk}/events", after=first["id"])[1]["data"]
    assert [row["message"] for row in rows] == ["event 1", "event 2"]


def test_calls_with_an_unknown_cost_as_null() -> None:
    script = Script()
    run = make_looked_at(script)
    page = script.get(f"/runs/{run.pk}/calls", limit=2, status="ok,lost")[1]
    assert [(row["model"], row["cost"], row["status"]) for row in page["data"]] == [("small", None, "ok")] * 2
    assert len(script.get(f"/runs/{run.pk}/calls", cursor=page["next_cursor"])[1]["data"]) == 1
    assert script.get(f"/runs/{run.pk}/calls", status="fine")[0] == 400


@pytest.mark.django_db(transaction=True)
def test_a_run_from_launch_to_its_end_by_rest_alone() -> None:
    script = make_script()
    run_id = script.post(script.runs, KING)[1]["id"]
    status, run = script.post(f"/runs/{run_id}/cancel")
    assert (status, run["state"], run["finished_at"] is not None) == (200, "cancelled", True)
    assert script.post(f"/runs/{run_id}/cancel")[0] == 409
    status, run = script.post(f"/runs/{run_id}/resume", {"budget": "2.50"})
    assert (status, run["state"], run["budget"]) == (202, "running", "2.5")
    drive(int(run_id))
    run = script.get(f"/runs/{run_id}")[1]
    assert (run["state"], run["items"]["done"], run["calls"], run["cost"]) == ("succeeded", 2, 2, "0")
    assert script.post(f"/runs/{run_id}/resume")[0] == 409
    assert script.post(f"/runs/{run_id}/retry-failed")[1]["code"] == "nothing_failed"
    status, copy = script.post(f"/runs/{run_id}/clone")
    assert (status, copy["params"], copy["id"] != run_id) == (202, run["params"], True)


def test_an_export_is_not_repeated_by_who_may_not_export() -> None:
    script = Script(Role.ADMIN, "read", "run")
    run = make_run(script.project, "export", params={"recipe": "r"})
    assert script.post(f"/runs/{run.pk}/clone")[0] == 403
