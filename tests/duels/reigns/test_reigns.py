from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from curation.duels.models import Answer, Reign
from curation.llm.client.completion import CompletionRequest
from curation.llm.models import Endpoint
from curation.projects.access import Access, access_of
from curation.projects.instructions.texts import override_instructions
from curation.projects.models import AuditEntry, Project, Role
from curation.runs.models import Run
from tests.duels.running import (
    CHALLENGER,
    JUDGES,
    KING,
    Models,
    Reply,
    against,
    fair,
    make_arena,
    prose,
    run_to_end,
    serve,
    start,
)
from tests.factories import make_bearer, make_endpoint, make_member
from tests.world import world

pytestmark = pytest.mark.django_db(transaction=True)
JSON = "application/json"


def by_side(name: str) -> Reply:
    """A model that answers well with the record only."""

    def reply(request: CompletionRequest) -> str:
        text = CHALLENGER if "<record>" in str(request.messages[0]["content"]) else KING
        return text.replace("THOUGHT:", f"THOUGHT: I am {name}.")

    return reply


CHALLENGERS: dict[str, Reply] = {name: by_side(name) for name in ("challenger", "challenger-2")}


def make_accepted(models: Models, **settings: Any) -> tuple[Run, User]:
    """A run that accepts `challenger` against `king`, and an admin of its project."""
    models.says |= CHALLENGERS
    given = {"generation": {"king_model": "king"}, **settings}
    given["gate"] = {"resamples": 200, "min_clusters": 8, **given.get("gate", {})}
    given["panel"] = {"controls": 0.05, "judges": ["judge-a", "judge-b"], **given.get("panel", {})}
    project, _ = make_arena(prompts=8, settings=given)
    make_endpoint(project, "challenger-2", model="fake/challenger-2")
    return run_to_end(project), make_member(project, role=Role.ADMIN)


@world
def accepted(patched: pytest.MonkeyPatch) -> tuple[Run, User]:
    return make_accepted(serve(patched))


class Court:
    """The project of an accepted run, and REST calls of its admin."""

    def __init__(self, models: Models, accepted: tuple[Run, User]) -> None:
        models.says |= CHALLENGERS
        self.client, self.models = Client(), models
        self.run, self.owner = accepted
        self.project = self.run.project

    def duel(self, *judge: Any, **params: Any) -> Run:
        """Another duel run, whose judges say this."""
        self.models.says |= dict.fromkeys(JUDGES, *judge) if judge else {}
        return run_to_end(self.project, **{"king_model": None, "challenger_model": "challenger-2", **params})

    def send(self, path: str, body: dict[str, Any], user: User | None = None) -> Any:
        return self.client.post(f"/api/v1{path}", body, JSON, headers=make_bearer(user or self.owner))

    def crown(self, run: Run, **body: Any) -> Any:
        return self.send(f"/projects/{self.project.slug}/reigns", {"run": str(run.pk), **body})

    def reigns(self) -> list[dict[str, Any]]:
        address = f"/api/v1/projects/{self.project.slug}/reigns"
        rows: list[dict[str, Any]] = self.client.get(address, headers=make_bearer(self.owner)).json()["data"]
        return rows

    def page(self, address: str) -> str:
        self.client.force_login(self.owner)
        return str(self.client.get(f"/p/{self.project.slug}/{address}").content.decode())

    @property
    def access(self) -> Access:
        found = access_of(self.owner, Project.objects.get(pk=self.project.pk))
        assert found is not None
        return found


@pytest.fixture
def court(models: Models, accepted: tuple[Run, User]) -> Court:
    return Court(models, accepted)


def test_an_accepted_challenger_is_crowned_and_defends(court: Court) -> None:
    answer = court.crown(court.run)

    assert answer.status_code == 201, answer.content
    verdict, reign = court.run.result["verdicts"][0], answer.json()
    assert (reign["model"], reign["run"], reign["margin"]) == ("challenger", str(court.run.pk), 100.0)
    assert (reign["lcb"], reign["panels"]) == (verdict["lcb"], court.run.result["panels"])
    assert reign["challenger"]["fingerprint"] == verdict["challenger"]["fingerprint"]
    assert AuditEntry.objects.filter(action="reign.crown", actor=court.owner).count() == 1

    run = court.duel(against)
    assert run.params["king_model"] == "challenger"
    asked = len(court.models.requests("challenger"))
    later = court.duel(fair(won=0))
    assert len(court.models.requests("challenger")) == asked, "answers of the king that exist are used again"
    sent = str(court.models.requests("challenger")[-1].messages[0]["content"])
    assert "<record>" not in sent, "the king answers blind"
    row = court.reigns()[0]
    assert [(c["run"], c["outcome"], c["defence"]) for c in row["challenges"]] == [
        (str(run.pk), "not accepted", True),
        (str(later.pk), "not accepted", True),
    ]
    assert row["challenges"][0]["margin"] == -100.0 and "margin" in row["challenges"][0]["reasons"][0]
    assert row["king"]["fingerprint"] == run.result["verdicts"][0]["opponent"]["fingerprint"]
    assert "this run is a defence" in run.result["king"]
    assert "defence" in court.page("duels/reigns/")


