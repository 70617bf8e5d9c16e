"""Comparisons and the leaderboard: their REST calls and their pages."""

import csv
import io

import pytest
from django.test import Client
from django.urls import reverse

from curation.evaluations.metrics import SHARE
from curation.evaluations.models import EvaluatedModel, ScreenedAnswer
from curation.projects.models import AuditEntry
from judging.commands.screen import FLAGS
from tests.evaluations.evaluating import (
    at_server,
    evaluate,
    evaluated,
    make_rows,
    make_split,
    model_in,
    page,
    says,
    screened,
    signed_in,
    two_models,
    uploaded,
)
from tests.exports.pages.test_api import Script
from tests.model_server import ModelServer

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_comparison_and_its_files_have_the_same_figures(server: ModelServer) -> None:
    script, rows = Script(), make_rows(24, tiers=("easy", "hard"), tasks=12)
    split = uploaded(script, rows)
    two_models(script, server, rows)
    one, other = (evaluated(script, split, name) for name in ("bad", "good"))
    here = f"/evaluations/{one}/compare/{other}"
    found = script("get", here).json()
    assert (found["before"]["model"], found["after"]["model"]) == ("bad", "good")
    assert (found["rows"], found["tasks"], found["unpaired"]) == (24, 12, 0)
    exact = next(metric for metric in found["metrics"] if metric["metric"] == "exact")
    assert (exact["before"], exact["after"], exact["delta"], exact["gained"], exact["lost"]) == (0, 1, 1, 24, 0)
    assert (
        exact["p"] == pytest.approx(2 * 0.5**24, abs=1e-6)
        and exact["said"] == "likely different"
        and exact["high"] == 1
    )
    assert exact["p_tasks"] == pytest.approx(2 * 0.5**12, abs=1e-6)
    assert exact["p_tasks"] < exact["p_corrected"] <= found["comparisons"] * exact["p_tasks"] + 1e-4
    assert found["comparisons"] == len(found["metrics"]) + sum(len(tier["metrics"]) for tier in found["tiers"])
    assert exact["tasks_missing"] == 1 and exact["note"] == "" and "sign-flip" in found["method"]
    assert [tier["tier"] for tier in found["tiers"]] == ["easy", "hard"] and len(found["gains"]) == 24
    assert ScreenedAnswer.objects.filter(pk=found["gains"][0]["call_after"], exact=True).exists()
    assert script("get", f"{here}/comparison.json").json() == found
    table = list(csv.DictReader(io.StringIO(script("get", f"{here}/comparison.csv").content.decode())))
    assert {(row["part"], row["metric"]): row["delta"] for row in table}["all", "exact"] == "1.0"
    text = script("get", f"{here}/comparison.md").content.decode()
    assert "| Exact command | 0 % | 100 % | +100.0 pp |" in text and "## Gains: 24" in text
    assert script("get", f"{here}/comparison.exe").status_code == 404


def test_failed_calls_make_no_two_models_equivalent(server: ModelServer) -> None:
    script, rows = Script(), make_rows(150)
    split = uploaded(script, rows)
    two_models(script, server, rows)
    pk = evaluated(script, split, "good", "bad")
    here = f"/evaluations/{pk}/compare/{pk}?model_before=good&model_after=bad"
    ScreenedAnswer.objects.update(mark="none", failed=False, **dict.fromkeys(FLAGS, False))

    def exact() -> str:
        metrics = script("get", here).json()["metrics"]
        return str(next(metric["said"] for metric in metrics if metric["metric"] == "exact"))

    assert exact() == "equivalent within 5 points"
    ScreenedAnswer.objects.filter(by__name="bad").update(failed=True)
    found = script("get", here).json()
    assert exact() == "not known" and "Whether bad and good differ is not known" in found["conclusion"]
    assert found["notes"] == ["bad: 150 calls failed and count as wrong answers, which no other model's answers equal."]


def test_models_of_one_evaluation_are_compared_by_name(server: ModelServer) -> None:
    script, rows = Script(), make_rows(3)
    split = uploaded(script, rows)
    two_models(script, server, rows)
    pk = evaluated(script, split, "good", "bad")
    assert "name one in" in script("get", f"/evaluations/{pk}/compare/{pk}").json()["detail"]
    found = script("get", f"/evaluations/{pk}/compare/{pk}?model_before=good&model_after=bad").json()
    assert (len(found["gains"]), len(found["losses"])) == (0, 3)
    assert script("get", f"/evaluations/{pk}/compare/{pk}?model_before=good&model_after=good").status_code == 422


def test_rows_of_two_uploads_of_one_file_are_paired(server: ModelServer) -> None:
    script, rows = Script(), make_rows(3)
    two_models(script, server, rows)
    others = make_rows(14)[12:]
    ids = [evaluated(script, uploaded(script, rows), "bad")]
    ids.append(evaluated(script, uploaded(script, [*others, *rows[1:]]), "good"))
    found = script("get", f"/evaluations/{ids[0]}/compare/{ids[1]}").json()
    assert (found["rows"], found["unpaired"]) == (2, 3)
    ids.append(evaluated(script, uploaded(script, [rows[1], *rows]), "bad"))
    for before, after in (ids[1:], ids[:0:-1]):
        found = script("get", f"/evaluations/{before}/compare/{after}").json()
        assert (found["rows"], found["unpaired"]) == (2, 4), "no answer is in two pairs"
    file = script("get", f"/evaluations/{ids[1]}/compare/{ids[2]}/comparison.md").content.decode()
    assert "2 rows of 2 tasks, 4 answers without a counterpart in the other model; paired" in file
    apart = evaluated(script, uploaded(script, others), "bad")
    assert script("get", f"/evaluations/{ids[0]}/compare/{apart}").json()["code"] == "nothing_in_common"


