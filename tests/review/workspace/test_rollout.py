"""Trajectories in review: a session instead of two answers, blind until the decision."""

import json
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from curation.projects.access import Access
from curation.projects.models import Project, Role, Scope
from curation.review.bulk.decide import decide_selected
from curation.review.decisions.decide import decide
from curation.review.decisions.revise import revise
from curation.review.decisions.undo import undo
from curation.review.models import Decision, Draft, Lease
from curation.runs.models import Run
from curation.samples.models import Flag, Sample
from curation.trajectories.models import Trajectory
from curation.web.problems import Invalid
from tests.factories import (
    make_bearer,
    make_duel,
    make_endpoint,
    make_member,
    make_run,
    make_scenario,
    make_trajectory,
    make_turns,
    make_user,
)
from tests.review.browsing import HTMX, body, first, form, open_queue, url
from tests.review.rows import sample_of

pytestmark = pytest.mark.django_db
TELLING = ("Solved", "Checker failed", "operator-a", "the checker said so", "not kept", "infra", "Open the trajectory")


def rolled_out(project: Project, **values: Any) -> tuple[Trajectory, Sample]:
    row = make_trajectory(project, **{"checker_output": "the checker said so", **values})
    assert row.sample is not None
    return row, row.sample


def page_of(client: Client, sample: Sample) -> str:
    return " ".join(body(client.post(url("sample-page", sample.pk))).split())


def test_the_queue_shows_the_session_and_hides_the_verdict(client: Client, me: Access, project: Project) -> None:
    scenario = make_scenario(project, "leave a greeting")
    sample = {"priority": 1.0, "flags": int(Flag.INFRA | Flag.LOOP)}
    row, _ = rolled_out(project, scenario=scenario, outcome="checker_failed", sample=sample)
    rolled_out(project, scenario=scenario, commands=("todo --help", "uname"), sample_index=1)
    page = body(open_queue(client))
    assert "greeting.txt in your home" in page and "uname" in page and "First difference: step 2" in page
    assert "leave a greeting" in page and "loop" in page and "shown after the decision" in page
    assert [word for word in TELLING if word in page] == []
    assert Lease.objects.get().sample_id == row.sample_id
    assert 'data-key="e"' in page and "To be re-run" in page
    assert 'data-key="d"' not in page and "Pick left" not in page and "Find in the history" not in page


def test_after_the_decision_outcome_checker_and_siblings_are_shown(
    client: Client, me: Access, project: Project
) -> None:
    scenario = make_scenario(project)
    row, sample = rolled_out(project, scenario=scenario, outcome="checker_failed", replay="differs")
    _, other = rolled_out(project, scenario=scenario, model="operator-b", sample_index=1)
    decide(access=me, sample_id=sample.pk, action="reject", reason="wrong")
    assert "operator-b" not in page_of(client, sample), "the sibling is pending"
    decide(access=me, sample_id=other.pk, action="approve")
    page = page_of(client, sample)
    assert "Checker failed" in page and "the checker said so" in page and "operator-b" in page
    assert "Replay differs" in page and f"/p/billing/trajectories/{row.pk}/" in page


def test_a_project_that_is_not_blind_shows_the_outcome_at_once(client: Client, me: Access, project: Project) -> None:
    project.settings_json = {"review": {"blind": False}}
    project.save()
    _, sample = rolled_out(project)
    page = page_of(client, sample)
    assert "Solved" in page and "the checker said so" in page


def test_another_sibling_can_be_compared_and_stays_blind(client: Client, me: Access, project: Project) -> None:
    scenario = make_scenario(project)
    _, sample = rolled_out(project, scenario=scenario)
    rolled_out(project, scenario=scenario, commands=("uname",), sample_index=1)
    third, _ = rolled_out(project, scenario=scenario, commands=("whoami",), outcome="checker_failed", sample_index=2)
    part = body(client.get(url("sample-sibling", sample.pk) + f"?with={third.pk}", headers=HTMX))
    assert "whoami" in part and "uname" not in part and [word for word in TELLING if word in part] == []
    decide(access=me, sample_id=sample.pk, action="approve")
    part = body(client.get(url("sample-sibling", sample.pk) + f"?with={third.pk}", headers=HTMX))
    assert "whoami" in part and "Checker failed" not in part, "the sibling is pending"
    assert third.sample is not None
    decide(access=me, sample_id=third.sample.pk, action="reject", reason="wrong")
    part = body(client.get(url("sample-sibling", sample.pk) + f"?with={third.pk}", headers=HTMX))
    assert "Checker failed" in part
    duel = sample_of(make_duel(project))
    assert client.get(url("sample-sibling", duel.pk)).status_code == 404