def test_the_next_king_ends_the_reign_before(court: Court) -> None:
    court.crown(court.run)
    run = court.duel()
    assert court.crown(run).status_code == 201

    new, old = court.reigns()
    assert (new["model"], new["ended_at"], old["model"]) == ("challenger-2", None, "challenger")
    assert old["ended_at"] and old["end_reason"] == "" and [c["crowned"] for c in old["challenges"]] == [True]
    assert start(court.project, king_model=None).params["king_model"] == "challenger-2"


class TestRefused:
    def refused(self, answer: Any, code: str, *words: str) -> None:
        assert (answer.status_code, answer.json()["code"]) == (409, code), answer.content
        for word in words:
            assert word in answer.json()["detail"]
        assert Reign.objects.filter(ended_at=None).count() <= 1

    def test_crowning_twice(self, court: Court) -> None:
        court.crown(court.run)
        self.refused(court.crown(court.run), "already_crowned", "was crowned already, on 20")
        again = run_to_end(court.project, "rescore", run=str(court.run.pk))
        self.refused(court.crown(again), "already_crowned", "challenger reigns already, since")
        assert Reign.objects.count() == 1

    @pytest.mark.parametrize("lacking", [{"gate": {"min_clusters": 10}}, {"panel": {"controls": 0.0}}])
    def test_a_run_of_which_too_little_is_known(self, models: Models, lacking: dict[str, Any]) -> None:
        court = Court(models, make_accepted(models, **lacking))
        assert (court.run.result["margin"], court.run.result["decision"]) == (100.0, "undecided")
        self.refused(court.crown(court.run), "not_accepted", "needed")
        assert court.reigns() == []

    def test_a_verdict_by_the_rules_of_an_earlier_version(self, court: Court) -> None:
        del court.run.result["verdicts"][0]["decision"]
        court.run.save()
        self.refused(court.crown(court.run), "not_accepted", "by the rules of an earlier version")
        again = run_to_end(court.project, "rescore", run=str(court.run.pk))
        assert court.crown(again).status_code == 201

    def test_a_challenger_that_was_not_accepted(self, court: Court) -> None:
        run = court.duel(against)
        self.refused(court.crown(run), "not_accepted", "challenger-2", "margin of -100.00")
        assert "Crown challenger-2" not in court.page(f"runs/{run.pk}/")

    def test_a_verdict_that_one_judge_decides(self, court: Court) -> None:
        court.models.says |= {"judge-a": fair(), "judge-b": fair(won=1), "judge-c": against}
        run = court.duel(judges=list(JUDGES))
        assert (run.result["margin"] > 2, run.result["decision"]) == (True, "undecided")
        self.refused(court.crown(run), "not_accepted", "undecided: ")

    def test_a_verdict_that_a_rescore_turned(self, court: Court) -> None:
        assert court.run.result["accepted"]
        turned = run_to_end(court.project, "rescore", run=str(court.run.pk), judges=["judge-b"])
        assert turned.result["accepted"] is False
        self.refused(court.crown(court.run), "verdict_turned", f"run {turned.pk} scored the same duels again")
        assert f"run {turned.pk} scored" in court.page(f"runs/{court.run.pk}/")
        run_to_end(court.project, "rescore", run=str(court.run.pk))
        assert court.crown(court.run).status_code == 201, "the newest of them counts"
        run_to_end(court.project, "rescore", run=str(court.run.pk), judges=["judge-b"])
        assert "does not accept it" in court.reigns()[0]["notes"][0]

    def test_another_king_than_the_reigning_one(self, court: Court) -> None:
        court.crown(court.run)
        run = court.duel(king_model="king")
        assert run.result["accepted"] and "is no defence of it" in run.result["king"]
        self.refused(court.crown(run), "other_king", "the reigning king challenger", "against king")

    def test_the_reference_as_opponent(self, court: Court) -> None:
        run = court.duel(mode=1)
        assert run.result["accepted"]
        self.refused(court.crown(run), "no_king", "against the reference")

    @pytest.mark.parametrize("change", [{"params": {"top_p": 0.5}}, {"model": "fake/other"}, {"name": "renamed"}])
    def test_an_endpoint_that_is_another_now(self, court: Court, change: dict[str, Any]) -> None:
        Endpoint.objects.filter(project=court.project, name="challenger").update(**change)
        self.refused(court.crown(court.run), "contestant_changed", "what won cannot answer again")

    def test_a_run_without_a_verdict(self, court: Court) -> None:
        self.refused(court.crown(start(court.project)), "no_verdict", "queued")


