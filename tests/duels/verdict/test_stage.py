import re
from collections import Counter

import pytest

from curation.duels.models import Duel
from curation.llm.client.completion import CompletionRequest
from curation.projects.models import Project, Role
from curation.review.decisions.decide import decide
from curation.review.models import Action
from curation.runs.models import Call, Run
from curation.samples.models import Sample, SampleStatus
from tests.duels.recomputed import bucket, lower_bound, recompute
from tests.duels.running import (
    JUDGES,
    Models,
    Reply,
    against,
    fair,
    make_arena,
    prose,
    run_to_end,
    scores_of,
    serve,
    verdict,
    verdict_rows,
)
from tests.factories import make_member, make_prompt
from tests.review.importing import access_to
from tests.world import world

pytestmark = pytest.mark.django_db(transaction=True)


def motley(seed: int) -> Reply:
    """A judge whose verdict depends on the answers, and which sometimes does not parse."""

    def reply(request: CompletionRequest) -> str:
        # Without the key of the delimiters, which follows the machine's secret key.
        asked = str(request.messages[-1]["content"])
        (key,) = set(re.findall(r'key="(\w+)"', asked))
        lot = hash_of(f"{seed}{asked.replace(key, '')}")
        if lot % 5 == 0:
            return prose(request)
        lead = fair()(request) if lot % 3 else against(request)
        values = [int(value) for value in str(lead) if value in "012"][:5]
        return verdict(*[value if lot >> n & 1 or n == 0 else (lot >> n) % 3 for n, value in enumerate(values)])

    return reply


def hash_of(text: str) -> int:
    return sum(ord(sign) * (place % 251 + 1) for place, sign in enumerate(text))


@world
def motley_run(patched: pytest.MonkeyPatch) -> Run:
    """40 duels on 12 pull requests with three such judges."""
    serve(patched).says |= {name: motley(n) for n, name in enumerate(JUDGES)}
    project, prompts = make_arena(prompts=12)
    for n in range(28):
        history = [{"role": "user", "content": f"A later turn, number {n}."}]
        make_prompt(project, history=history, instance_id=prompts[n % 12].instance_id)
    return run_to_end(project, min_judges=2, attempts=1)


def test_the_figures_of_a_run_follow_from_its_verdicts(motley_run: Run) -> None:
    run, result = motley_run, motley_run.result
    duels = {duel.pk: duel for duel in Duel.objects.filter(run=run).select_related("prompt", "sample")}
    expected = recompute(verdict_rows(run), list(JUDGES), min_judges=2)
    assert (result["done"], result["parsed"]) == (40, len(expected.scores))
    assert 0 < result["parsed"] < 40
    for pk, duel in duels.items():
        assert duel.score == pytest.approx(expected.scores.get(pk)), pk
        assert duel.metrics == pytest.approx(expected.metrics.get(pk, {}))
        assert duel.bucket == bucket(expected.scores.get(pk))
        sample = duel.sample
        assert sample is not None
        assert (sample.score, sample.bucket, sample.flags) == (duel.score, duel.bucket, duel.flags)
    assert result["buckets"] == {**dict.fromkeys(result["buckets"], 0), **Counter(d.bucket for d in duels.values())}
    assert len(Counter(d.bucket for d in duels.values())) >= 3
    assert result["margin"] == pytest.approx(expected.margin)
    for judge in result["judges"]:
        name = judge["name"]
        assert judge["flip_rate"] == pytest.approx(expected.flips[name])
        assert judge["win_rate"] == pytest.approx(expected.wins[name])
        assert judge["parse_rate"] == pytest.approx(expected.parse[name])
        assert judge["tokens"] == 40 * 2 * 110
    scores = list(expected.scores.values())
    clusters = [duels[pk].prompt.instance_id for pk in expected.scores]
    assert result["lcb"] == pytest.approx(lower_bound(scores, clusters), abs=3)
    assert result["lcb_unclustered"] == pytest.approx(lower_bound(scores, [str(n) for n in range(len(scores))]), abs=3)
    assert result["lcb"] != result["lcb_unclustered"]
    # No control duels: nobody knows whether these judges can tell answers apart.
    assert (result["accepted"], result["decision"], result["informative"]) == (False, "undecided", [])


def test_the_same_run_gives_the_same_figures_again(motley_run: Run) -> None:
    again = run_to_end(motley_run.project, "rescore", run=str(motley_run.pk))
    free = {"calls": 0, "tokens": 0, "cost": "0", "cost_known": "0", "cost_unknown_calls": 0}
    assert [judge | free for judge in motley_run.result.pop("judges")] == again.result.pop("judges")
    same = ("margin", "lcb", "lcb_unclustered", "parsed", "done", "accepted", "buckets", "lengths")
    assert {key: again.result[key] for key in same} == {key: motley_run.result[key] for key in same}


