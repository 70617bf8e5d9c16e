"""The static screen: the rows that are sent, failed calls, parameters of the calls, figures."""

import json
import time
from typing import Any

import pytest

from curation.evaluations.models import EvaluatedModel, Evaluation, ScreenedAnswer, Split
from curation.evaluations.screen.figures import figures_of, overall
from curation.runs.engine.worker import drive
from curation.runs.launch import estimate, launch
from curation.runs.models import Call, Item, Run
from curation.web.problems import Invalid, Problem
from tests.driving import end
from tests.evaluations.evaluating import at_server, evaluate, make_rows, make_split, says, upload
from tests.factories import make_endpoint, make_project
from tests.model_server import ModelServer

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_first_rows_of_each_tier_and_source_are_sent_in_file_order(server: ModelServer) -> None:
    project = make_project()
    rows = make_rows(10, tiers=("easy", "hard"))
    split = make_split(project, rows)
    at_server(project, server, "m")
    some = evaluate(project, split, ["m"], max_per_combo=2)
    numbers = (
        ScreenedAnswer.objects.filter(evaluation=some).order_by("row__number").values_list("row__number", flat=True)
    )
    assert list(numbers) == [0, 1, 2, 3]
    every = evaluate(project, split, ["m"], max_per_combo="all")
    assert overall(every)[0]["n"] == 10
    assert server.counts("m").answered == 10  # the first four were on record


def test_rows_are_sent_as_they_are_without_the_last_message(server: ModelServer) -> None:
    project = make_project()
    messages = [
        {"role": "system", "content": "One command."},
        {"role": "user", "content": "List buckets.", "name": "ada"},
    ]
    rows = [{"tier": "x", "messages": [*messages, {"role": "assistant", "content": "aws s3 ls"}]}]
    split = make_split(project, rows)
    row = split.rows.get()
    assert (row.text.messages, row.text.expected, row.tier) == (messages, "aws s3 ls", "x")


def test_an_error_is_an_empty_answer_with_its_latency_and_the_item_is_done(server: ModelServer) -> None:
    project = make_project()
    split = make_split(project, make_rows(3))
    server.behave("broken", error=1.0, status=400, detail="no such model")
    at_server(project, server, "broken")
    evaluation = evaluate(project, split, ["broken"])
    run = evaluation.run
    run.refresh_from_db()
    assert (run.items_done, run.items_failed) == (3, 0)
    row = overall(evaluation)[0]
    assert (row["n"], row["errors"], row["fmt"], row["xtr"], row["exact"], row["len"]) == (3, 3, 0, 0, 0, 0)
    screened = ScreenedAnswer.objects.select_related("text", "call").first()
    assert screened is not None and screened.failed and "no such model" in screened.text.error
    assert screened.call is not None and screened.latency_ms == screened.call.latency_ms
    assert Call.objects.filter(run=run, status="error").count() == 3


def test_a_transient_error_is_retried_and_not_counted(server: ModelServer) -> None:
    project = make_project()
    rows = make_rows(6)
    split = make_split(project, rows)
    says(server, "shaky", rows, [row["messages"][-1]["content"] for row in rows], error=0.3, status=503, rate_limit=0.2)
    at_server(project, server, "shaky")
    row = overall(evaluate(project, split, ["shaky"]))[0]
    assert (row["n"], row["errors"], row["exact"]) == (6, 0, 1.0)


def test_a_call_that_hangs_ends_after_its_timeout(server: ModelServer) -> None:
    project = make_project(settings_json={"runs": {"wait_minutes": 0}})
    split = make_split(project, make_rows(1))
    server.behave("slow", hang=1.0)
    at_server(project, server, "slow")
    run = launch(
        project=project, kind="evaluate", params={"models": ["slow"], "split": str(split.pk), "timeout": 0.3}, user=None
    )
    began = time.monotonic()
    end(run)
    # The calls that look whether the endpoint is down end as soon.
    assert time.monotonic() - began < 60
    screened = ScreenedAnswer.objects.get()
    assert screened.failed and screened.latency_ms >= 300