def test_a_changed_king_is_named_and_its_runs_are_no_defence(court: Court) -> None:
    court.crown(court.run)
    override_instructions(access=court.access, name="king", text="Answer in verse.", seen_version=0)

    assert "king&#x27;s instructions are another version" in court.page("duels/reigns/")
    assert "This run is no defence" in court.page("runs/new/?kind=duel")
    run = court.duel(against)
    (challenge,) = court.reigns()[0]["challenges"]
    assert (challenge["run"], challenge["defence"]) == (str(run.pk), False)
    assert challenge["why"].startswith("no defence: the king had other instructions")
    assert "instructions are another version" in court.reigns()[0]["notes"][0]


def test_other_parameters_are_another_version(court: Court) -> None:
    court.crown(court.run)
    Project.objects.filter(pk=court.project.pk).update(
        settings_json={**court.project.settings_json, "generation": {"temperature": 0.1}}
    )
    assert "'temperature': 0.1" in court.reigns()[0]["notes"][0]


def test_a_deleted_king_is_not_replaced_in_silence(court: Court) -> None:
    court.crown(court.run)
    Endpoint.objects.filter(project=court.project, name="challenger").delete()

    body = {"kind": "duel", "params": {"challenger_model": "challenger-2"}}
    answer = court.send(f"/projects/{court.project.slug}/runs", body)

    assert (answer.status_code, answer.json()["code"]) == (422, "king_deleted")
    assert answer.json()["errors"][0]["path"] == "params.king_model"
    assert court.reigns()[0]["notes"] == ["The endpoint challenger was deleted."]
    assert court.duel(king_model="king").state == "succeeded", "a run may name another"


def test_an_admin_ends_a_reign_with_a_reason(court: Court) -> None:
    court.crown(court.run)
    path = f"/reigns/{court.reigns()[0]['id']}/end"
    curator = make_member(court.project, role=Role.CURATOR)

    assert court.send(path, {"reason": "x"}, curator).status_code == 403
    assert court.send(path, {"reason": " "}).status_code == 422
    assert court.send(path, {"reason": "It answers with another model."}).status_code == 200
    assert court.send(path, {"reason": "Again."}).status_code == 409

    (row,) = court.reigns()
    assert (row["end_reason"], row["ended_by"]) == ("It answers with another model.", court.owner.username)
    assert AuditEntry.objects.get(action="reign.end").data["reason"] == "It answers with another model."
    assert court.crown(court.run).json()["code"] == "already_crowned"
    again = run_to_end(court.project, "rescore", run=str(court.run.pk))
    assert court.crown(again).status_code == 201, "without a king, an accepted verdict crowns the first one"


def test_the_setting_crowns_by_itself(models: Models) -> None:
    court = Court(models, make_accepted(models, gate={"crown": True}))
    (row,) = court.reigns()
    assert (row["run"], row["crowned_by"]) == (str(court.run.pk), None)
    assert court.run.result["crown"] == {"reign": row["id"]}
    court.duel(against)
    assert len(court.reigns()) == 1 and len(court.reigns()[0]["challenges"]) == 1
    run = court.duel(fair(), king_model="king", fresh=True)
    assert "not judged against the reigning king" in run.result["crown"]["refused"]
    assert "Not crowned by the setting" in court.page(f"runs/{run.pk}/")
    assert AuditEntry.objects.get(action="reign.crown").actor is None


def test_the_button_on_the_run_crowns(court: Court) -> None:
    assert "Crown challenger" in court.page(f"runs/{court.run.pk}/")
    mark = court.run.result["challenger"]["fingerprint"]
    court.client.post(f"/p/{court.project.slug}/duels/reigns/crown/", {"run": court.run.pk, "challenger": mark})
    assert [row["model"] for row in court.reigns()] == ["challenger"]
    assert "was crowned already" in court.page(f"runs/{court.run.pk}/")
    form = court.page("runs/new/?kind=duel")
    assert '<option value="challenger" selected>' in form and "this run is a defence" in form


def test_a_run_that_crowned_is_not_deleted(court: Court) -> None:
    court.crown(court.run)
    answer = court.client.delete(f"/api/v1/runs/{court.run.pk}", headers=make_bearer(court.owner))
    assert answer.status_code == 409 and "Kings that it crowned: 1." in answer.json()["detail"]


def test_imported_or_replaced_answers(court: Court) -> None:
    """Answers that a fresh run replaced keep their contestant."""
    court.models.says |= dict.fromkeys(JUDGES, prose)
    run_to_end(court.project, fresh=True)
    assert Answer.objects.filter(fingerprint__contains="~").exists()
    assert court.crown(court.run).status_code == 201
