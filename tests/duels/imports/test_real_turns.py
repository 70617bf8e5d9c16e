"""Real agent turns in two layouts, with the real import and a model server over HTTP."""

import json
from pathlib import Path
from typing import Any

import pytest

from curation.duels.models import Answer, Duel, Prompt
from curation.projects.models import Project
from curation.runs.models import Call, Run
from tests.duels.recomputed import bucket, lower_bound, recompute
from tests.duels.running import run_to_end, verdict_rows
from tests.factories import make_endpoint, make_project
from tests.imports.bringing import bring
from tests.model_server import ModelServer
from tests.parts import shared_data

pytestmark = pytest.mark.django_db(transaction=True)
LAYOUTS = {"swe_agent_nebius.jsonl": ("trajectory", "ai"), "mini_coder.jsonl": ("messages", "assistant")}
JUDGES = ["judge-a", "judge-b", "judge-broken"]
PARAMS: dict[str, Any] = {
    "leak_reader": "none",
    "king_model": "king-a",
    "challenger_model": "challenger-a",
    "judges": JUDGES,
    "min_judges": 2,
}


def rows_of(path: Path) -> list[dict[str, list[dict[str, str]]]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def turns_in(path: Path) -> int:
    column, role = LAYOUTS[path.name]
    return sum(sum(m["role"] == role for m in row[column][2:]) for row in rows_of(path))


@pytest.fixture
def project(model_server: ModelServer) -> Project:
    project = make_project(settings_json={"panel": {"controls": 0.0}})
    for name in ("king-a", "challenger-a", *JUDGES):
        make_endpoint(project, name, model=f"openai/{name}", api_base=model_server.api_base)
    model_server.behave("judge-broken", text="I cannot decide.")
    return project


@pytest.mark.slow
def test_real_turns_are_answered_judged_and_scored_as_computed_from_outside(
    project: Project, model_server: ModelServer
) -> None:
    for name in LAYOUTS:
        imported = bring(project, "turns", shared_data("turns", name).read_bytes(), name)
        assert imported.state == "succeeded", imported.error
    records = bring(project, "pr_records", shared_data("turns", "pr_records.jsonl").read_bytes())
    assert records.state == "succeeded", records.error
    run = run_to_end(project, **PARAMS, attempts=2)
    figures_follow_from_the_verdicts(project, run)
    every_call_is_recorded_with_its_tokens_and_unknown_price(project, run, model_server)
    the_same_run_again_only_retries_what_did_not_parse(project, run, model_server)


def figures_follow_from_the_verdicts(project: Project, run: Run) -> None:
    turns = sum(turns_in(shared_data("turns", name)) for name in LAYOUTS)
    assert Prompt.objects.of(project).count() == turns
    assert (run.state, run.items_failed) == ("succeeded", 0)
    duels = list(Duel.objects.of(project).select_related("prompt", "challenger"))
    assert len(duels) == run.result["done"] == Prompt.objects.of(project).answerable().with_record().count() > 0
    expected = recompute(verdict_rows(run), JUDGES, min_judges=2)
    for duel in duels:
        assert duel.score == pytest.approx(expected.scores[duel.pk])
        assert duel.bucket == bucket(duel.score, held=duel.challenger.leak_flag)
    assert run.result["parsed"] == len(duels)
    assert run.result["buckets"] == {
        name: sum(duel.bucket == name for duel in duels) for name in ("final", "refined", "defeat", "unparsed")
    }
    assert run.result["margin"] == pytest.approx(expected.margin)
    scores, clusters = [d.score or 0.0 for d in duels], [d.prompt.instance_id for d in duels]
    assert run.result["lcb"] == pytest.approx(lower_bound(scores, clusters), abs=2)
    assert run.result["lcb_unclustered"] == pytest.approx(
        lower_bound(scores, list(map(str, range(len(scores))))), abs=2
    )
    judges = {judge["name"]: judge for judge in run.result["judges"]}
    for name in ("judge-a", "judge-b"):
        assert judges[name]["flip_rate"] == pytest.approx(expected.flips[name])
        assert judges[name]["win_rate"] == pytest.approx(expected.wins[name])
    assert (judges["judge-broken"]["parse_rate"], judges["judge-broken"]["win_rate"]) == (0.0, None)


def every_call_is_recorded_with_its_tokens_and_unknown_price(
    project: Project, run: Run, model_server: ModelServer
) -> None:
    calls = Call.objects.filter(run=run)
    assert calls.count() == model_server.counts().asked == run.calls == run.cost_unknown_calls
    assert set(calls.values_list("status", "cost")) == {("ok", None)}
    assert sum(model_server.counts().tokens) == run.tokens_in + run.tokens_out
    assert model_server.counts("judge-broken").asked == 2 * 2 * run.result["done"]
    assert not Answer.objects.filter(refusal="", prompt__project=project, text__text="").exists()


def the_same_run_again_only_retries_what_did_not_parse(project: Project, run: Run, model_server: ModelServer) -> None:
    model_server.reset()
    again = run_to_end(project, **PARAMS, attempts=1)
    assert model_server.counts().asked == model_server.counts("judge-broken").asked == 2 * run.result["done"]
    assert {key: again.result[key] for key in ("margin", "lcb", "buckets")} == {
        key: run.result[key] for key in ("margin", "lcb", "buckets")
    }