def test_the_leaderboard_ranks_all_evaluations_and_flags_regressions(server: ModelServer) -> None:
    script, rows = Script(), make_rows(12)
    assert script("get", f"{script.here}/leaderboard").json()["data"] == []
    split = uploaded(script, rows)
    two_models(script, server, rows)
    for name in ("bad", "good"):
        evaluated(script, split, name)
    board = script("get", f"{script.here}/leaderboard").json()
    assert ([entry["figures"]["model"] for entry in board["data"]], board["settings"]) == (["good", "bad"], [])
    best = board["data"][0]["evaluation"]
    pinned = script("post", f"/evaluations/{best}/baseline", {}).json()
    assert [(entry["baseline"], entry["regressed"]) for entry in pinned["data"]] == [(True, False), (False, True)]
    assert pinned["data"][1]["against"]["worse"] == ["xtr", "exact", "svc", "op_token", "exact_shell"]
    assert script("get", f"/splits/{split}").json()["baseline"] == {"evaluation": best, "model": "good"}
    assert AuditEntry.objects.filter(action="baseline.pin").count() == 1
    assert script("delete", f"/splits/{split}/baseline").status_code == 204
    assert not any(entry["regressed"] for entry in script("get", f"{script.here}/leaderboard").json()["data"])

    short = evaluated(script, split, "bad", max_tokens=7)
    assert script("get", f"{script.here}/leaderboard").json()["settings"] == ["max_tokens"]
    said = "The two had different settings, which may be the cause of a difference: max_tokens 120 → 7."
    assert said in script("get", f"/evaluations/{best}/compare/{short}").json()["notes"]


def test_a_screen_with_rows_that_have_no_result_is_compared_with_nothing(server: ModelServer) -> None:
    script, rows = Script(), make_rows(4)
    split = uploaded(script, rows)
    two_models(script, server, rows)
    pk = evaluated(script, split, "bad", "good")
    here = f"/evaluations/{pk}/compare/{pk}?model_before=bad&model_after=good"
    whole = script("get", here).json()
    assert (whole["missing"], whole["incomplete"]) == (0, False)
    ScreenedAnswer.objects.filter(by__name="bad", row__number=0).delete()
    row = next(row for row in script("get", f"/evaluations/{pk}").json()["rows"] if row["model"] == "bad")
    assert (row["n"], row["rows_missing"], row["incomplete"]) == (3, 1, True)
    found = script("get", here).json()
    assert (found["missing"], {metric["said"] for metric in found["metrics"]}) == (1, {"incomplete"})
    assert (
        "| incomplete |"
        in script("get", f"/evaluations/{pk}/compare/{pk}/comparison.md?{here.split('?')[1]}").content.decode()
    )


def test_a_comparison_shows_gains_and_can_be_downloaded(client: Client, server: ModelServer) -> None:
    project = signed_in(client)
    evaluation = screened(project, server)
    before, after = model_in(evaluation, "bad"), model_in(evaluation, "good")
    query = f"?before={before.pk}&after={after.pk}"
    shown = page(client, project, "evaluation-compare", query=query)
    assert "+60.0 pp" in shown and "Gains" in shown and "Nothing was lost." in shown
    gained = ScreenedAnswer.objects.get(by=after, row__number=1)
    assert reverse("evaluation-call", args=[project.slug, evaluation.pk, gained.pk]) in shown
    figure = client.get(reverse("compare-chart", args=[project.slug]) + query).json()
    assert [line["name"] for line in figure["data"]] == ["all rows", "easy", "hard"]
    same = client.get(reverse("evaluation-compare", args=[project.slug]) + f"?before={after.pk}&after={after.pk}")
    assert same.status_code == 422


def test_a_pinned_baseline_flags_regressions(client: Client, server: ModelServer) -> None:
    project = signed_in(client)
    rows = make_rows(12)
    split = make_split(project, rows)
    says(server, "good", rows, [row["messages"][-1]["content"] for row in rows])
    says(server, "worse", rows, ["no idea"] * len(rows))
    for name in ("good", "worse"):
        at_server(project, server, name)
    evaluation = evaluate(project, split, ["good", "worse"])
    pin = reverse("baseline-pin", args=[project.slug])
    assert client.post(pin, {"model": model_in(evaluation, "good").pk}).status_code == 302
    assert model_in(evaluation, "worse").regressed and not model_in(evaluation, "good").regressed
    board = page(client, project, "leaderboard")
    assert "baseline" in board and "regressed" in board
    later = evaluate(project, split, ["worse"])
    assert model_in(later, "worse").regressed
    assert "regressed" in page(client, project, "evaluation-list")
    client.post(reverse("baseline-unpin", args=[project.slug]), {"split": split.pk})
    assert not EvaluatedModel.objects.filter(regressed=True).exists()


def test_a_share_reads_as_the_api_rounds_it() -> None:
    shares = [count / 40 for count in range(41)]
    assert [SHARE.amount(share) for share in shares] == [f"{100 * round(share, 2):.0f} %" for share in shares]
