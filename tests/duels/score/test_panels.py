"""A score belongs to its panel and run; the project says which panel's scores count."""

import random
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from curation.duels.models import Duel, Verdict
from curation.duels.score.counting import copy_scores
from curation.duels.score.models import Score, ScorePanel
from curation.duels.score.panels import counting_panel
from curation.llm.client.errors import Refused
from curation.llm.models import Endpoint
from curation.projects.models import AuditEntry, Project
from curation.runs.control import retry_failed
from curation.runs.models import Run
from curation.samples.models import Flag, Sample
from curation.samples.scores import priority_of
from judging.panel.scoring import Thresholds, bucket_for
from tests.driving import end
from tests.duels.running import (
    JUDGES,
    Models,
    against,
    fair,
    first,
    make_arena,
    page_of,
    prose,
    report,
    run_to_end,
    scores_of,
    serve,
    verdict,
)
from tests.factories import make_bearer, make_duel, make_endpoint, make_member, make_panel, make_project, make_user
from tests.world import world

pytestmark = pytest.mark.django_db(transaction=True)


@world
def arena(patched: pytest.MonkeyPatch) -> tuple[Project, Run, Run]:
    """Eight duels that a sound panel calls final, then a run with a judge that says nothing that parses."""
    models = serve(patched)
    project, _ = make_arena(prompts=8)
    sound = run_to_end(project)
    make_endpoint(project, "broken", model="fake/broken")
    models.says["broken"] = prose
    return project, sound, run_to_end(project, "judge", judges=["judge-a", "broken"], attempts=1)


@pytest.fixture
def headers(arena: tuple[Project, Run, Run]) -> dict[str, str]:
    return make_bearer(make_member(arena[0], make_user("ada"), "admin"))


def get(client: Client, headers: dict[str, str], path: str) -> Any:
    response = client.get(f"/api/v1{path}", headers=headers)
    assert response.status_code == 200, response.content
    return response.json()


def send(client: Client, headers: dict[str, str], method: str, path: str, body: object, status: int = 200) -> Any:
    response = getattr(client, method)(f"/api/v1{path}", body, content_type="application/json", headers=headers)
    assert response.status_code == status, response.content
    return response.json()


def buckets(project: Project) -> list[tuple[str, float | None]]:
    return list(Sample.objects.filter(project=project).order_by("id").values_list("bucket", "score"))


def test_a_run_with_a_broken_judge_changes_no_sample(arena: tuple[Project, Run, Run]) -> None:
    project, sound, broken = arena
    assert broken.result["buckets"]["unparsed"] == 8
    assert buckets(project) == [("final", 100.0)] * 8
    assert {duel.run for duel in Duel.objects.all()} == {sound}
    assert [(row.score, row.bucket) for row in scores_of(broken)] == [(None, "unparsed")] * 8
    assert [(row.score, row.bucket) for row in scores_of(sound)] == [(100.0, "final")] * 8
    assert counting_panel(project) == scores_of(sound)[0].panel != scores_of(broken)[0].panel


def test_links_of_a_run_show_its_own_figures(
    client: Client, arena: tuple[Project, Run, Run], headers: dict[str, str]
) -> None:
    project, sound, broken = arena
    slug = project.slug
    duel = Duel.objects.order_by("id")[0]
    for run, bucket, score in ((sound, "final", 100.0), (broken, "unparsed", None)):
        for noun in ("duels", "samples"):
            listed = get(client, headers, f"/projects/{slug}/{noun}?run={run.pk}&bucket={bucket}")["data"]
            assert [(row["score"], row["bucket"]) for row in listed] == [(score, bucket)] * 8, noun
            assert {row["panel"] for row in listed} == {scores_of(run)[0].panel.digest}
        shown = get(client, headers, f"/duels/{duel.pk}?run={run.pk}")
        assert (shown["score"], shown["run"], len(shown["scores"])) == (score, str(run.pk), 2)
        assert {row["judge"] for row in shown["verdicts"]} == set(run.params["judges"])
    assert get(client, headers, f"/projects/{slug}/samples?run={broken.pk}&bucket=final")["data"] == []
    assert get(client, headers, f"/projects/{slug}/samples?run={broken.pk}&score_min=1")["data"] == []
    first_page = get(client, headers, f"/projects/{slug}/samples?run={sound.pk}&sort=-score&limit=5")
    more = f"/projects/{slug}/samples?run={sound.pk}&sort=-score&limit=5&cursor={first_page['next_cursor']}"
    assert (len(first_page["data"]), len(get(client, headers, more)["data"])) == (5, 3)
    client.force_login(project.members.get().user)
    html = client.get(f"/p/{slug}/duels/{duel.pk}/?run={broken.pk}").content.decode()
    assert "It is not the score that counts." in html and "broken" in html
    assert client.get(f"/p/{slug}/duels/{duel.pk}/?run=999999").status_code == 404
    assert "this run changed no sample" in page_of(client, broken)
    assert "this run changed no sample" not in page_of(client, sound)


