"""The uplift experiment with a scripted trainer: its figures, its verdict, its page, and what fails."""

import json
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from curation.evaluations.compare.baseline import pin_baseline
from curation.evaluations.models import EvaluatedModel, Evaluation, Split
from curation.exports.models import Export
from curation.projects.models import Project, Role, Scope
from curation.runs.control import cancel
from curation.runs.engine.worker import drive
from curation.runs.kinds import kind_of
from curation.runs.launch import launch
from curation.runs.models import Item, Run
from curation.web.problems import Invalid
from tests.driving import end
from tests.evaluations.evaluating import make_rows, make_split, page, signed_in
from tests.evaluations.uplift.worlds import export_of, project_of, spoiled
from tests.factories import make_member, make_project
from tests.review.importing import access_to
from tests.sampled import one_of
from tests.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)
SCRIPTED = Path(__file__).with_name("scripted.py")


@pytest.fixture(autouse=True)
def trainer(settings: Settings) -> None:
    settings.TRAIN_COMMAND = f"{sys.executable} {SCRIPTED}"


def experiment(project: Project, **params: Any) -> dict[str, Any]:
    """Exports of 60 rows, half of them spoiled, and of the 30 others; the split has the tasks of all."""
    rows = make_rows(60)
    split = make_split(project, rows)
    raw, curated = export_of(project, spoiled(rows)), export_of(project, rows[::2], form="sft-prompt-completion")
    given = {"before": str(raw.pk), "after": str(curated.pk), "split": str(split.pk), "trainer": "command"}
    return {**given, "family": "aws", "metric": "exact", **params}


def run(project: Project, params: dict[str, Any]) -> Run:
    return end(launch(project=project, kind="uplift", params=params, user=None))


def test_the_run_says_by_how_much_and_how_sure(client: Client) -> None:
    project = signed_in(client)
    params = experiment(project, settings={"noise": 0.1})
    # Of the raw rows nothing right remains of what the curated ones teach.
    rows = make_rows(60)
    wrong = [{**row, "messages": [row["messages"][0], {"role": "assistant", "content": "aws wrong"}]} for row in rows]
    params["before"] = str(export_of(project, wrong).pk)
    ended = run(project, params)
    assert ended.state == "succeeded", list(ended.items.values_list("reason", flat=True))

    raw, curated, cut = ended.result["arms"]
    assert (raw["rows"], curated["rows"], cut["rows"]) == (60, 30, 30)
    assert raw["mean"] == 0.0 and 0.4 <= curated["mean"] <= 0.5 and list(curated["values"]) == ["1", "2", "3"]
    assert (curated["tokens"], curated["cost"], curated["device"]) == (900, 1.5, "scripted")
    gain, same_size = ended.result["gains"]
    assert gain["low"] < gain["delta"] < gain["high"] and gain["low"] > 0.2
    assert gain["delta"] == pytest.approx(curated["mean"], abs=1e-3) and gain["said"] == "clearly different"
    assert same_size["before"] == f"{raw['name']}, 30 rows"
    said = kind_of("uplift").conclude(ended)
    gains = f"Training on {curated['name']} clearly gains exact match against {raw['name']}"
    assert gains in said and "over 3 seeds" in said
    shown = page(client, project, "run-page", ended.pk)
    assert gains in shown and "clearly different" in shown and "$1.50" in shown and "3: 0.0" in shown
    answers = page(client, project, "evaluation-calls", Evaluation.objects.get(run=ended).pk)
    assert f"{curated['name']}, seed 2" in answers


def test_a_difference_that_the_seeds_do_not_decide_is_not_known() -> None:
    project = make_project()
    params = experiment(project, equal_rows=False, seeds=2)
    raw, again = (export_of(project, make_rows(60)[:at]) for at in (30, 31))
    ended = run(project, {**params, "before": str(raw.pk), "after": str(again.pk), "settings": {"noise": 0.5}})
    (gain,) = ended.result["gains"]
    assert gain["said"] == "not known" and gain["low"] < 0 < gain["high"]
    assert kind_of("uplift").conclude(ended).startswith("Not known whether exact match changes")