def test_a_rescore_calls_no_model(motley_run: Run, models: Models) -> None:
    project, calls = motley_run.project, Call.objects.count()
    asked = len(models.asked)
    project.settings_json |= {"thresholds": {"final": 60, "refined": 40}}
    project.save()
    run = run_to_end(project, "rescore", judges=["judge-b", "judge-c"], min_judges=1)
    expected = recompute(verdict_rows(run), ["judge-b", "judge-c"], min_judges=1)
    assert len(scores_of(run)) == 40
    for row in scores_of(run):
        assert row.score == pytest.approx(expected.scores.get(row.duel_id))
        assert row.bucket == bucket(expected.scores.get(row.duel_id), final=60, refined=40)
    assert run.result["margin"] == pytest.approx(expected.margin)
    assert [judge["name"] for judge in run.result["judges"]] == ["judge-b", "judge-c"]
    assert (len(models.asked), Call.objects.count(), run.calls) == (asked, calls, 0)


def test_weights_change_the_score_but_not_the_metrics(models: Models) -> None:
    models.says |= dict.fromkeys(JUDGES, fair(won=1))
    project, _ = make_arena(prompts=1)
    run_to_end(project)
    before = Duel.objects.get()
    assert before.score == 60.0
    (after,) = scores_of(run_to_end(project, "rescore", weights={"correctness": 4}))
    assert after.score == 75.0 and after.metrics == before.metrics
    (without,) = scores_of(run_to_end(project, "rescore", weights={"correctness": 0}))
    assert without.score == 50.0
    # Other weights are another panel, whose scores change no duel.
    assert Duel.objects.get().score == 60.0


def test_weights_in_the_settings_can_name_some_dimensions(models: Models) -> None:
    models.says |= dict.fromkeys(JUDGES, fair(won=1))
    panel = {"judges": list(JUDGES), "weights": {"correctness": 4}}
    project, _ = make_arena(prompts=1, settings={"panel": panel})
    run = run_to_end(project)
    assert (run.state, Duel.objects.get().score) == ("succeeded", 75.0)


def test_a_persons_decision_survives_a_rescore(models: Models) -> None:
    project, _ = make_arena(prompts=1)
    run_to_end(project)
    sample = Sample.objects.get()
    access = access_to(project, make_member(project, role=Role.ADMIN))
    decide(access=access, sample_id=sample.pk, action=Action.APPROVE)
    project.settings_json |= {"thresholds": {"final": 100, "refined": 100}}
    project.save()
    models.says |= dict.fromkeys(JUDGES, against)
    run_to_end(project, "judge", fresh=True)
    scored = Sample.objects.get()
    assert (scored.pk, scored.score, scored.bucket) == (sample.pk, 0.0, "defeat")
    assert (scored.status, scored.decided_by) == (SampleStatus.APPROVED, access.user)
    assert scored.decisions.count() == 1


def test_without_clusters_the_gate_resamples_turns(models: Models) -> None:
    """With two pull requests, one of them lost, clusters give no certainty, but turns alone would."""
    project, prompts = make_arena(prompts=2, judges=("judge-a",), settings={"gate": {"cluster": False}})
    for n in range(10):
        history = [{"role": "user", "content": f"A later turn, number {n}."}]
        make_prompt(project, history=history, instance_id=prompts[0].instance_id)

    def reply(request: CompletionRequest) -> str:
        return str(against(request) if "rounding error 1" in str(request.messages) else fair()(request))

    models.says["judge-a"] = reply
    run = run_to_end(project)
    assert run.result["lcb"] == run.result["lcb_unclustered"] > 0
    assert run.result["reasons"][0] == "it rests on 2 pull requests, 10 are needed"
    project.settings_json = {**project.settings_json, "gate": {"cluster": True}}
    project.save()
    again = run_to_end(project, "rescore")
    assert again.result["lcb_unclustered"] == run.result["lcb"]
    assert again.result["lcb"] < 0 and not again.result["accepted"]
    assert f"the lower bound of {again.result['lcb']:.2f} points is not above 0" in again.result["reasons"]


def test_a_rescore_with_a_filter_does_not_change_other_duels(models: Models) -> None:
    project, prompts = make_arena(prompts=3)
    run = run_to_end(project)
    again = run_to_end(project, "rescore", filter={"instance_id": prompts[0].instance_id})
    assert again.result["done"] == 1
    assert Duel.objects.filter(run=run).count() == 2
    both = run_to_end(project, "rescore", run=str(run.pk), filter={"instance_id": prompts[0].instance_id})
    assert both.result["done"] == 1


def test_scores_stay_within_the_project(models: Models) -> None:
    mine, _ = make_arena(prompts=1)
    theirs, _ = make_arena(prompts=1)
    run_to_end(mine)
    run_to_end(theirs)
    assert run_to_end(mine, "rescore").result["done"] == 1
    assert _duels(mine) == _duels(theirs) == 1


def _duels(project: Project) -> int:
    return Duel.objects.of(project).count()