def test_another_panel_counts_after_a_preview_in_one_action(
    client: Client, arena: tuple[Project, Run, Run], headers: dict[str, str]
) -> None:
    project, sound, broken = arena
    panels = {panel["counts"]: panel for panel in get(client, headers, f"/projects/{project.slug}/panels")}
    assert [(panels[c]["duels"], panels[c]["runs"]) for c in (True, False)] == [
        (8, [str(sound.pk)]),
        (8, [str(broken.pk)]),
    ]
    Sample.objects.filter(pk__in=list(Sample.objects.order_by("id").values_list("pk", flat=True)[:3])).update(
        status="approved"
    )
    change = {"settings": {"panel": {"counting": panels[False]["id"]}}}
    path = f"/projects/{project.slug}"
    (move,) = send(client, headers, "post", f"{path}/settings/preview", change)["moves"]
    assert (move["before"], move["after"], move["samples"], move["decided"]) == ("final", "unparsed", 8, 3)
    client.force_login(project.members.get().user)
    assert client.get(move["examples"][0]).status_code == 200
    assert buckets(project) == [("final", 100.0)] * 8
    send(client, headers, "patch", path, change)
    assert buckets(project) == [("unparsed", None)] * 8
    assert Sample.objects.filter(status="approved").count() == 3
    entry = AuditEntry.objects.get(action="project.update")
    assert entry.data["moved"] == [{"before": "final", "after": "unparsed", "samples": 8}]
    send(client, headers, "patch", path, {"settings": {"panel": {"counting": None}}})
    assert buckets(project) == [("final", 100.0)] * 8
    unknown = send(client, headers, "patch", path, {"settings": {"panel": {"counting": "0123456789ab"}}}, 422)
    assert unknown["errors"] == [{"path": "settings.panel.counting", "message": "panel 0123456789ab does not exist"}]


def test_the_page_shows_what_would_move_before_it_saves(client: Client, arena: tuple[Project, Run, Run]) -> None:
    project, _, _ = arena
    client.force_login(make_member(project, role="admin"))
    panels = client.get(f"/p/{project.slug}/duels/panels/").context["panels"]
    patch = next(patch for use, patch in panels if not use.counts)
    url = f"/p/{project.slug}/settings/rules/change/"
    shown = client.post(url, {"patch": patch})
    assert [(m.before, m.after, m.samples) for m in shown.context["moves"]] == [("final", "unparsed", 8)]
    assert "Samples that would move" in shown.content.decode()
    assert buckets(project) == [("final", 100.0)] * 8
    assert client.post(url, {"patch": patch, "version": shown.context["version"], "save": "1"}).status_code == 302
    assert buckets(project) == [("unparsed", None)] * 8
    assert client.post(url, {"patch": patch, "version": "1", "save": "1"}).status_code == 412
    assert client.post(url, {"patch": "[]"}).status_code == 422


def test_new_thresholds_move_samples_and_no_run(
    client: Client, models: Models, arena: tuple[Project, Run, Run], headers: dict[str, str]
) -> None:
    project, sound, _ = arena
    path = f"/projects/{project.slug}"
    models.says |= dict.fromkeys(JUDGES, fair(won=3))
    run_to_end(project, "judge", fresh=True)
    assert buckets(project) == [("final", 80.0)] * 8
    change = {"settings": {"thresholds": {"final": 85}}}
    (move,) = send(client, headers, "post", f"{path}/settings/preview", change)["moves"]
    assert (move["before"], move["after"], move["samples"]) == ("final", "refined", 8)
    send(client, headers, "patch", path, change)
    assert buckets(project) == [("refined", 80.0)] * 8
    assert {row.bucket for row in Score.objects.filter(run=sound)} == {"final"}
    other = {"settings": {"runs": {"wait_minutes": 5}}}
    assert send(client, headers, "post", f"{path}/settings/preview", other)["moves"] == []


def test_a_duel_that_the_counting_panel_did_not_score_has_no_score(models: Models) -> None:
    project, prompts = make_arena(prompts=2)
    run_to_end(project, filter={"instance_id": prompts[0].instance_id})
    other = run_to_end(project, judges=["judge-a"])
    scored, unscored = Duel.objects.order_by("id").select_related("sample")
    assert (scored.score, scored.bucket) == (100.0, "final")
    assert (unscored.score, unscored.bucket, unscored.counting, unscored.run) == (None, "", None, other)
    assert unscored.sample is not None
    assert (unscored.sample.score, unscored.sample.bucket, unscored.sample.run) == (None, "", other)
    assert Score.objects.filter(run=other, score=100.0).count() == 2


