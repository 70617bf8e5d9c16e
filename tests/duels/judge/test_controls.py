"""Control duels: mixed in unmarked, judged like others, and in no score, sample, list or count."""

from collections import Counter
from typing import Any

import pytest
from django.test import Client

from curation.duels.judge.controls import sides_of
from curation.duels.models import Duel, Order, Verdict
from curation.llm.client.completion import CompletionRequest
from curation.projects.models import Project
from curation.review.decisions.decide import decide
from curation.review.models import Action
from curation.runs.models import Item, Run
from curation.samples.models import Sample
from judging.answers.facts import answer_facts
from judging.planted_faults import ControlKind
from tests.duels.running import (
    JUDGES,
    Models,
    Reply,
    against,
    fair,
    first,
    make_arena,
    run_to_end,
    serve,
    shown,
    verdict,
)
from tests.factories import make_bearer, make_member
from tests.review.importing import access_to
from tests.world import world

pytestmark = pytest.mark.django_db(transaction=True)
SETTINGS: dict[str, Any] = {"panel": {"judges": list(JUDGES), "controls": 0.05}}


def careful(request: CompletionRequest) -> str:
    """A judge that sees planted faults: two blocks, no command, a file that nobody named; else the challenger wins."""
    one, two = (_faults(text) for text in shown(request))
    if one != two:
        return verdict(*[1 if one < two else 2] * 5)
    return verdict(*[0] * 5) if shown(request)[0] == shown(request)[1] else better_challenger(request)


def better_challenger(request: CompletionRequest) -> str:
    return verdict(*[1 if "CHALLENGER" in shown(request)[0] else 2] * 5)


def _faults(text: str) -> int:
    facts = answer_facts(text)
    return abs(facts.blocks - 1) + abs(facts.commands - 1)


REPLIES: dict[str, Reply] = {"judge-a": careful, "judge-b": better_challenger, "judge-c": first}


@world
def judged(patched: pytest.MonkeyPatch) -> tuple[Run, str]:
    """12 duels. One judge is careful, one always prefers the challenger's words, one the first seat.

    With everything that `judge-a` was sent.
    """
    models = serve(patched)
    models.says |= REPLIES
    project, _ = make_arena(prompts=12, settings=SETTINGS)
    return run_to_end(project), models.text_sent("judge-a")


@pytest.fixture
def run(judged: tuple[Run, str]) -> Run:
    return judged[0]


def controls_of(project: Project) -> list[Duel]:
    rows = (
        Duel.everything.of(project).exclude(control="").select_related("challenger__text", "king__text", "prompt__text")
    )
    return list(rows)


def test_they_are_judged_by_the_whole_panel_in_both_orders_without_a_mark(judged: tuple[Run, str]) -> None:
    run, sent = judged
    found = controls_of(run.project)
    assert len(found) == 24
    assert Counter(duel.control for duel in found) == {ControlKind.FAULT: 12, ControlKind.SAME: 6, ControlKind.BRIBE: 6}
    for duel in found:
        asked = set(Verdict.objects.filter(duel=duel).values_list("judge", "order"))
        assert asked == {(judge, order) for judge in JUDGES for order in Order.values}
    items = list(Item.objects.filter(run=run, stage="judge").order_by("id").values_list("target_id", flat=True))
    known = {duel.pk for duel in found}
    marks = [target in known for target in items[:: 2 * len(JUDGES)]]
    assert sum(marks) == 24 and any(marks[:6]) and any(marks[-6:]) and not all(marks[:3])
    assert "control" not in sent.lower()


def test_a_fault_is_on_either_side_and_the_judge_reads_it_there(run: Run) -> None:
    faults = [duel for duel in controls_of(run.project) if duel.control == ControlKind.FAULT]
    assert {duel.expected for duel in faults} == {1, -1}
    for duel in faults:
        opponent, challenger = sides_of(duel)
        sound, planted = (challenger, opponent) if duel.expected == 1 else (opponent, challenger)
        assert (sound, planted) == (duel.challenger.text.text, duel.planted) and sound != planted
    assert all(len(set(sides_of(duel))) == 1 for duel in controls_of(run.project) if duel.control == ControlKind.SAME)


def test_the_same_turns_in_another_project_have_the_same_faults(run: Run, models: Models) -> None:
    def planted(project: Project) -> list[tuple[str, str, int | None]]:
        found = sorted(controls_of(project), key=lambda duel: duel.prompt_id)
        return [(duel.control, duel.planted, duel.expected) for duel in found]

    models.says |= REPLIES
    settings = {"panel": {"judges": ["judge-a"], "controls": 0.05}}
    other, _ = make_arena(prompts=12, judges=("judge-a",), settings=settings, slug="other")
    run_to_end(other)
    assert planted(other) == planted(run.project)


def test_each_judge_gets_an_accuracy_and_a_false_preference(run: Run) -> None:
    careful_one, sided, seated = run.result["judges"]
    assert (run.result["controls"], careful_one["controls"]) == (24, 18)
    assert (careful_one["control_accuracy"], careful_one["false_preference"]) == (1.0, 0.0)
    assert careful_one["control_interval"]["low"] > 0.6
    assert (seated["control_accuracy"], seated["false_preference"]) == (0.0, 1.0)
    assert sided["control_accuracy"] < 1.0
    assert set(careful_one["control_kinds"]) == {"same", "fault", "bribe"}


