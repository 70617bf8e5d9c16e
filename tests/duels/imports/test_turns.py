"""Imported turns: the messages that count, the stored prompt, and rows that already exist."""

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
from tests.imports.bringing import SYSTEM, bad_rows, bring, chat
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


@pytest.mark.parametrize(
    ("name", "column", "role", "layout"),
    [
        ("swe_agent_nebius.jsonl", "trajectory", "ai", "SWE-agent rows (trajectory)"),
        ("mini_coder.jsonl", "messages", "assistant", "chat rows (messages)"),
    ],
)
def test_real_trajectories_give_every_assistant_turn(name: str, column: str, role: str, layout: str) -> None:
    content = shared_data("turns", name).read_bytes()
    rows = [json.loads(line) for line in content.splitlines()]
    project = make_project()

    run = bring(project, "turns", content, name)

    turns = sum(m["role"] == role and i > 1 for row in rows for i, m in enumerate(row[column]))
    assert (run.result["prompts"], run.result["layout"], run.result["bad_rows"]) == (turns, layout, 0)
    assert Prompt.objects.of(project).count() == turns
    for prompt in Prompt.objects.of(project).select_related("text"):
        row = rows[prompt.row_offset]
        spoken = row[column][prompt.turn_index]
        assert prompt.text.reference["content"] == (spoken.get("text") or spoken.get("content"))
        assert prompt.text.history[0]["role"] == "system" and len(prompt.text.history[0]["content"]) > 10
        assert len(prompt.text.history) == prompt.turn_index
        assert prompt.tokens == sum(len(message["content"]) for message in prompt.text.history) // 4
        assert prompt.instance_id == row["instance_id"]
        assert "/" in prompt.repo


def test_two_files_of_one_name_are_both_imported_and_each_only_once() -> None:
    project = make_project()
    first, second = [chat(1, 2), chat(2)], [chat(8, 3), chat(9)]

    assert bring(project, "turns", first).result["prompts"] == 3
    run = bring(project, "turns", second)

    assert run.result["prompts"] == 4
    assert run.result["also_as"].startswith("turns.jsonl#")
    for rows in (first, second, first):
        assert bring(project, "turns", rows).result["prompts"] == 0
    assert Prompt.objects.count() == 7


def test_a_corrected_file_adds_its_corrected_rows_under_the_same_name() -> None:
    project = make_project()
    bring(project, "turns", [chat(1), "{broken", chat(3)])

    run = bring(project, "turns", [chat(1), chat(2), chat(3)])

    assert (run.result["prompts"], run.result["duplicates"]) == (1, 2)
    assert set(Prompt.objects.values_list("source", flat=True)) == {"turns.jsonl"}


def test_the_same_rows_under_another_name_or_at_other_offsets_add_nothing() -> None:
    project = make_project()
    bring(project, "turns", [chat(1, 2), chat(2)])

    copy = bring(project, "turns", [chat(2), chat(1, 2), chat(3)], "renamed.jsonl")
    again = bring(project, "turns", [chat(2), chat(1, 2), chat(3)], "renamed.jsonl")

    figures = ("prompts", "duplicates", "copies")
    assert [copy.result[name] for name in figures] == [1, 3, 3]
    assert copy.result["copies_of"] == "turns.jsonl"
    assert [again.result[name] for name in figures] == [0, 4, 3]
    assert Prompt.objects.of(project).count() == 4


def test_the_same_messages_of_another_instance_are_another_turn() -> None:
    project = make_project()
    bring(project, "turns", [{**chat(1), "instance_id": "acme__a-1"}])

    run = bring(project, "turns", [{**chat(1), "instance_id": "acme__a-2"}], "other.jsonl")

    assert (run.result["prompts"], run.result["copies"]) == (1, 0)


def test_another_project_has_its_own_prompts() -> None:
    for project in (make_project(), make_project()):
        assert bring(project, "turns", [chat(1)]).result["prompts"] == 1


def test_one_character_does_not_cost_a_row() -> None:
    rows = [
        chat(1, system="a\x00b"),
        '{"messages": [{"role": "user", "content": "\\ud83d"}, {"role": "assistant", "content": "x"}], "score": NaN}',
    ]
    project = make_project()
    run = bring(project, "turns", rows)
    assert (run.result["prompts"], run.result["bad_rows"]) == (2, 0)
    histories = [prompt.text.history[0]["content"] for prompt in Prompt.objects.order_by("row_offset")]
    assert histories == ["a\N{REPLACEMENT CHARACTER}b", "\N{REPLACEMENT CHARACTER}"]


def test_rows_that_differ_in_their_system_prompt_only_are_different_turns() -> None:
    run = bring(make_project(), "turns", [chat(1, system="One."), chat(1, system="Two."), chat(1)])
    assert (run.result["prompts"], run.result["duplicates"]) == (3, 0)


def test_a_turn_without_a_history_does_not_count() -> None:
    greeting = {"role": "assistant", "content": "Hello."}
    rows = [
        {"messages": [SYSTEM, greeting, {"role": "user", "content": "Hi"}, greeting]},
        {"messages": [{"role": "user", "content": "Hi"}, greeting]},
        {"messages": [SYSTEM, greeting]},
    ]

    run = bring(make_project(), "turns", rows)

    assert set(Prompt.objects.values_list("row_offset", "turn_index")) == {(0, 3), (1, 1)}
    assert bad_rows(run) == {"row 3": "no assistant message with a history before it"}


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
    assert run.result["lcb"] == pytest.approx(lower_bound(scores, clusters), abs=3)
    assert run.result["lcb_unclustered"] == pytest.approx(
        lower_bound(scores, list(map(str, range(len(scores))))), abs=3
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