def test_a_newer_run_of_the_counting_panel_gives_the_score_and_changes_no_verdict(models: Models) -> None:
    project, _ = make_arena(prompts=1)
    before = run_to_end(project)
    kept = list(Verdict.objects.filter(run=before).order_by("id").values())
    models.says |= dict.fromkeys(JUDGES, against)
    after = run_to_end(project, "judge", fresh=True)
    duel = Duel.objects.get()
    assert (duel.score, duel.run, duel.counting) == (0.0, after, scores_of(after)[0])
    assert [row.score for row in scores_of(before)] == [100.0]
    assert ScorePanel.objects.count() == 1
    reused = run_to_end(project, "judge")
    assert list(Verdict.objects.filter(run=before).order_by("id").values()) == kept
    assert Verdict.objects.filter(run=after).count() == 6 and not Verdict.objects.filter(run=reused).exists()
    # A run without `fresh` uses the newest verdicts of its judges.
    assert sorted(scores_of(reused)[0].verdicts) == sorted(scores_of(after)[0].verdicts)


def test_the_costs_of_judges_and_stages_add_up_to_the_run(models: Models, client: Client) -> None:
    project, _ = make_arena(prompts=3)
    Endpoint.objects.exclude(name="judge-c").update(price_in=Decimal(1), price_out=Decimal(2))
    make_endpoint(project, "both", model="fake/both", price_in=Decimal(3), price_out=Decimal(1))
    models.says["both"] = lambda request: fair()(request) if "<answer_1 " in str(request.messages) else "ls KING"
    models.says["judge-a"] = lambda request: prose(request) if request.attempt < 3 else fair()(request)
    models.says["judge-b"] = prose
    models.says["judge-c"] = lambda request: Refused("no") if "error 1" in str(request.messages) else fair()(request)
    judges = [*JUDGES, "both"]
    run = run_to_end(project, king_model="both", judges=judges, min_judges=2, attempts=3)
    assert run.items_failed
    models.says["judge-c"] = fair()
    retry_failed(run=run, user=None)
    run = end(run)
    rescored = run_to_end(project, "rescore", run=str(run.pk))
    for each in (run, rescored):
        costs = each.result["costs"]
        assert sum(Decimal(row["cost_known"]) for row in costs) == each.cost
        assert sum(row["cost_unknown_calls"] for row in costs) == each.cost_unknown_calls
        assert sum(row["calls"] for row in costs) == each.calls
        assert sum(row["tokens"] for row in costs) == each.tokens_in + each.tokens_out
        of_judges = {row["model"]: row for row in costs if row["stage"] == "judge"}
        for judge in each.result["judges"]:
            assert judge["cost"] == of_judges.get(judge["name"], {"cost": "0"})["cost"]
    assert run.cost and not rescored.cost
    calls = {judge["name"]: judge["calls"] for judge in run.result["judges"]}
    # Each judge reads three duels in two orders; two attempts of judge-c were refused and made again.
    assert calls == {"judge-a": 18, "judge-b": 18, "judge-c": 8, "both": 6}
    text, html = report(client, run), page_of(client, run)
    assert "| judge | judge-a | 18 | 1980 | $0.00216 |" in text
    assert "| judge | judge-c | 8 | 660 | unknown (6 calls of unknown cost) |" in text
    assert "$0.00216" in html and "unknown (6 calls of unknown cost)" in html


def test_every_pair_of_contestants_has_a_verdict_of_its_own(models: Models, client: Client) -> None:
    project, _ = make_arena(prompts=12)
    make_endpoint(project, "king-2", model="fake/king-2")
    models.says["king-2"] = lambda request: "THOUGHT: other.\n\n```bash\nls KING2\n```"

    def judge(request: Any) -> str:
        return str(against(request) if "KING2" in str(request.messages) else fair()(request))

    models.says |= dict.fromkeys(JUDGES, judge)
    run = run_to_end(project)
    assert len(run.result["verdicts"]) == 1 and run.result["margin"] == run.result["verdicts"][0]["margin"] == 100.0
    assert run.result["challenger"]["model"] == "challenger" and run.result["opponent"]["model"] == "king"
    run_to_end(project, king_model="king-2")
    run_to_end(project, mode=1)
    pooled = run_to_end(project, "rescore")
    result = pooled.result
    found = {(v["opponent"]["side"], v["opponent"]["model"]): (v["done"], v["margin"]) for v in result["verdicts"]}
    assert found == {("king", "king"): (12, 100.0), ("king", "king-2"): (12, -100.0), ("reference", ""): (12, 100.0)}
    assert (result["done"], result["margin"], result["accepted"], result["reasons"]) == (36, None, None, None)
    text = report(client, pooled)
    assert text.count("## Verdict ") == 3 and "compared with: the king and the reference" in text
    assert page_of(client, pooled).count("challenger minus") == 3


