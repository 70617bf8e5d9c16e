"""The pages of runs: their content, their actions, their refusals."""

from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from curation.projects.models import Project
from curation.runs.models import Call, Item, Run
from tests.factories import (
    make_endpoint,
    make_member,
    make_project,
    make_prompt,
    make_pull_request,
    make_run,
    make_user,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    project = make_project("acme")
    for name in ("king", "challenger", "judge-careful"):
        make_endpoint(project, name, model=f"scripted/{name}")
    prompt = make_prompt(project)
    make_pull_request(project, prompt.instance_id)
    return project


@pytest.fixture
def curator(client: Client, project: Project) -> Client:
    client.force_login(make_member(project, make_user(), "curator"))
    return client


class TestLaunch:
    FORM = {
        "king_model": "king",
        "challenger_model": "challenger",
        "judges": ["judge-careful"],
        "mode": "2",
        "swap": "on",
    }

    def test_the_form_is_made_from_the_kinds_parameters(self, curator: Client) -> None:
        page = curator.get("/p/acme/runs/new/?kind=duel").content.decode()
        for field in ("king_model", "challenger_model", "judges", "swap", "min_judges", "budget"):
            assert f'name="{field}"' in page

    def test_launching_makes_a_run_and_leads_to_its_page(self, curator: Client) -> None:
        answer = curator.post("/p/acme/runs/new/?kind=duel", self.FORM)
        run = Run.objects.get()
        assert answer["Location"] == f"/p/acme/runs/{run.pk}/"
        assert (run.kind, run.params["judges"], run.state) == ("duel", ["judge-careful"], "queued")
        assert run.items.count() == 1

    def test_what_is_wrong_is_said_at_its_field_and_nothing_is_launched(self, curator: Client) -> None:
        answer = curator.post("/p/acme/runs/new/?kind=duel", {**self.FORM, "min_judges": "4", "filter.bucket": "nope"})
        assert answer.status_code == 422
        assert "&#x27;nope&#x27; is not one of final" in answer.content.decode()
        answer = curator.post("/p/acme/runs/new/?kind=duel", {**self.FORM, "min_judges": "4"})
        assert "at most 1" in answer.content.decode()
        assert not Run.objects.exists()

    def test_a_filter_is_typed_field_by_field_and_comes_back_whole(self, curator: Client) -> None:
        chosen = {"filter.repo": ["acme/billing, acme/shop", "acme/billing"], "filter.source": "", "filter.text": ""}
        curator.post("/p/acme/runs/new/?kind=duel", {**self.FORM, **chosen})
        run = Run.objects.get()
        assert run.params["filter"] == {"repo": [["acme/billing", "acme/shop"], ["acme/billing"]]}
        again = curator.get(f"/p/acme/runs/new/?kind=duel&from={run.pk}").content.decode()
        assert 'name="filter.repo" value="acme/billing,acme/shop"' in again
        assert 'name="filter.repo" value="acme/billing"' in again
        shown = "/p/acme/prompts/?repo=acme/billing,acme/shop&amp;repo=acme/billing"
        words = "repository acme/billing or acme/shop; repository acme/billing"
        assert f'<a href="{shown}">{words}</a>' in curator.get(f"/p/acme/runs/{run.pk}/").content.decode()

    def test_kinds_are_grouped_and_what_has_defaults_is_folded(self, curator: Client) -> None:
        page = curator.get("/p/acme/runs/new/?kind=king").content.decode()
        assert page.index("<h2>Duels</h2>") < page.index("A model answers prompts from the history alone.")
        assert "Advanced <span" in page and "attempts 3, ask the model again off" in page

    def test_what_the_project_has_no_default_for_is_not_optional(self, curator: Client, project: Project) -> None:
        def optional() -> list[str]:
            page = curator.get("/p/acme/runs/new/?kind=duel").content.decode()
            names = ("King model", "Challenger model")
            return [name for name in names if f'{name} <span class="field__optional">' in page]

        assert optional() == []
        refused = curator.post("/p/acme/runs/new/?kind=duel", {"mode": "2"})
        assert refused.status_code == 422
        missing = [name for name, errors in refused.context["form"].errors.items() if "required" in str(errors)]
        assert missing == ["king_model", "challenger_model", "judges"]
        # The source's own turn needs no king.
        against_source = {"mode": "1", "challenger_model": "challenger", "judges": "judge-careful"}
        assert curator.post("/p/acme/runs/new/?kind=duel", against_source).status_code == 302
        project.settings_json = {"generation": {"king_model": "king", "challenger_model": "challenger"}}
        project.save()
        assert optional() == ["King model", "Challenger model"]

    def test_values_of_zero_are_in_the_summary(self, curator: Client) -> None:
        page = curator.get("/p/acme/runs/new/?kind=author").content.decode()
        again = make_run(Project.objects.get(), kind="author", params={"model": "king", "repairs": 0})
        assert "repairs 2" in page
        assert "repairs 0" in curator.get(f"/p/acme/runs/new/?kind=author&from={again.pk}").content.decode()

    def test_the_estimate_counts_calls(self, curator: Client) -> None:
        fragment = curator.post("/p/acme/runs/new/estimate/?kind=duel", self.FORM).content.decode()
        # King, challenger, and one judge that reads the challenger for leaks, and the duel and two controls in both
        # orders.
        assert '<span class="figure__value">9</span>' in fragment


class TestPage:
    def test_it_begins_with_one_sentence(self, curator: Client, project: Project) -> None:
        verdict = {"accepted": True, "margin": 38.888, "lcb": 31.75, "parsed": 9, "done": 9}
        params = {"challenger_model": "challenger", "judges": ["judge-careful"]}
        of_duel: dict[str, Any] = {"kind": "duel", "params": params}
        sentences: dict[str, dict[str, Any]] = {
            "Accepted: the challenger leads by 38.9 points; the lower bound is 31.8.": {"result": verdict},
            "Not accepted: the challenger is behind by 4.0 points; the lower bound is -9.0.": {
                "result": verdict | {"accepted": False, "margin": -4, "lcb": -9}
            },
            "The run failed after 7 of 9 items.": {
                "state": "failed",
                "items_done": 6,
                "items_failed": 1,
                "items_total": 9,
            },
            "Waiting for a worker.": {"state": "queued"},
        }
        for sentence, fields in sentences.items():
            run = make_run(project, **{**of_duel, "state": "succeeded", **fields})
            assert f'<p class="lead">{sentence}</p>' in curator.get(f"/p/acme/runs/{run.pk}/").content.decode()

    def test_a_live_run_asks_again_and_an_ended_one_does_not(self, curator: Client, project: Project) -> None:
        live = make_run(project, params={"model": "king"}, kind="king", state="running", stage="king")
        ended = make_run(project, params={"model": "king"}, kind="king", state="succeeded", stage="king")
        assert 'hx-trigger="every' in curator.get(f"/p/acme/runs/{live.pk}/").content.decode()
        assert 'hx-trigger="every' not in curator.get(f"/p/acme/runs/{ended.pk}/").content.decode()

    def test_failures_are_shown_with_their_reasons_escaped(self, curator: Client, project: Project) -> None:
        run = make_run(project, params={"model": "king"}, kind="king", state="failed", stage="king", items_failed=1)
        Item.objects.create(run=run, stage="king", key="7:0", state="failed", reason="<b>no answer</b>")
        page = curator.get(f"/p/acme/runs/{run.pk}/").content.decode()
        assert "&lt;b&gt;no answer&lt;/b&gt;" in page
        assert "Retry failed" in page

    def test_unknown_cost_is_not_shown_as_nothing(self, curator: Client, project: Project) -> None:
        run = make_run(project, params={"model": "king"}, kind="king", cost_unknown_calls=3)
        item = Item.objects.create(run=run, stage="king", key="7:0")
        Call.objects.create(project=project, run=run, item=item, endpoint_name="king", content_hash="0" * 64)
        assert "3 calls of unknown cost" in curator.get(f"/p/acme/runs/{run.pk}/").content.decode()
        assert "unknown" in curator.get(f"/p/acme/runs/{run.pk}/calls/").content.decode()


class TestControl:
    def test_cancel_and_resume(self, curator: Client, project: Project) -> None:
        run = make_run(project, params={"model": "king"}, kind="king", state="running", stage="king")
        curator.post(f"/p/acme/runs/{run.pk}/cancel/")
        run.refresh_from_db()
        assert run.state == "cancelled"
        curator.post(f"/p/acme/runs/{run.pk}/resume/")
        run.refresh_from_db()
        assert run.state == "running"

    def test_an_ended_run_cannot_be_cancelled(self, curator: Client, project: Project) -> None:
        run = make_run(project, params={"model": "king"}, kind="king", state="succeeded", finished_at=timezone.now())
        assert curator.post(f"/p/acme/runs/{run.pk}/cancel/").status_code == 409

    def test_run_again_opens_the_form_with_the_runs_parameters(self, curator: Client, project: Project) -> None:
        params = {"king_model": "king", "challenger_model": "challenger", "judges": ["judge-careful"], "mode": 1}
        run = make_run(project, params=params, kind="duel", state="succeeded", budget=Decimal("2.50"))
        address = f"/p/acme/runs/new/?kind=duel&from={run.pk}"
        assert address.replace("&", "&amp;") in curator.get(f"/p/acme/runs/{run.pk}/").content.decode()
        page = curator.get(address).content.decode()
        assert '<option value="1" selected>Against the source&#x27;s own turn</option>' in page
        assert 'value="2.50' in page and '<option value="challenger" selected>' in page
        curator.post(address, {**TestLaunch.FORM, "budget": "3"})
        again = Run.objects.latest("pk")
        assert again.cloned_from == run
        assert again.params["mode"] == 2 and again.budget == Decimal(3)
        assert curator.get("/p/acme/runs/new/?kind=rollout&from=" + str(run.pk)).status_code == 404

    @pytest.mark.parametrize("amount", ["two", "nan", "Infinity", "0.01"])
    def test_a_bad_amount_on_resume_stays_on_the_page(self, curator: Client, project: Project, amount: str) -> None:
        run = make_run(
            project,
            params={"model": "king"},
            kind="king",
            state="cancelled",
            stage="king",
            budget=1,
            cost=Decimal("0.5"),
        )
        answer = curator.post(f"/p/acme/runs/{run.pk}/resume/", {"budget": amount})
        page = answer.content.decode()
        assert 400 <= answer.status_code < 500 and "The run is not resumed" in page
        assert f'value="{amount}" aria-invalid="true"' in page
        run.refresh_from_db()
        assert run.state == "cancelled"