def test_a_verdict_rests_on_judges_that_control_duels_tell_from_chance(run: Run) -> None:
    """One judge sees faults; the other two do not, so that nothing is decided, however sure they are."""
    result = run.result
    assert (result["margin"], result["informative"], result["decision"]) == (
        pytest.approx(200 / 3),
        ["judge-a"],
        "undecided",
    )
    assert "no better than chance" in result["not_informative"]["judge-b"]
    assert result["not_informative"]["judge-c"].startswith("flips in 100 %")
    assert result["reasons"][-1].startswith("undecided: it rests on 1 informative judge, 2 are needed")
    assert result["judges"][0]["control_objection"] == ""


def test_a_better_challenger_is_accepted_by_judges_that_see_faults_also_after_a_rescore(models: Models) -> None:
    models.says |= {"judge-a": fair(), "judge-b": fair(won=3), "judge-c": first}
    project, _ = make_arena(prompts=12, settings=SETTINGS)
    run = run_to_end(project)
    assert (run.result["decision"], run.result["informative"]) == ("accepted", ["judge-a", "judge-b"])
    again = run_to_end(project, "rescore", run=str(run.pk))
    assert (again.result["decision"], again.result["controls"]) == ("accepted", 24)
    alone = run_to_end(project, "rescore", run=str(run.pk), judges=["judge-a"])
    assert (alone.result["decision"], alone.result["margin"]) == ("undecided", 100.0)


def test_they_are_in_no_figure_score_sample_list_or_count(run: Run, client: Client) -> None:
    result, project = run.result, run.project
    assert (result["done"], result["parsed"], sum(result["buckets"].values())) == (12, 12, 12)
    assert Duel.objects.of(project).count() == Sample.objects.filter(project=project).count() == 12
    assert {judge["n"] for judge in result["judges"]} == {12}
    bearer = make_bearer(make_member(project, role="curator"))
    listed = client.get(f"/api/v1/projects/{project.slug}/duels?limit=100", headers=bearer).json()["data"]
    assert len(listed) == 12 and {duel["control"] for duel in listed} == {None}
    of_run = client.get(f"/api/v1/projects/{project.slug}/duels?limit=100&run={run.pk}", headers=bearer).json()["data"]
    assert len(of_run) == 12
    asked = client.get(f"/api/v1/projects/{project.slug}/duels?limit=100&control=true", headers=bearer).json()["data"]
    assert len(asked) == 24 and {duel["control"]["kind"] for duel in asked} == {"same", "fault", "bribe"}
    fault = next(duel for duel in asked if duel["control"]["expected"] == "challenger")
    assert fault["king"]["text"] == Duel.everything.get(pk=fault["id"]).planted != fault["challenger"]["text"]
    assert fault["sample"] is None and fault["king"]["facts"] != fault["challenger"]["facts"]
    one = client.get(f"/api/v1/duels/{fault['id']}", headers=bearer)
    assert one.status_code == 200 and len(one.json()["verdicts"]) == 6


def test_a_judge_that_takes_bribes_is_named_and_not_informative(models: Models) -> None:
    def bought(request: CompletionRequest) -> str:
        one, two = shown(request)
        same_answer = ("CHALLENGER" in one) == ("CHALLENGER" in two)
        return verdict(*[1 if len(one) > len(two) else 2] * 5) if same_answer else better_challenger(request)

    models.says |= {"judge-a": careful, "judge-b": bought, "judge-c": better_challenger}
    project, _ = make_arena(prompts=12, settings=SETTINGS)
    run = run_to_end(project)
    sound, taker, other = run.result["judges"]
    assert (taker["bribed"], taker["bribes"], sound["bribed"]) == (6, 6, 0)
    assert [finding["flaw"] for finding in taker["findings"]] == ["bribed"], "it is not called usual beside that"
    assert taker["findings"][-1]["sentence"] == (
        "takes bribes: prefers the same answer with a bribe in 6 of 6 control duels"
    )
    assert "bribed" not in [finding["flaw"] for judge in (sound, other) for finding in judge["findings"]]
    assert run.result["informative"] == ["judge-a"]
    assert run.result["not_informative"]["judge-b"] == "takes bribes"


def test_a_second_run_has_the_same_controls_and_reads_nothing_again(run: Run, models: Models) -> None:
    asked = len(models.asked)
    again = run_to_end(run.project)
    assert len(models.asked) == asked and len(controls_of(run.project)) == 24
    assert again.result["controls"] == 24
    assert again.result["judges"][0]["control_accuracy"] == 1.0


def test_a_duel_that_people_decided_is_a_control(models: Models) -> None:
    models.says |= dict.fromkeys(JUDGES, against)
    project, _ = make_arena(prompts=4, judges=("judge-a",))
    run_to_end(project)
    sample = Sample.objects.filter(project=project).order_by("pk")[0]
    access = access_to(project, make_member(project))
    decide(access=access, sample_id=sample.pk, action=Action.APPROVE, preference="challenger")
    project.settings_json["panel"]["controls"] = 0.5
    project.save()
    run = run_to_end(project)
    (known,) = [duel for duel in controls_of(project) if duel.control == ControlKind.PEOPLE]
    assert (known.expected, known.king_id) == (1, sample.duel.king_id)
    assert run.result["judges"][0]["control_kinds"]["people"] == [0.0, 1]


def test_the_share_is_a_setting_and_nothing_is_mixed_in_without_it(models: Models) -> None:
    project, _ = make_arena(prompts=2, judges=("judge-a",))
    run = run_to_end(project)
    assert controls_of(project) == [] and run.result["controls"] == 0
    assert run.result["judges"][0]["control_accuracy"] is None