def test_a_model_under_another_name_and_replaced_answers_are_the_same_contestant(models: Models) -> None:
    project, _ = make_arena(prompts=2)
    models.says |= dict.fromkeys(JUDGES, against)
    run_to_end(project)
    make_endpoint(project, "renamed", model="fake/king")
    renamed = run_to_end(project, king_model="renamed")
    assert [(v["done"], v["opponent"]["model"]) for v in renamed.result["verdicts"]] == [(2, "king")]
    run_to_end(project, fresh=True)
    everything = run_to_end(project, "rescore")
    assert [v["done"] for v in everything.result["verdicts"]] == [4]


def test_a_report_names_mode_panel_instructions_and_reasons(models: Models, client: Client) -> None:
    models.says["judge-b"] = lambda request: verdict(1, 1, 1, 1, 1, reason="because of `this`")
    models.says["judge-c"] = prose
    project, _ = make_arena(prompts=1)
    run = run_to_end(project, min_judges=1, attempts=1)
    digest = scores_of(run)[0].panel.digest
    text = report(client, run)
    for part in (
        "- compared with: the king",
        f"- panel: {digest}: judge-a (",
        "; both orders; 1 needed; equal weights",
        "- judge instructions: version 0 (",
        "- challenger: challenger, instructions version 0 (",
        "- opponent: king, instructions version 0 (",
        "- judge-b, king first: because of \\`this\\`",
        "- judge-c, challenger first: unparsed: no JSON object",
    ):
        assert part in text, part
    html = page_of(client, run)
    words, _, fingerprints = html.partition('<summary class="muted">Fingerprints</summary>')
    for part in (
        "<dt>Compared with</dt><dd>the king</dd>",
        "<dt>Panel</dt><dd>judge-a, judge-b, judge-c; both orders; 1 needed; equal weights</dd>",
        "challenger: challenger, instructions version 0</span>",
    ):
        assert part in words, part
    assert digest not in words and digest in fingerprints


def test_a_rescore_with_fewer_judges_stands_beside(models: Models) -> None:
    models.says["judge-a"] = first
    project, _ = make_arena(prompts=1)
    run = run_to_end(project)
    beside = run_to_end(project, "rescore", judges=["judge-b", "judge-c"])
    assert [row.score for row in scores_of(beside)] == [100.0]
    duel = Duel.objects.get()
    assert duel.run == run and duel.score == pytest.approx(250 / 3)


def test_deleted_models_are_refused_and_named(
    client: Client, arena: tuple[Project, Run, Run], headers: dict[str, str]
) -> None:
    project = arena[0]
    path = f"/projects/{project.slug}"
    for setting in ({"panel": {"judges": ["judge-a", "nobody"]}}, {"generation": {"king_model": "nobody"}}):
        refused = send(client, headers, "patch", path, {"settings": setting}, 422)
        assert refused["code"] == "unknown_name" and "nobody does not exist" in refused["detail"]
    assert get(client, headers, path)["missing"] == []
    Endpoint.objects.filter(project=project, name="judge-b").delete()
    assert get(client, headers, path)["missing"] == [{"path": "panel.judges", "thing": "judge judge-b"}]
    # Unchanged values are not refused.
    send(client, headers, "patch", path, {"settings": {"runs": {"wait_minutes": 5}}})
    client.force_login(project.members.get().user)
    assert "judge judge-b no longer exists" in client.get(f"/p/{project.slug}/settings/rules/").content.decode()


def test_bucket_and_priority_in_sql_are_those_of_the_functions() -> None:
    project = make_project()
    drawn = random.Random(3)
    for _ in range(60):
        score = drawn.choice([None, 80.0, 66.0, 79.9999, drawn.uniform(0, 100)])
        flags = drawn.choice([0, Flag.FLIP, Flag.LEAK, Flag.INFRA, Flag.LEAK | Flag.FLIP, Flag.INJECTION])
        scores = Score.objects.filter(duel=make_duel(project))
        scores.update(score=score, score_key=-1 if score is None else score, flags=flags, spread=drawn.uniform(0, 100))
    assert Score.objects.filter(panel=make_panel(project)).count() == 60
    copy_scores(project)
    limits = Thresholds()
    for duel in Duel.objects.select_related("sample"):
        assert duel.sample is not None
        names = duel.flag_names
        bucket = bucket_for(duel.score, flags=names, thresholds=limits)
        priority = priority_of(
            score=duel.score,
            thresholds=limits,
            flipped="flip" in names,
            spread=duel.spread,
            held=not {"leak", "injection"}.isdisjoint(names),
        )
        assert (duel.bucket, duel.sample.bucket) == (bucket, bucket)
        assert duel.sample.priority == pytest.approx(priority)
        assert (duel.sample.score, duel.sample.flags) == (duel.score, duel.flags)