def test_a_training_that_failed_leaves_the_verdict_open_until_it_is_tried_again() -> None:
    project = make_project()
    ended = run(project, experiment(project, settings={"fail": 2}, equal_rows=False))
    failed = ended.items.filter(state="failed")
    assert failed.count() == 2 and "The trainer ended with 1: out of memory" in failed[0].reason
    assert [(gain["seeds"], gain["said"]) for gain in ended.result["gains"]] == [(2, "incomplete")]
    assert kind_of("uplift").conclude(ended).startswith("Not known, because trainings are missing")


def test_a_trainer_may_return_one_figure_for_each_seed() -> None:
    project = make_project()
    ended = run(project, experiment(project, settings={"figure": 1}, equal_rows=False))
    raw, curated = ended.result["arms"]
    assert raw["values"] == {"1": 0.606, "2": 0.612, "3": 0.618} and curated["mean"] == 0.306
    (gain,) = ended.result["gains"]
    assert (gain["rows"], gain["delta"], gain["said"], raw["tokens"]) == (1, -0.306, "clearly different", None)
    assert ended.result["metric"] == "figure" and "loses the trainer's own figure" in kind_of("uplift").conclude(ended)


def wrote(file: str, *values: str) -> dict[str, Any]:
    return {"writes": {file: "\n".join(f'{{"row": -7, "answer": {one}, "value": {one}}}' for one in values)}}


@pytest.mark.parametrize(
    "case",
    one_of(
        3,
        [
            ({"short": 1}, "The trainer answered 59 of 60 prompts."),
            ({"writes": {}}, "The trainer wrote neither `answers.jsonl` nor `figure.json`."),
            (wrote("figure.json", "NaN"), "The trainer's figure.json is no JSON: it has NaN"),
            (wrote("figure.json", "2"), "`value` in the trainer's `figure.json` is no number from 0 to 1."),
            ({"writes": {"costs.json": '{"cost": Infinity}'}}, "The trainer's costs.json is no JSON: it has Infinity"),
            (wrote("answers.jsonl", "null"), "Line 1 of the trainer's answers is no object"),
            (wrote("answers.jsonl", '"a"', '"b"'), "Line 2 of the trainer's answers is a second one for the row -7."),
            (wrote("answers.jsonl", '"a"'), "The trainer answered rows that it was not asked for, such as -7."),
            ({"wait": 600}, "The training took longer than 0.0001 hours."),
        ],
    ),
    ids=lambda case: case[1],
)
def test_a_command_that_does_not_do_its_part_fails_the_training_with_the_reason(
    case: tuple[dict[str, Any], str],
) -> None:
    given, reason = case
    project = make_project()
    hours = 0.0001 if "wait" in given else 1
    settings = {name: json.dumps(value) for name, value in given.items()}
    ended = run(project, experiment(project, settings=settings, equal_rows=False, seeds=2, max_hours=hours))
    assert ended.state == "failed" and ended.items_failed == 4
    assert all(reason in one for one in ended.items.values_list("reason", flat=True))


def test_a_command_that_is_not_there_is_said(settings: Settings) -> None:
    settings.TRAIN_COMMAND = "/nowhere/train --fast"
    project = make_project()
    ended = run(project, experiment(project, equal_rows=False, seeds=2))
    assert "/nowhere/train" in ended.items.filter(reason__contains="The trainer ended with")[0].reason


def test_recipes_are_exported_at_the_launch_and_trained_on() -> None:
    rows = [{**row, "source": "published"} for row in make_rows(60)]
    project, split = project_of(spoiled(rows), rows)
    params = {"before": "recipe/raw", "after": "recipe/curated", "split": split, "trainer": "command", "seeds": 2}
    launched = launch(project=project, kind="uplift", params=params, user=None)
    exports = Export.objects.in_bulk(map(int, launched.result["exports"].values()))
    assert {one.recipe_name for one in exports.values()} == {"raw", "curated"}
    ended = end(launched)
    assert ended.state == "succeeded", list(ended.items.values_list("reason", flat=True))
    raw, curated, cut = ended.result["arms"]
    assert raw["name"] == f"raw (export {launched.result['exports']['before']})"
    assert (raw["rows"], curated["rows"], cut["rows"]) == (60, 30, 30)
    assert ended.items.filter(stage="export", state="done").count() == 2 and ended.items_done == 2 + 6
    assert Evaluation.objects.get(run=ended).models.count() == 6
    assert f"{curated['name']} against {raw['name']}" in kind_of("uplift").conclude(ended)


