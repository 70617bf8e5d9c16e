"""The REST calls of evaluations and splits, as a script's author uses them."""

import csv
import io
import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from curation.evaluations.models import ContaminationCheck, Evaluation, Screened, Split
from curation.llm.models import Endpoint
from curation.projects.models import AuditEntry, Role
from curation.runs.models import Run
from tests.evaluations.evaluating import at_server, end, make_rows, make_split, says
from tests.exports.pages.test_api import Script
from tests.model_server import ModelServer

pytestmark = pytest.mark.django_db(transaction=True)


def done(script: Script, answer: Any) -> dict[str, Any]:
    """The run of a 202, driven to its end."""
    assert answer.status_code == 202, answer.content
    assert answer.headers["Location"] == f"/api/v1/runs/{answer.json()['id']}"
    end(Run.objects.get(pk=answer.json()["id"]))
    found: dict[str, Any] = script("get", f"/runs/{answer.json()['id']}").json()
    assert found["state"] == "succeeded", found
    return found


def uploaded(script: Script, rows: list[dict[str, Any]]) -> str:
    """The split of an upload."""
    text = "".join(json.dumps(row) + "\n" for row in rows).encode()
    form = {"kind": "eval_rows", "file": SimpleUploadedFile("val.jsonl", text)}
    answer = Client().post(f"/api/v1{script.here}/imports", form, headers=script.headers)
    run = done(script, answer)
    split: str = run["result"]["split"]
    return split


def two_models(script: Script, server: ModelServer, rows: list[dict[str, Any]]) -> None:
    says(server, "good", rows, [row["messages"][-1]["content"] for row in rows])
    says(server, "bad", rows, ["no idea"] * len(rows))
    for name in ("good", "bad"):
        at_server(script.project, server, name)


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
        "intervals": {},
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
    run = done(script, script("post", f"{script.here}/evaluations", {"models": ["good", "bad"], "split": split}))
    log = f"/evaluations/{run['result']['evaluation']}/calls"
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


def test_two_models_are_compared_and_the_files_say_the_same(server: ModelServer) -> None:
    script, rows = Script(), make_rows(12, tiers=("easy", "hard"), tasks=6)
    split = uploaded(script, rows)
    two_models(script, server, rows)
    one, other = (
        done(script, script("post", f"{script.here}/evaluations", {"models": [name], "split": split}))["result"]
        for name in ("bad", "good")
    )
    here = f"/evaluations/{one['evaluation']}/compare/{other['evaluation']}"
    found = script("get", here).json()
    assert (found["before"]["model"], found["after"]["model"]) == ("bad", "good")
    assert (found["rows"], found["tasks"], found["unpaired"]) == (12, 6, 0)
    exact = next(metric for metric in found["metrics"] if metric["metric"] == "exact")
    assert (exact["before"], exact["after"], exact["delta"], exact["gained"], exact["lost"]) == (0, 1, 1, 12, 0)
    assert exact["p"] == pytest.approx(2 * 0.5**12, abs=1e-6) and exact["said"] == "likely" and exact["high"] == 1
    assert [tier["tier"] for tier in found["tiers"]] == ["easy", "hard"] and len(found["gains"]) == 12
    assert Screened.objects.filter(pk=found["gains"][0]["call_after"], exact=True).exists()
    assert script("get", f"{here}/comparison.json").json() == found
    table = list(csv.DictReader(io.StringIO(script("get", f"{here}/comparison.csv").content.decode())))
    assert {(row["part"], row["metric"]): row["delta"] for row in table}["all", "exact"] == "1.0"
    text = script("get", f"{here}/comparison.md").content.decode()
    assert "| exact | 0% | 100% | +100.0 pp |" in text and "## Gains: 12" in text
    assert script("get", f"{here}/comparison.exe").status_code == 404


def test_models_of_one_evaluation_are_compared_by_name(server: ModelServer) -> None:
    script, rows = Script(), make_rows(3)
    split = uploaded(script, rows)
    two_models(script, server, rows)
    run = done(script, script("post", f"{script.here}/evaluations", {"models": ["good", "bad"], "split": split}))
    pk = run["result"]["evaluation"]
    assert "name one in" in script("get", f"/evaluations/{pk}/compare/{pk}").json()["detail"]
    found = script("get", f"/evaluations/{pk}/compare/{pk}?model_before=good&model_after=bad").json()
    assert (len(found["gains"]), len(found["losses"])) == (0, 3)
    assert script("get", f"/evaluations/{pk}/compare/{pk}?model_before=good&model_after=good").status_code == 422


def test_rows_of_two_uploads_of_one_file_are_the_same_rows(server: ModelServer) -> None:
    script, rows = Script(), make_rows(3)
    two_models(script, server, rows)
    ids = []
    for name, part in (("bad", rows), ("good", [*make_rows(14)[12:], *rows[1:]])):
        body = {"models": [name], "split": uploaded(script, part)}
        ids.append(done(script, script("post", f"{script.here}/evaluations", body))["result"]["evaluation"])
    found = script("get", f"/evaluations/{ids[0]}/compare/{ids[1]}").json()
    assert (found["rows"], found["unpaired"]) == (2, 3)
    apart = done(
        script,
        script(
            "post", f"{script.here}/evaluations", {"models": ["bad"], "split": uploaded(script, make_rows(14)[12:])}
        ),
    )["result"]["evaluation"]
    assert script("get", f"/evaluations/{ids[0]}/compare/{apart}").json()["code"] == "nothing_in_common"


