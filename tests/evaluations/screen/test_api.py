"""The REST calls of evaluations."""

import pytest

from curation.evaluations.models import Evaluation
from curation.llm.models import Endpoint
from curation.projects.models import Role
from tests.evaluations.evaluating import at_server, done, evaluated, make_rows, two_models, uploaded
from tests.exports.pages.test_api import Script
from tests.model_server import ModelServer

pytestmark = pytest.mark.django_db(transaction=True)


def test_from_an_upload_to_the_table(server: ModelServer) -> None:
    script, rows = Script(), make_rows(4, tiers=("easy", "hard"))
    split = uploaded(script, rows)
    shown = script("get", f"/splits/{split}")
    assert shown.json()["rows"] == 4 and shown.headers["ETag"]
    two_models(script, server, rows)
    body = {"kind": "static", "models": ["bad", "good"], "split": split, "family": "aws", "max_per_combo": 3}
    started = script("post", f"{script.here}/evaluations", {**body, "max_tokens": 120, "temperature": 0})
    evaluation_id = started.json()["result"]["evaluation"]
    waiting = script("get", f"/evaluations/{evaluation_id}").json()
    assert (waiting["state"], waiting["rows"]) == ("queued", [])
    run = done(script, started)
    assert [row["model"] for row in run["result"]["models"]] == ["good", "bad"]
    answer = script("get", f"/evaluations/{evaluation_id}")
    found = answer.json()
    assert answer.headers["ETag"] == script("get", f"/evaluations/{evaluation_id}").headers["ETag"]
    assert [row["model"] for row in found["rows"]] == ["good", "bad"]
    assert found["rows"][0] | {"lat": 0, "intervals": {}} == {
        **{"rank": 1, "model": "good", "n": 4, "errors": 0, "fmt": 1.0, "xtr": 1.0, "exact": 1.0, "svc": 1.0},
        **{"op_token": 1.0, "service_and_op": 1.0, "exact_shell": 1.0, "lat": 0, "len": 16.75, "cut": 0},
        **{"intervals": {}, "rows_missing": 0, "incomplete": False},
    }
    assert found["rows"][0]["intervals"]["exact"] == [0.51, 1.0]
    assert [tier["tier"] for tier in found["by_tier"]] == ["easy", "hard"]
    assert (found["contamination"], found["clean"]) == (None, None)
    listed = script("get", f"{script.here}/evaluations?count=true").json()
    assert listed["total"] == 1 and listed["data"][0]["models"] == ["bad", "good"]


def test_the_same_launch_by_runs_and_with_an_idempotency_key(server: ModelServer) -> None:
    script, rows = Script(), make_rows(2)
    split = uploaded(script, rows)
    two_models(script, server, rows)
    params = {"models": ["good"], "split": split}
    done(script, script("post", f"{script.here}/runs", {"kind": "evaluate", "params": params}))
    first = script("post", f"{script.here}/evaluations", params, **{"Idempotency-Key": "k"})
    second = script("post", f"{script.here}/evaluations", params, **{"Idempotency-Key": "k"})
    assert first.json() == second.json() and Evaluation.objects.count() == 2


def test_the_log_is_filtered(server: ModelServer) -> None:
    script, rows = Script(), make_rows(4, tiers=("easy", "hard"))
    split = uploaded(script, rows)
    two_models(script, server, rows)
    log = f"/evaluations/{evaluated(script, split, 'good', 'bad')}/calls"
    whole = script("get", f"{log}?count=true&limit=3").json()
    assert (whole["total"], len(whole["data"])) == (8, 3)
    rest = script("get", f"{log}?limit=8&cursor={whole['next_cursor']}").json()["data"]
    assert len({row["id"] for row in whole["data"] + rest}) == 8
    entry = whole["data"][0]
    assert entry["expected"] == rows[0]["messages"][1]["content"] and entry["tier"] == "easy" and entry["number"] == 1
    for query, count in {
        "mark=exact": 4,
        "mark=none&model=bad": 4,
        "mark=differs": 0,
        "tier=easy": 4,
        "disagreements=true": 8,
        "errors=true": 0,
        f"row={entry['row']}": 2,
        "row=x": 0,
    }.items():
        assert len(script("get", f"{log}?{query}").json()["data"]) == count, query
    assert script("get", f"{log}?mark=odd").status_code == 400
    assert script("get", f"{log}?colour=red").status_code == 400


def test_every_model_of_a_server_gets_an_endpoint(server: ModelServer) -> None:
    script = Script(Role.ADMIN)
    at_server(script.project, server, "judge-a")
    found = script("post", f"{script.here}/models/judge-a/line-up", {}).json()
    assert found == {"added": ["king"], "known": ["judge-a"]}
    made = Endpoint.objects.get(project=script.project, name="king")
    assert (made.model, made.api_base) == ("openai/king", server.api_base)
    again = script("post", f"{script.here}/models/judge-a/line-up", {}).json()
    assert again["added"] == [] and set(again["known"]) == {"king", "judge-a"}


def test_a_split_of_another_project_is_refused(server: ModelServer) -> None:
    script, other = Script(), Script()
    theirs = uploaded(other, make_rows(1))
    refused = script("post", f"{script.here}/evaluations", {"models": ["m"], "split": theirs})
    assert refused.status_code == 422