def test_a_recipe_that_cannot_be_exported_or_has_no_rows_to_train_on_is_refused() -> None:
    rows = make_rows(12)
    project, split = project_of(spoiled(rows), rows)
    other, _ = project_of(spoiled(rows), rows, formats=["dpo"])
    params = {"before": "recipe/raw", "after": "recipe/curated", "split": split, "trainer": "command"}
    for wrong, match in {"recipe/raw": "Choose two", "recipe/gone": "there is no saved recipe 'gone'"}.items():
        with pytest.raises(Invalid, match=match):
            launch(project=project, kind="uplift", params={**params, "after": wrong}, user=None)
    with pytest.raises(Invalid, match="has no rows of the split `train` in sft-prompt-completion"):
        launch(project=other, kind="uplift", params=params, user=None)
    assert not Export.objects.exists()
    assert kind_of("uplift").scopes(params) == [Scope.RUN, Scope.EXPORT]
    assert kind_of("uplift").scopes({"before": "1", "after": "2"}) == [Scope.RUN]


def test_models_of_an_experiment_are_no_baseline_and_are_not_compared_with_one(client: Client) -> None:
    project = signed_in(client)
    params = experiment(project, equal_rows=False, seeds=2)
    ended = run(project, params)
    split = Split.objects.get(pk=params["split"])
    access = access_to(project, make_member(project, role=Role.ADMIN))
    of_uplift = Evaluation.objects.get(run=ended)
    with pytest.raises(Invalid, match="It is no baseline"):
        pin_baseline(access=access, model=of_uplift.models.all()[0])
    assert "Pin as baseline" not in page(client, project, "evaluation-page", of_uplift.pk)

    screen = Run.objects.create(project=project, kind="evaluate", state="succeeded")
    other = Evaluation.objects.create(project=project, run=screen, split=split, family=of_uplift.family)
    model = EvaluatedModel.objects.create(evaluation=other, place=0, name="usable")
    pin_baseline(access=access, model=model)
    assert all(one.against == {} for one in of_uplift.models.all())


def test_what_is_missing_is_refused_at_launch(settings: Settings) -> None:
    project = make_project()
    params = experiment(project)
    with pytest.raises(Invalid, match="Choose two exports"):
        launch(project=project, kind="uplift", params={**params, "after": params["before"]}, user=None)
    preferences = export_of(project, make_rows(3), form="dpo")
    with pytest.raises(Invalid, match="no rows of the split `train` in sft-prompt-completion or sft-messages"):
        launch(project=project, kind="uplift", params={**params, "after": str(preferences.pk)}, user=None)
    settings.TRAIN_COMMAND = ""
    with pytest.raises(Invalid, match="TRAIN_COMMAND"):
        launch(project=project, kind="uplift", params=params, user=None)


def test_without_the_extra_the_reason_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    project = make_project()
    monkeypatch.setenv("PYTHONPATH", "")
    ended = run(project, {**experiment(project, equal_rows=False, seeds=2), "trainer": "small"})
    reason = str(ended.items.order_by("id")[0].reason)
    assert reason == "torch is not installed on this worker: pip install 'winnow-curation[train]'."


def test_a_run_that_is_cancelled_kills_the_trainer() -> None:
    project = make_project()
    params = experiment(project, settings={"wait": 600}, equal_rows=False, seeds=2)
    launched = launch(project=project, kind="uplift", params=params, user=None)
    working = threading.Thread(target=drive, args=[launched.pk])
    working.start()
    until(Item.objects.filter(run=launched, state="claimed").exists)
    cancel(run=launched, user=None)
    working.join(60)
    assert not working.is_alive() and Run.objects.get(pk=launched.pk).state == "cancelled"
