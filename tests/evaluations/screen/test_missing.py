"""Rows without a result: no figure, table, chart, rank or conclusion is given as if they had one."""

from collections.abc import Mapping
from typing import Any

import pytest
from django.test import Client

from curation.evaluations.compare.baseline import compare_with_baseline, pin_baseline
from curation.evaluations.models import EvaluatedModel, Evaluation, ScreenedAnswer
from curation.evaluations.screen.figures import overall, save_figures
from curation.projects.access import Access
from curation.projects.models import Project, Scope
from curation.runs.kinds import kind_of
from curation.runs.launch import launch
from curation.runs.models import Run
from tests.driving import end
from tests.evaluations.evaluating import at_server, evaluate, make_rows, make_split, model_in, says
from tests.factories import make_member, make_project
from tests.model_server import ModelServer

pytestmark = pytest.mark.django_db(transaction=True)
ROWS = make_rows(4, tiers=("easy", "hard"))


@pytest.fixture
def project(server: ModelServer) -> Project:
    """`bad` is wrong everywhere, `good` right, and `lucky` is right too."""
    project = make_project()
    for name in ("bad", "good", "lucky"):
        at_server(project, server, name)
        right = [row["messages"][-1]["content"] for row in ROWS]
        says(server, name, ROWS, ["aws s3 rb"] * 4 if name == "bad" else right)
    return project


def keep_one_answer(evaluation: Evaluation, name: str) -> None:
    """As if the other rows of the model had failed."""
    ScreenedAnswer.objects.filter(evaluation=evaluation, by__name=name).exclude(row__number=0).delete()
    save_figures(evaluation, overall(evaluation))


def by_model(rows: list[dict[str, Any]]) -> Mapping[str, dict[str, Any]]:
    return {row["model"]: row for row in rows}


def test_a_model_that_cannot_be_asked_has_no_wrong_answers(
    project: Project, server: ModelServer, client: Client
) -> None:
    """The key of its endpoint is not set, so that no row was sent."""
    at_server(project, server, "keyless", api_key_env="WINNOW_KEY_THAT_NOBODY_SET")
    params = {"models": ["good", "keyless"], "split": str(make_split(project, ROWS).pk)}
    run = end(launch(project=project, kind="evaluate", params=params, user=None))
    assert (run.items_done, run.items_failed) == (4, 4)
    assert not ScreenedAnswer.objects.filter(by__name="keyless").exists()
    row = by_model(run.result["models"])["keyless"]
    assert (row["n"], row["rows_missing"], row["incomplete"], row["exact"], row["lat"]) == (0, 4, True, None, None)
    client.force_login(make_member(project))
    found = client.get(f"/api/v1/evaluations/{run.result['evaluation']}").json()
    assert "keyless: 4 rows are missing, of 4. There are no figures" in found["notes"][0]
    for tier in found["by_tier"]:
        assert by_model(tier["rows"])["keyless"]["incomplete"] and not by_model(tier["rows"])["good"]["incomplete"]
    assert [line["train"] for line in found["conclusions"]][1] == "not known: rows are missing"
    page = client.get(f"/p/{project.slug}/evaluations/{run.result['evaluation']}/").content.decode()
    assert "incomplete: 4 missing" in page and "0 of 4" not in page
    chart = client.get(f"/p/{project.slug}/evaluations/{run.result['evaluation']}/chart/").json()
    assert chart["data"][0]["x"] == ["good"]
    assert "incomplete: 4 missing" in client.get(f"/p/{project.slug}/evaluations/leaderboard/").content.decode()