def test_a_row_that_times_out_is_tried_once_and_has_the_time_of_its_own_call(server: ModelServer) -> None:
    """The endpoint answers a short request at once, which is none of the row's."""
    project = make_project()
    rows = make_rows(2)
    split = make_split(project, rows)
    server.behave("slow", stalls=rows[0]["messages"][0]["content"])
    at_server(project, server, "slow", max_concurrency=1)
    evaluation = evaluate(project, split, ["slow"], timeout=0.4)
    late = ScreenedAnswer.objects.select_related("call", "text").get(evaluation=evaluation, failed=True)
    assert late.row_id == split.rows.get(number=0).pk
    assert late.call is not None and late.call.error_kind == "timeout"
    assert 400 <= late.latency_ms == late.call.latency_ms
    assert "tried" not in late.text.error
    assert Call.objects.filter(content_hash=late.call.content_hash).count() == 1
    assert server.counts("slow").hung == 1


def test_rows_of_an_endpoint_that_hangs_wait_and_are_no_wrong_answers(server: ModelServer) -> None:
    project = make_project()
    split = make_split(project, make_rows(2))
    server.behave("slow", hang=1.0)
    at_server(project, server, "slow")
    params = {"models": ["slow"], "split": str(split.pk), "timeout": 0.3}
    run = launch(project=project, kind="evaluate", params=params, user=None)
    drive(run.pk)
    assert set(Item.objects.filter(run=run, stage="screen").values_list("state", flat=True)) == {"waiting"}
    assert not ScreenedAnswer.objects.exists()


def test_thinking_is_not_scored_and_a_cut_answer_is_marked(server: ModelServer) -> None:
    project = make_project()
    rows = make_rows(1)
    split = make_split(project, rows)
    server.behave("thinker", text="<think>aws ec2 first?</think>aws s3 ls")
    server.behave("cut", text="aws s3 ls --recursive and so on", cut=1.0)
    for name in ("thinker", "cut"):
        at_server(project, server, name)
    evaluation = evaluate(project, split, ["thinker", "cut"])
    thought = ScreenedAnswer.objects.select_related("text").get(by__name="thinker")
    assert thought.exact and thought.text.thinking == "aws ec2 first?" and thought.length == len("aws s3 ls")
    assert {row["model"]: row["cut"] for row in overall(evaluation)} == {"thinker": 0, "cut": 1}


def test_the_launch_overrides_the_endpoint_and_the_endpoint_the_defaults(server: ModelServer) -> None:
    project = make_project()
    split = make_split(project, make_rows(1))
    at_server(project, server, "plain")
    at_server(project, server, "own", params={"max_tokens": 2048, "temperature": 0.5})
    evaluation = evaluate(project, split, ["plain", "own"], temperature=0.2)
    asked = {model.name: model.call_params for model in EvaluatedModel.objects.filter(evaluation=evaluation)}
    assert asked["plain"] == {"temperature": 0.2, "max_tokens": 120, "timeout": 60.0}
    assert asked["own"] == {"temperature": 0.2, "max_tokens": 2048, "timeout": 60.0}


def test_a_file_becomes_a_split_and_is_evaluated_in_the_same_run(server: ModelServer) -> None:
    project = make_project()
    at_server(project, server, "m")
    rows: list[Any] = [*make_rows(2), {"messages": "no list"}]
    key = upload(project, rows, "fresh.jsonl")
    run = launch(project=project, kind="evaluate", params={"models": ["m"], "file": key}, user=None)
    assert set(run.result) == {"evaluation", "split"}
    end(run)
    split = Split.objects.get(pk=run.result["split"])
    assert (split.name, split.rows_count, run.state) == ("fresh.jsonl", 2, "succeeded")
    assert "column messages is text that is not JSON" in Item.objects.get(run=run, stage="bad_row").reason
    assert ScreenedAnswer.objects.filter(evaluation__run=run).count() == 2