def test_the_panel_is_blind_too(client: Client, me: Access, project: Project) -> None:
    _, sample = rolled_out(project)
    panel = body(client.get(url("sample-panel", sample.pk), headers=HTMX))
    assert "greeting.txt in your home" in panel and [word for word in TELLING if word in panel] == []
    assert not Lease.objects.exists()
    decide(access=me, sample_id=sample.pk, action="approve")
    assert "Solved" in body(client.get(url("sample-panel", sample.pk), headers=HTMX))


@pytest.mark.parametrize(
    ("action", "status"),
    [("approve", "approved"), ("reject", "rejected"), ("refine", "needs_refine"), ("skip", "pending")],
)
def test_each_decision_is_taken_from_the_page(
    client: Client, me: Access, project: Project, action: str, status: str
) -> None:
    _, sample = rolled_out(project)
    open_queue(client)
    answer = client.post(url("sample-decide", sample.pk), form(sample, action=action, queue=""), headers=HTMX)
    assert answer.status_code == 200
    line = Decision.objects.get()
    assert (line.action, line.pick, line.seat) == (action, "", "")
    assert Sample.objects.get().status == status


def test_refining_links_to_a_new_rollout(client: Client, me: Access, project: Project) -> None:
    row, sample = rolled_out(project)
    decide(access=me, sample_id=sample.pk, action="refine")
    client.force_login(make_member(project, role=Role.CURATOR))
    page = page_of(client, sample)
    assert "Roll its scenario out again" in page
    link = first(r'href="(/p/billing/runs/new/[^"]*)"', page)
    assert "kind=rollout" in link and f"{row.scenario_id}" in link
    with pytest.raises(Invalid, match="Roll its scenario out again"):
        revise(access=me, sample_id=sample.pk, text="echo better")
    assert client.get(url("answer-editor", sample.pk)).status_code == 404


def test_a_reviewer_is_told_who_rolls_out_again_and_where_they_find_it(
    client: Client, me: Access, project: Project
) -> None:
    _, sample = rolled_out(project)
    decide(access=me, sample_id=sample.pk, action="refine")
    page = body(client.get(f"/p/billing/samples/{sample.pk}/"))
    listed = "/p/billing/samples/?kind=trajectory&amp;status=needs_refine"
    assert "A curator rolls its scenario out again" in page and f'href="{listed}"' in page
    assert "runs/new" not in page.split('id="side"')[1]
    client.force_login(make_member(project, role=Role.CURATOR))
    assert f'href="{listed}"' in body(client.get("/p/billing/trajectories/"))
    assert f'id="sample-{sample.pk}"' in body(client.get(listed.replace("&amp;", "&")))


def test_a_preference_is_refused(me: Access, project: Project) -> None:
    _, sample = rolled_out(project)
    with pytest.raises(Invalid, match="no sides"):
        decide(access=me, sample_id=sample.pk, action="approve", preference="left")
    assert not Decision.objects.exists()


def test_undo_drafts_and_bulk_work_as_for_duels(client: Client, me: Access, project: Project) -> None:
    _, sample = rolled_out(project)
    client.post(url("sample-draft", sample.pk), {"comment": "loops a lot"})
    assert Draft.objects.get().comment == "loops a lot" and "loops a lot" in page_of(client, sample)
    decide(access=me, sample_id=sample.pk, action="approve")
    undo(access=me)
    assert Sample.objects.get().status == "pending"
    duel = sample_of(make_duel(project))
    done = decide_selected(access=me, action="approve", ids=[str(sample.pk), str(duel.pk)])
    assert done.changed == 2
    assert dict(Decision.objects.filter(batch=done.batch).values_list("sample", "pick")) == {
        sample.pk: "",
        duel.pk: "candidate",
    }


def test_a_long_session_opens_quickly_and_reads_a_bounded_number_of_rows(
    client: Client, me: Access, project: Project
) -> None:
    scenario = make_scenario(project)
    turns = make_turns(*(f"echo {n}" for n in range(1500)), outputs=("x" * 1_000_000,))
    _, sample = rolled_out(project, scenario=scenario, turns=turns)
    for index in range(1, 30):
        rolled_out(project, scenario=scenario, sample_index=index)
    with CaptureQueriesContext(connection) as queries:
        page = body(client.post(url("sample-page", sample.pk)))
    assert len(queries) < 40 and len(page) < 200_000 and "steps folded" in page


def test_a_sample_without_its_trajectory(client: Client, me: Access, project: Project) -> None:
    row, sample = rolled_out(project)
    row.delete()
    assert "has neither answers nor a trajectory" in page_of(client, sample)