@pytest.mark.parametrize(("status", "asked"), [(401, False), (402, False), (400, True), (404, True), (422, True)])
def test_a_refusal_is_an_answer_unless_it_is_of_the_key(
    project: Project, server: ModelServer, status: int, asked: bool
) -> None:
    at_server(project, server, "refused")
    server.behave("refused", error=1.0, status=status, detail="<html>refused</html>")
    params = {"models": ["good", "refused"], "split": str(make_split(project, ROWS).pk)}
    run = end(launch(project=project, kind="evaluate", params=params, user=None))
    row = by_model(run.result["models"])["refused"]
    assert (row["n"], row["errors"]) == ((4, 4) if asked else (0, 0))
    assert (row["rows_missing"], row["incomplete"]) == (0 if asked else 4, not asked)


def test_figures_of_a_part_of_the_rows_rank_last_and_conclude_nothing(project: Project, client: Client) -> None:
    """`lucky` has one answer, which is right: 100 %."""
    evaluation = evaluate(project, make_split(project, ROWS), ["lucky", "bad"])
    keep_one_answer(evaluation, "lucky")
    client.force_login(make_member(project))
    found = client.get(f"/api/v1/evaluations/{evaluation.pk}").json()
    assert [(row["model"], row["exact"], row["rank"]) for row in found["rows"]] == [("bad", 0.0, 1), ("lucky", 1.0, 2)]
    bad, lucky = found["conclusions"]
    assert "the most of all" in bad["verdict"]
    assert lucky["verdict"] == "Not known: 3 rows of 4 have no result."
    assert (lucky["targets"], lucky["weaknesses"]) == ([], [])
    easy, hard = found["by_tier"]
    assert [by_model(tier["rows"])["lucky"]["n"] for tier in (easy, hard)] == [1, 0]
    assert by_model(easy["rows"])["lucky"]["rank"] == 2 and by_model(hard["rows"])["lucky"]["exact"] is None
    board = client.get(f"/api/v1/projects/{project.slug}/leaderboard").json()
    assert [entry["figures"]["model"] for entry in board["data"]] == ["bad", "lucky"]
    page = client.get(f"/p/{project.slug}/evaluations/{evaluation.pk}/").content.decode()
    assert page.count(">incomplete<") >= 2, "in the table of each tier too"
    chart = client.get(f"/p/{project.slug}/evaluations/{evaluation.pk}/chart/").json()
    assert chart["data"][0]["x"] == ["bad", "lucky (incomplete)"]
    models = {model.name: model.pk for model in EvaluatedModel.objects.filter(evaluation=evaluation)}
    change = f"/p/{project.slug}/evaluations/compare/chart/?before={models['bad']}&after={models['lucky']}"
    assert client.get(change).json()["data"][0]["name"] == "all rows (incomplete)"


def test_a_baseline_whose_rows_were_retried_is_compared_again(project: Project) -> None:
    split = make_split(project, ROWS)
    first, second = (evaluate(project, split, [name]) for name in ("good", "bad"))
    answers = list(ScreenedAnswer.objects.filter(evaluation=first))
    keep_one_answer(first, "good")
    access = Access(make_member(project, role="admin"), project, "admin", frozenset(Scope))
    pin_baseline(access=access, model=model_in(first, "good"))
    against = model_in(second, "bad").against
    assert (against["missing"], against["metrics"]["exact"]["said"]) == (3, "incomplete")
    ScreenedAnswer.objects.bulk_create(answers, ignore_conflicts=True)
    first.refresh_from_db()
    compare_with_baseline(first)
    against = model_in(second, "bad").against
    assert (against["missing"], against["metrics"]["exact"]["delta"]) == (0, -1.0)
    assert against["metrics"]["exact"]["said"] != "incomplete"


def test_a_run_in_which_every_call_failed_has_no_best_model() -> None:
    failed = {"model": "far", "n": 12, "errors": 12, "exact": 0.0}
    run = Run(params={"kind": "static"}, result={"models": [failed, {**failed, "model": "near"}]})
    assert kind_of("evaluate").conclude(run) == "No model has answered. 24 calls failed."
    run.result["models"][1] |= {"errors": 3}
    assert kind_of("evaluate").conclude(run) == "near matches exactly on 0.0 % of 12 rows. 15 calls failed."