def test_a_projects_own_family_scores_its_commands(server: ModelServer) -> None:
    project = make_project(settings_json={"evaluation": {"families": {"kubectl": "kubectl"}}})
    rows = [
        {"messages": [{"role": "user", "content": "pods"}, {"role": "assistant", "content": "kubectl get pods -n a"}]}
    ]
    split = make_split(project, rows)
    server.behave("m", text="```\nkubectl get pods --namespace a\n```")
    at_server(project, server, "m")
    row = overall(evaluate(project, split, ["m"], family="kubectl"))[0]
    assert (row["fmt"], row["xtr"], row["exact"], row["service_and_op"]) == (0.0, 1.0, 0.0, 1.0)
    bash = overall(evaluate(project, split, ["m"], family="bash block"))[0]
    assert (bash["fmt"], bash["xtr"], bash["service_and_op"]) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"models": ["nobody"]}, "no model nobody"),
        ({"models": []}, "models"),
        ({"models": ["m", "m"]}, "named twice"),
        ({"family": "klingon"}, "no command family"),
        ({"split": "99"}, "no split"),
        ({"file": "uploads/0/x"}, "not both"),
        ({"max_per_combo": 0}, "max_per_combo"),
    ],
)
def test_invalid_parameters_are_refused_with_a_reason(params: dict[str, Any], words: str) -> None:
    project = make_project()
    make_endpoint(project, "m", model="scripted/echo")
    split = make_split(project)
    given = {"models": ["m"], "split": str(split.pk), **params}
    with pytest.raises(Problem, match=words):
        launch(project=project, kind="evaluate", params=given, user=None)
    assert not Evaluation.objects.exists() and not Run.objects.filter(kind="evaluate").exists()


def test_the_estimate_counts_rows_times_models() -> None:
    project = make_project()
    make_endpoint(project, "free", model="scripted/echo", price_in=0, price_out=0)
    make_endpoint(project, "unknown", model="openai/x", api_base="http://127.0.0.1:9")
    split = make_split(project, make_rows(4))
    params = {"models": ["free", "unknown"], "split": str(split.pk), "max_per_combo": 3}
    found = estimate(project=project, kind="evaluate", params=params)
    assert (found.calls, found.cost, found.unpriced) == (6, None, ("unknown",))


def test_a_repeated_run_writes_each_answer_once(server: ModelServer) -> None:
    project = make_project()
    rows = make_rows(3)
    split = make_split(project, rows)
    at_server(project, server, "m")
    evaluation = evaluate(project, split, ["m"])
    Item.objects.filter(run=evaluation.run).update(state="pending")
    Run.objects.filter(pk=evaluation.run_id).update(state="running", stage="screen", items_done=0)
    end(evaluation.run)
    assert ScreenedAnswer.objects.filter(evaluation=evaluation).count() == 3
    assert server.counts("m").answered == 3


def test_tiers_and_sources_have_their_own_tables(server: ModelServer) -> None:
    project = make_project()
    rows = make_rows(4, tiers=("easy", "hard"))
    split = make_split(project, rows)
    says(server, "m", rows, [rows[0]["messages"][-1]["content"], "x", rows[2]["messages"][-1]["content"], "x"])
    at_server(project, server, "m")
    figures = figures_of(evaluate(project, split, ["m"]))
    assert [(tier, rows[0]["n"], rows[0]["exact"]) for tier, rows in figures.tiers.items()] == [
        ("easy", 2, 1.0),
        ("hard", 2, 0.0),
    ]
    assert list(figures.sources) == ["first"]
    assert json.dumps(figures.rows)


def test_an_empty_split_is_refused() -> None:
    project = make_project()
    make_endpoint(project, "m", model="scripted/echo")
    split = Split.objects.create(project=project, name="empty")
    with pytest.raises(Invalid, match="no rows yet"):
        launch(project=project, kind="evaluate", params={"models": ["m"], "split": str(split.pk)}, user=None)


def test_an_endpoint_that_was_down_too_long_gives_failed_items_and_no_wrong_answers(server: ModelServer) -> None:
    """Its models are not measured; the other model's rows are."""
    dead = ModelServer()
    dead.stop()
    project = make_project(settings_json={"runs": {"wait_minutes": 0}})
    at_server(project, server, "judge-b")
    at_server(project, dead, "judge-a")
    split = make_split(project)
    params = {"models": ["judge-a", "judge-b"], "split": str(split.pk)}
    run = end(launch(project=project, kind="evaluate", params=params, user=None))
    assert (run.state, run.outcome) == ("succeeded", "with_failures")
    failed = Item.objects.filter(run=run, state="failed")
    assert all(item.reason.startswith("judge-a is down: ") for item in failed)
    assert ScreenedAnswer.objects.filter(by__name="judge-a").count() == 0
    assert ScreenedAnswer.objects.filter(by__name="judge-b", failed=False).count() == failed.count() > 0
