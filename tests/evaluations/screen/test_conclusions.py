"""The conclusion of a screen, from the recorded figures of five models and by the rules of a project."""

import json
from typing import Any

import pytest
from django.test import Client

from curation.evaluations.screen.conclusions import ConclusionOut, conclude
from curation.evaluations.screen.figures import Row, wilson_intervals
from curation.projects.settings.evaluation import EvaluationSettings as Rules
from judging.commands.rules import applies, check_rule, conclusions
from tests.evaluations.evaluating import page, screened, signed_in
from tests.model_server import ModelServer
from tests.parts import shared_data

COLUMNS = {"fmt": "format_ok_pct", "xtr": "format_after_extract_pct", "exact": "exact_match_pct"}
COLUMNS |= {"svc": "service_match_pct", "op_token": "operation_match_pct", "service_and_op": "operation_match_pct"}
COLUMNS |= {"exact_shell": "exact_match_pct", "lat": "avg_latency_s", "len": "avg_len_chars", "n": "n"}


def recorded(**rules: Any) -> dict[str, ConclusionOut]:
    models = json.loads(shared_data("aws_cli", "recorded_completions.json").read_text())["models"]
    rows: list[Row] = []
    for name, model in models.items():
        row = {"model": name, "errors": 0, "cut": 0}
        row |= {ours: model["aggregate"][theirs] for ours, theirs in COLUMNS.items()}
        rows.append({**row, "intervals": wilson_intervals({"exact": round(27 * row["exact"])}, 27)})
    return {found.model: found for found in conclude(rows, Rules(**rules))}


def test_the_recorded_models_are_concluded_as_the_published_report_does() -> None:
    found = recorded()
    best = found["qwen2.5-coder-3b-instruct"]
    assert best.train.startswith("yes") and [one.words for one in best.targets] == [
        "Command alone 85 %, 15 points to 100 %",
        "Same operation 63 %, 27 points to 90 %",
        "Exact command 41 %, 34 points to 75 %",
    ]
    assert any("format tuning" in weakness for weakness in best.weaknesses)
    assert best.generations == 4000 and best.hours == pytest.approx(4000 * 3.1 / 3600, abs=0.1)
    others = [one for name, one in found.items() if name != best.model]
    assert all(one.train.startswith("no") for one in others)
    assert [w.split(":")[0] for w in found["deepseek-r1-distill-qwen-1.5b"].weaknesses] == ["empty answers"]
    assert any("format" in w for w in found["smollm-360m-instruct"].weaknesses)
    assert not any("format" in w for w in found["smollm2-1.7b-instruct"].weaknesses)


def test_rules_and_targets_are_a_projects_own() -> None:
    found = recorded(
        train=["maybe = exact > 0", "never = always"], weaknesses=["odd = len > 300"], targets={"xtr": 0.6}
    )
    assert [one.train for one in found.values()].count("maybe") == 2
    assert found["smollm-360m-instruct"].weaknesses == ["odd"]
    assert found["smollm2-360m-instruct"].targets[0].missing == pytest.approx(0.08)


@pytest.mark.parametrize(
    "line",
    [
        "no condition",
        "= xtr > 1",
        "a = xtr",
        "a = __import__('os') > 1",
        "a = xtr.real > 1",
        "a = speed > 1",
        "a = xtr > 'a'",
        "a = xtr ** 9 > 1",
        "a = xtr > 1; fmt",
        "a = " + "(" * 500,
    ],
)
def test_a_rule_that_is_no_comparison_of_figures_is_refused(line: str) -> None:
    with pytest.raises(ValueError):
        check_rule(line)


def test_rules_compare_as_figures_are_read() -> None:
    figures = {"xtr": 0.8, "fmt": 0.7, "exact": 0.1}
    assert applies("xtr - fmt >= 0.1 and not exact > 0.5", figures)
    assert applies("0.05 < exact <= 0.1 or fmt == 2 * exact", figures)
    assert conclusions(["a = xtr < 0.5", "b = always", "c = fmt > 0.5"], figures) == ["b", "c"]


@pytest.mark.django_db(transaction=True)
def test_the_page_the_api_and_the_file_conclude_the_same(client: Client, server: ModelServer) -> None:
    project = signed_in(client)
    evaluation = screened(project, server)
    shown = page(client, project, "evaluation-page", evaluation.pk)
    assert "yes: the best of this screen" in shown and "Result file" in shown
    found = client.get(f"/api/v1/evaluations/{evaluation.pk}").json()
    assert [one["model"] for one in found["conclusions"]] == ["good", "bad"]
    assert found["conclusions"][0]["train"] in shown and found["conclusions"][0]["targets"][0]["missing"] == 0
    answer = client.get(f"/api/v1/evaluations/{evaluation.pk}/result.json")
    whole = json.loads(answer.getvalue())
    assert {name: whole[name] for name in ("rows", "by_tier", "conclusions", "split")} == {
        name: found[name] for name in ("rows", "by_tier", "conclusions", "split")
    }
    calls = client.get(f"/api/v1/evaluations/{evaluation.pk}/calls?limit=500").json()["data"]
    assert len(whole["calls"]) == 10 and {call["id"] for call in calls} == {call["id"] for call in whole["calls"]}
    assert all(call in calls for call in whole["calls"])


def test_no_model_has_the_most_where_two_have_as_many() -> None:
    figures = {**dict.fromkeys(COLUMNS, 0.5), "n": 4, "errors": 0, "cut": 0}
    rows: list[Row] = [{**figures, "model": name, "intervals": wilson_intervals({"exact": 2}, 4)} for name in "ab"]
    one, other = conclude(rows, Rules())
    assert "as many as of another model" in one.verdict and "cannot separate it from the best" in other.verdict
