"""What blind review hides in runs, scenarios, evaluations and lists, and that the log says which curators looked."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from curation.duels.models import Duel
from curation.evaluations.models import Episode, EpisodeText, EvaluatedModel, Evaluation
from curation.projects.access import Access
from curation.projects.models import AuditEntry, Project, Role
from curation.review.decisions.decide import decide
from curation.runs.models import Call, Item, Run
from curation.samples.models import Sample, Unblinding
from curation.trajectories.models import Trajectory
from tests.factories import make_bearer, make_duel, make_member, make_scenario, make_trajectory
from tests.review.rows import reviewer_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(project: Project) -> Run:
    found = Run.objects.create(
        project=project,
        kind="rollout",
        state="succeeded",
        params={"model": "a"},
        result={"kept": 1, "trajectories": 1},
        items_done=1,
    )
    item = Item.objects.create(run=found, stage="rollout", key="1:0", state="done", result={"outcome": "solved"})
    Call.objects.create(project=project, run=found, item=item, endpoint_name="a", content_hash="0" * 64, tokens_out=77)
    return found


def get(user: Access, path: str) -> dict[str, Any]:
    found: dict[str, Any] = Client().get(f"/api/v1/{path}", headers=make_bearer(user.user)).json()
    return found


def page(client: Client, name: str, *args: object) -> str:
    return " ".join(client.get(reverse(name, args=["billing", *args])).content.decode().split())


def test_a_run_shows_its_state_and_no_result_until_all_samples_are_decided(
    client: Client, me: Access, project: Project, run: Run
) -> None:
    row = make_trajectory(project, run=run)
    shown = page(client, "run-page", run.pk)
    assert "1 of 1 episode is kept" not in shown and "Outcomes" not in shown
    assert "You review blind, and samples of the project are pending." in shown and "1 item done." in shown
    assert get(me, f"runs/{run.pk}")["result"] is None and get(me, f"runs/{run.pk}")["state"] == "succeeded"
    assert get(me, "projects/billing/runs")["data"][0]["result"] is None
    for name in ("items", "calls"):
        assert get(me, f"runs/{run.pk}/{name}")["code"] == "blind"
        assert client.get(reverse(f"run-{name}", args=["billing", run.pk])).status_code == 403
    assert row.sample is not None
    decide(access=me, sample_id=row.sample.pk, action="approve")
    assert "1 of 1 episode is kept" in page(client, "run-page", run.pk)
    assert get(me, f"runs/{run.pk}")["result"] == {"kept": 1, "trajectories": 1}
    assert get(me, f"runs/{run.pk}/items")["data"][0]["result"] == {"outcome": "solved"}
    assert get(me, f"runs/{run.pk}/calls")["data"][0]["tokens_out"] == 77


def test_a_run_that_tells_nothing_of_samples_is_open(me: Access, project: Project) -> None:
    make_duel(project)
    gate = Run.objects.create(project=project, kind="gate", state="succeeded", result={"admitted": 3, "rejected": 0})
    assert get(me, f"runs/{gate.pk}")["result"] == {"admitted": 3, "rejected": 0}
    assert get(me, f"runs/{gate.pk}/items")["data"] == []


@pytest.mark.parametrize("role", [Role.REVIEWER, Role.VIEWER])
def test_an_estimate_needs_the_scopes_of_the_launch(project: Project, role: str) -> None:
    """By a filter of the score it would find the score of every pending sample."""
    make_duel(project, score=71.4)
    body = {"kind": "judge", "params": {"filter": {"score_min": 71.3}}}
    headers = make_bearer(make_member(project, role=role))
    answer = Client().post("/api/v1/projects/billing/runs/estimate", body, "application/json", headers=headers)
    assert answer.status_code == 403 and "`run`" in answer.json()["detail"]


def test_a_decided_trajectory_hides_the_outcome_of_a_pending_sibling(
    client: Client, me: Access, project: Project
) -> None:
    scenario = make_scenario(project)
    mine, other, third = (
        make_trajectory(project, scenario, outcome=outcome, model=model, sample_index=index)
        for index, (outcome, model) in enumerate(
            [("solved", "operator-a"), ("solved", "operator-b"), ("checker_failed", "operator-c")]
        )
    )
    assert mine.sample is not None and other.sample is not None
    decide(access=me, sample_id=mine.sample.pk, action="approve")
    for shown in (page(client, "trajectory-page", mine.pk), page(client, "trajectory-compare", mine.pk)):
        assert "operator-b" not in shown and "operator-c" not in shown and "Checker failed" not in shown
        assert f"?with={other.pk}" in shown or f"?with={third.pk}" in shown
    decide(access=me, sample_id=other.sample.pk, action="approve")
    shown = page(client, "trajectory-page", mine.pk)
    assert "operator-b" in shown and "operator-c" not in shown


def test_the_kept_rate_of_a_scenario_counts_decided_samples(client: Client, me: Access, project: Project) -> None:
    scenario = make_scenario(project)
    rows = [make_trajectory(project, scenario, model=f"operator-{n}", sample_index=n) for n in range(2)]
    measured = get(me, f"scenarios/{scenario.pk}")
    assert measured["operators"] == [] and measured["measured"]["tried"] == 0
    assert "operator-0" not in page(client, "scenario-page", scenario.pk)
    assert get(me, "projects/billing/scenarios")["data"][0]["measured"]["tried"] == 0
    coverage = "projects/billing/scenarios/coverage"
    assert get(me, coverage)["kept"] == 0
    for query in ("solved_by=everybody", "sort=-kept_rate"):
        assert get(me, f"projects/billing/scenarios?{query}")["code"] == "blind"
        assert "You review blind" in page_of_list(client, query)
    assert rows[0].sample is not None and rows[1].sample is not None
    decide(access=me, sample_id=rows[0].sample.pk, action="approve")
    assert get(me, f"scenarios/{scenario.pk}")["measured"]["tried"] == 1
    assert get(me, coverage)["kept"] == 1
    decide(access=me, sample_id=rows[1].sample.pk, action="approve")
    assert [one["model"] for one in get(me, f"scenarios/{scenario.pk}")["operators"]] == ["operator-0", "operator-1"]
    assert "data" in get(me, "projects/billing/scenarios?solved_by=everybody")


def page_of_list(client: Client, query: str) -> str:
    return client.get(f"{reverse('scenario-list', args=['billing'])}?{query}").content.decode()


def test_an_episode_and_its_evaluation_open_when_its_sample_is_decided(
    client: Client, me: Access, project: Project
) -> None:
    row = make_trajectory(project)
    live = Run.objects.create(project=project, kind="evaluate", state="succeeded")
    evaluation = Evaluation.objects.create(project=project, run=live, kind="live")
    by = EvaluatedModel.objects.create(evaluation=evaluation, place=0, name="tuned")
    episode = Episode.objects.create(evaluation=evaluation, by=by, key="seed 0", trajectory=row, total_reward=8.75)
    EpisodeText.objects.create(episode=episode)
    assert get(me, f"evaluations/{evaluation.pk}/episodes")["data"] == []
    assert "8.75" not in page(client, "evaluation-episodes", evaluation.pk)
    refused = [f"episodes/{episode.pk}", f"evaluations/{evaluation.pk}", f"evaluations/{evaluation.pk}/result.json"]
    assert [get(me, path)["code"] for path in refused] == ["blind"] * 3
    for name, args in (("evaluation-episode", [evaluation.pk, episode.pk]), ("evaluation-page", [evaluation.pk])):
        assert client.get(reverse(name, args=["billing", *args])).status_code == 403
    assert get(me, "projects/billing/evaluations")["data"] == []
    assert row.sample is not None
    decide(access=me, sample_id=row.sample.pk, action="approve")
    assert get(me, f"episodes/{episode.pk}")["total_reward"] == 8.75
    assert "8.75" in page(client, "evaluation-episodes", evaluation.pk)


LISTS = {"samples": "sample-list", "duels": "duel-list", "trajectories": "trajectory-list", "verdicts": ""}


@pytest.mark.parametrize("name", LISTS)
def test_a_list_that_shows_what_is_hidden_says_that_a_curator_looked(project: Project, name: str) -> None:
    curator = reviewer_of(project, role=Role.CURATOR)
    for _ in range(2):
        make_duel(project)
        make_trajectory(project)
    client = Client()
    client.force_login(curator.user)
    for _ in range(2):
        if LISTS[name]:
            assert client.get(reverse(LISTS[name], args=["billing"])).status_code == 200
        assert "data" in get(curator, f"projects/billing/{name}")
    kinds = {"samples": ["turn", "trajectory"], "trajectories": ["trajectory"]}.get(name, ["turn"])
    seen = set(Sample.objects.filter(kind__in=kinds).values_list("pk", flat=True))
    assert set(Unblinding.objects.filter(user=curator.user).values_list("sample", flat=True)) == seen
    entry = AuditEntry.objects.get(action="sample.look")
    assert entry.actor == curator.user and entry.subject == f"{len(seen)} samples"
    assert set(entry.data["samples"]) == {str(pk) for pk in seen}


def test_a_duel_without_a_sample_tells_nothing_of_a_pending_one(client: Client, me: Access, project: Project) -> None:
    """A control duel has the king's answer of a pending sample, and an unscored duel is in the queue tomorrow."""
    pending = make_duel(project, king="the answer of the king")
    control, unscored = make_duel(project, king="the answer of the king"), make_duel(project)
    Duel.everything.filter(pk=control.pk).update(control="fault", expected=1, sample=None)
    Duel.objects.filter(pk=unscored.pk).update(sample=None)
    Sample.objects.exclude(duel=pending).delete()
    lists = [f"projects/billing/{noun}{query}" for noun in ("duels", "verdicts") for query in ("?control=true", "")]
    assert [get(me, path)["data"] for path in lists] == [[]] * 4
    assert "acme__billing" not in client.get("/p/billing/duels/?control=true").content.decode()
    assert [get(me, f"duels/{duel.pk}")["code"] for duel in (control, unscored)] == ["blind"] * 2
    assert client.get(reverse("duel-page", args=["billing", unscored.pk])).status_code == 403
    assert pending.sample is not None
    decide(access=me, sample_id=pending.sample.pk, action="approve")
    assert [row["id"] for row in get(me, lists[0])["data"]] == [str(control.pk)]
    assert [row["id"] for row in get(me, lists[1])["data"]] == [str(pending.pk)]
    assert "acme__billing" in client.get("/p/billing/duels/?control=true").content.decode()
    assert get(me, f"duels/{control.pk}")["king"]["text"] == "the answer of the king"
    assert get(me, f"duels/{unscored.pk}")["code"] == "blind"


@pytest.mark.parametrize("role", [Role.VIEWER, Role.REVIEWER])
def test_a_list_notes_no_look_of_others(project: Project, role: str) -> None:
    make_duel(project)
    Trajectory.objects.all().delete()
    reader = reviewer_of(project, role=role)
    for name in LISTS:
        assert "data" in get(reader, f"projects/billing/{name}")
    assert not Unblinding.objects.exists() and not AuditEntry.objects.filter(action="sample.look").exists()