def test_the_leaderboard_ranks_all_evaluations_and_flags_regressions(server: ModelServer) -> None:
    script, rows = Script(), make_rows(12)
    assert script("get", f"{script.here}/leaderboard").json()["data"] == []
    split = uploaded(script, rows)
    two_models(script, server, rows)
    for name in ("bad", "good"):
        done(script, script("post", f"{script.here}/evaluations", {"models": [name], "split": split}))
    board = script("get", f"{script.here}/leaderboard").json()
    assert [entry["figures"]["model"] for entry in board["data"]] == ["good", "bad"]
    best = board["data"][0]["evaluation"]
    pinned = script("post", f"/evaluations/{best}/baseline", {}).json()
    assert [(entry["baseline"], entry["regressed"]) for entry in pinned["data"]] == [(True, False), (False, True)]
    assert pinned["data"][1]["against"]["worse"] == ["xtr", "exact", "svc", "op_token", "exact_shell"]
    assert script("get", f"/splits/{split}").json()["baseline"] == {"evaluation": best, "model": "good"}
    assert AuditEntry.objects.filter(action="baseline.pin").count() == 1
    assert script("delete", f"/splits/{split}/baseline").status_code == 204
    assert not any(entry["regressed"] for entry in script("get", f"{script.here}/leaderboard").json()["data"])


def test_contamination_by_upload_and_its_rows(server: ModelServer) -> None:
    script, rows = Script(), make_rows(3)
    split = uploaded(script, rows)
    empty = script("get", f"/splits/{split}/contamination").json()
    assert (empty["check"], empty["data"]) == (None, [])
    text = (json.dumps(rows[1]) + "\n").encode()
    form = {"file": SimpleUploadedFile("train.jsonl", text)}
    run = done(script, Client().post(f"/api/v1/splits/{split}/contamination", form, headers=script.headers))
    assert run["result"]["check"] == str(ContaminationCheck.objects.get().pk) and run["result"]["exact"] == 1
    found = script("get", f"/splits/{split}/contamination?level=exact").json()
    assert found["check"]["counts"]["contaminated"] == 1
    assert found["data"][0]["number"] == 2 and "look at the users" in found["data"][0]["matches"][0]["prompt"]
    assert script("get", f"/splits/{split}/contamination?level=near").json()["data"] == []
    assert script("get", f"/splits/{split}/contamination?level=odd").status_code == 400
    assert script("post", f"/splits/{split}/contamination", {}).status_code == 422
    assert script("post", f"/splits/{split}/contamination", {"colour": "red"}).status_code == 422


def test_rows_of_a_split_and_the_list_of_splits() -> None:
    script = Script()
    split = make_split(script.project, make_rows(3, tiers=("easy", "hard")))
    rows = script("get", f"/splits/{split.pk}/rows?tier=easy").json()["data"]
    assert [row["number"] for row in rows] == [1, 3] and rows[0]["messages"][0]["role"] == "user"
    listed = script("get", f"{script.here}/splits").json()["data"]
    assert [(entry["name"], entry["rows"], entry["evaluations"]) for entry in listed] == [("val.jsonl", 3, 0)]


def test_bad_rows_are_named_and_good_ones_go_in() -> None:
    script = Script()
    good = make_rows(1)[0]
    rows: list[dict[str, Any]] = [
        good,
        {"messages": "x"},
        {"messages": [good["messages"][0]]},
        {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": " "}]},
        {"messages": [{"role": "robot", "content": "a"}, {"role": "assistant", "content": "b"}]},
    ]
    split = uploaded(script, rows)
    run = Split.objects.get(pk=split).run
    assert run is not None
    reasons = [item["reason"] for item in script("get", f"/runs/{run.pk}/items?stage=bad_row").json()["data"]]
    assert len(reasons) == 4 and any("has no text" in reason for reason in reasons)
    assert script("get", f"/splits/{split}").json()["rows"] == 1


def test_every_model_of_a_server_joins_the_line_up(server: ModelServer) -> None:
    script = Script(Role.ADMIN)
    at_server(script.project, server, "judge-a")
    found = script("post", f"{script.here}/models/judge-a/line-up", {}).json()
    assert found == {"added": ["king"], "known": ["judge-a"]}
    made = Endpoint.objects.get(project=script.project, name="king")
    assert (made.model, made.api_base) == ("openai/king", server.api_base)
    again = script("post", f"{script.here}/models/judge-a/line-up", {}).json()
    assert again["added"] == [] and set(again["known"]) == {"king", "judge-a"}


def test_who_may_not(server: ModelServer) -> None:
    script, viewer, stranger = Script(), Script(Role.VIEWER), Script()
    split = uploaded(script, make_rows(1))
    assert stranger("get", f"/splits/{split}").status_code == 404
    assert stranger("get", f"{script.here}/leaderboard").status_code == 404
    assert viewer("post", f"{viewer.here}/evaluations", {"models": ["m"], "split": split}).status_code == 403
    assert script("post", f"{script.here}/models/x/line-up", {}).status_code == 403
    own = uploaded(stranger, make_rows(1))
    refused = script("post", f"{script.here}/evaluations", {"models": ["m"], "split": own})
    assert refused.status_code == 422