def test_rest_has_the_trajectory_and_its_turns(client: Client, me: Access, project: Project) -> None:
    row, sample = rolled_out(project)
    duel = sample_of(make_duel(project))
    bearer = make_bearer(me.user, Scope.READ, Scope.REVIEW)
    shown = client.get(f"/api/v1/samples/{sample.pk}", headers=bearer).json()
    assert (shown["kind"], shown["trajectory"], shown["duel"]) == ("trajectory", str(row.pk), None)
    assert shown["answers"] is None and [turn["kind"] for turn in shown["turns"]][:2] == ["orientation", "action"]
    shown = client.get(f"/api/v1/samples/{duel.pk}", headers=bearer).json()
    assert shown["trajectory"] is None and shown["turns"] is None and shown["left"]
    rows = client.get("/api/v1/projects/billing/samples?kind=trajectory", headers=bearer).json()["data"]
    assert [one["trajectory"] for one in rows] == [str(row.pk)]
    given = json.dumps({"filter": {"kind": "trajectory"}})
    path = "/api/v1/projects/billing/queue/next"
    taken = client.post(path, given, content_type="application/json", headers=bearer).json()["sample"]
    assert taken["trajectory"] == str(row.pk) and taken["turns"]


def test_commands_and_outputs_are_found_in_the_samples_list(client: Client, me: Access, project: Project) -> None:
    _, sample = rolled_out(project, commands=("todo frobnicate",), outputs=("gadgetry ready\n",))
    rolled_out(project)
    for text in ("frobnicate", "gadgetry"):
        page = body(client.get(url("sample-list") + f"?text={text}"))
        assert f'id="sample-{sample.pk}"' in page
        assert page.count("<tr data-row") == 1


def test_a_new_rollout_is_shown_beside_the_one_that_needed_it(client: Client, me: Access, project: Project) -> None:
    scenario = make_scenario(project, "leave a greeting")
    run = make_run(project, kind="rollout", params={"model": "operator-a", "samples": 3, "max_turns": 9, "filter": {}})
    _, sample = rolled_out(project, scenario=scenario, outcome="checker_failed", run=run, sample={"score": 20.0})
    rolled_out(project, scenario=scenario, sample_index=1)
    decide(access=me, sample_id=sample.pk, action="refine")
    assert "Rolled out again" not in page_of(client, sample), "the sibling was there before"
    newer, again = rolled_out(project, scenario=scenario, sample_index=2, sample={"score": 90.0})
    page = page_of(client, sample)
    assert "Rolled out again" in page and "90.0" not in page and f">{again.pk}</a>" in page
    Sample.objects.filter(pk=again.pk).update(status="approved")
    page = page_of(client, sample)
    assert "20.0" in page and "90.0" in page and newer.outcome == "solved"
    assert client.post(url("sample-rollout", sample.pk)).status_code == 403, "a reviewer launches no runs"
    make_endpoint(project, "operator-a", model="fake/operator")
    client.force_login(make_member(project, make_user("curator"), Role.CURATOR))
    answer = client.post(url("sample-rollout", sample.pk))
    assert answer.status_code == 302, answer.content
    launched = Run.objects.latest("pk")
    wanted = {"model": "operator-a", "samples": 1, "max_turns": 9, "filter": {"id": str(scenario.pk)}}
    assert wanted.items() <= launched.params.items() and launched.cloned_from_id == run.pk


def test_a_chosen_view_stays_for_a_reload_and_for_the_next_sample(client: Client, me: Access, project: Project) -> None:
    scenario = make_scenario(project)
    for number in range(2):
        rolled_out(project, scenario=scenario, sample_index=number)
    page = open_queue(client)
    assert "<h2>Terminal</h2>" in body(page)
    shown = Lease.objects.get().sample
    here = f"http://testserver{url('queue')}?order=newest"
    part = client.get(f"{url('sample-sibling', shown.pk)}?view=conversation", headers=HTMX | {"HX-Current-URL": here})
    assert part["HX-Replace-Url"] == f"{url('queue')}?order=newest&view=conversation"
    assert "<h2>Conversation</h2>" in body(client.get(part["HX-Replace-Url"]))
    decided = form(shown, action="approve", queue="order=newest", view="conversation")
    after = client.post(url("sample-decide", shown.pk), decided, headers=HTMX)
    assert after["HX-Replace-Url"] == f"{url('queue')}?order=newest&view=conversation"
    assert "<h2>Conversation</h2>" in body(after) and 'name="view" value="conversation"' in body(after)
