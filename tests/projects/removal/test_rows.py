"""Archive and delete runs, imports, exports, evaluations and splits: the deleted rows, and the blockers."""

from pathlib import Path
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.test import Client
from pytest_django import Settings

from curation.dashboard.overview.stats import _count
from curation.duels.models import Answer, Duel, Prompt, PullRequest, Verdict
from curation.evaluations.models import ContaminationCheck, EvaluatedModel, Evaluation, Split, SplitRow
from curation.exports.models import Export, ExportFile, FrozenRow
from curation.projects.models import AuditEntry, Deletion, Project
from curation.projects.removal.carry_out import carry_out
from curation.review.models import Decision, Lease
from curation.runs.engine import dispatch
from curation.runs.models import Call, Item, Run
from curation.samples.models import Sample
from curation.scenarios.models import Scenario
from curation.trajectories.models import Pair, Trajectory
from tests.factories import (
    make_answer,
    make_duel,
    make_run,
    make_scenario,
    make_trajectory,
    make_user,
)
from tests.imports.bringing import bring, chat

pytestmark = pytest.mark.django_db
JSON = "application/json"
V1 = "/api/v1"


@pytest.fixture(autouse=True)
def storage(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.MEDIA_ROOT = str(tmp_path)
    monkeypatch.setattr(dispatch, "send_work", lambda *_: None)


def delete(client: Client, headers: dict[str, str], path: str) -> Any:
    """Send the call and carry out the deletion, if it is accepted."""
    answer = client.delete(f"{V1}{path}", headers=headers)
    if answer.status_code == 202:
        carry_out(int(answer.json()["id"]))
        assert client.get(f"{V1}/deletions/{answer.json()['id']}", headers=headers).json()["state"] == "deleted"
    return answer


def refusal(client: Client, headers: dict[str, str], path: str) -> str:
    before = Run.objects.count()
    answer = delete(client, headers, path)
    assert (answer.status_code, answer.json()["code"]) == (409, "in_use"), answer.content
    assert all(rest["url"].startswith("/p/acme/") for rest in answer.json()["current"]["rests"])
    assert (Run.objects.count(), Deletion.objects.count()) == (before, 0)
    return str(answer.json()["detail"])


def done(project: Project, kind: str = "duel", **values: Any) -> Run:
    return make_run(project, kind=kind, state="succeeded", **values)


def duel_of(run: Run, **values: Any) -> Duel:
    """A duel that a run made alone: its answers, verdicts and sample."""
    duel = make_duel(run.project, run=run, **values)
    Answer.objects.filter(prompt=duel.prompt).update(run=run)
    return duel


def decide(duel: Duel, action: str = "approve") -> None:
    assert duel.sample is not None
    Decision.objects.create(sample=duel.sample, reviewer=make_user(), action=action, version=1)


class TestRuns:
    def test_goes_with_what_it_alone_made(self, client: Client, project: Project, headers: dict[str, str]) -> None:
        other = duel_of(done(project))
        run = done(project)
        duel = duel_of(run)
        Call.objects.create(project=project, run=run, endpoint_name="m", content_hash="h")
        answer = delete(client, headers, f"/runs/{run.pk}")
        assert answer.status_code == 202
        assert list(Duel.objects.all()) == [other] and Sample.objects.count() == 1
        assert set(Answer.objects.values_list("prompt", flat=True)) == {other.prompt_id}
        assert Prompt.objects.filter(pk=duel.prompt_id).exists(), "another import's turn stays"
        assert not Call.objects.exists() and not Run.objects.filter(pk=run.pk).exists()

    def test_decided_samples_keep_it_with_their_number(
        self, client: Client, project: Project, headers: dict[str, str]
    ) -> None:
        run = done(project)
        duels = [duel_of(run) for _ in range(3)]
        decide(duels[0])
        said = refusal(client, headers, f"/runs/{run.pk}")
        assert "3 samples come from this run, 1 of them decided or revised." in said

    def test_a_sample_decided_meanwhile_stays(self, client: Client, project: Project, headers: dict[str, str]) -> None:
        run = done(project)
        kept, gone = duel_of(run), duel_of(run)
        deletion = client.delete(f"{V1}/runs/{run.pk}", headers=headers).json()["id"]
        decide(kept)
        carry_out(int(deletion))
        assert list(Duel.objects.all()) == [kept] and not Sample.objects.filter(pk=gone.sample_id or 0).exists()
        assert Verdict.objects.filter(duel=kept).count() == 6 and kept.king_id in Answer.objects.values_list(
            "pk", flat=True
        )

    def test_what_other_runs_use_keeps_it(self, client: Client, project: Project, headers: dict[str, str]) -> None:
        kings, judged = done(project, "king"), done(project, "judge")
        duel = make_duel(project, run=judged)
        Answer.objects.filter(pk=duel.king_id or 0).update(run=kings)
        assert "Duels of other runs that use its answers: 1." in refusal(client, headers, f"/runs/{kings.pk}")
        call = Call.objects.create(project=project, run=kings, endpoint_name="m", content_hash="h")
        make_answer(duel.prompt, run=judged, call=call)
        assert "that come from its calls: 1." in refusal(client, headers, f"/runs/{kings.pk}")
        assert delete(client, headers, f"/runs/{judged.pk}").status_code == 202
        assert Answer.objects.filter(run=kings).count() == 1

    def test_a_second_judge_keeps_the_first(self, client: Client, project: Project, headers: dict[str, str]) -> None:
        first, second = done(project), done(project, "judge")
        duel = duel_of(first)
        Verdict.objects.filter(duel=duel, judge="judge-a").update(run=second)
        Duel.objects.update(run=second)
        assert "Duels of other runs" in refusal(client, headers, f"/runs/{first.pk}")
        assert "that have their score from it: 1." in refusal(client, headers, f"/runs/{second.pk}")

    def test_rollouts_and_pairs(self, client: Client, project: Project, headers: dict[str, str]) -> None:
        rollout, pairs, author = done(project, "rollout"), done(project, "pairs"), done(project, "author")
        scenario = make_scenario(project, run=author)
        chosen, rejected = (make_trajectory(project, scenario, run=rollout, sample_index=n) for n in range(2))
        Pair.objects.create(project=project, run=pairs, scenario=scenario, chosen=chosen, rejected=rejected, at=1)
        assert "Pairs of other runs that use its trajectories: 1." in refusal(client, headers, f"/runs/{rollout.pk}")
        assert "Trajectories of other runs through its scenarios: 2." in refusal(client, headers, f"/runs/{author.pk}")
        for run in (pairs, rollout, author):
            assert delete(client, headers, f"/runs/{run.pk}").status_code == 202, run.kind
        assert not Pair.objects.exists() and not Trajectory.objects.exists() and not Scenario.objects.exists()

    def test_rollouts_that_its_recorded_calls_answered_keep_it(
        self, client: Client, project: Project, headers: dict[str, str]
    ) -> None:
        first, second = done(project, "rollout"), done(project, "rollout")
        call = Call.objects.create(project=project, run=first, endpoint_name="m", content_hash="h")
        result = {"reused_calls": [call.pk, call.pk + 999]}
        Item.objects.create(run=second, stage="rollout", key="1:0", state="done", result=result)
        said = f"Run {second.pk} has answers from 1 of its calls."
        assert said in refusal(client, headers, f"/runs/{first.pk}") and Call.objects.filter(pk=call.pk).exists()
        for run in (second, first):
            assert delete(client, headers, f"/runs/{run.pk}").status_code == 202, run.pk

    def test_live_runs_keep_it(self, client: Client, project: Project, headers: dict[str, str]) -> None:
        live, ended = make_run(project, state="running"), done(project, "king")
        assert "This run is in progress" in refusal(client, headers, f"/runs/{live.pk}")
        assert "1 other run is in progress" in refusal(client, headers, f"/runs/{ended.pk}")

    def test_what_it_spent_stays_in_the_projects_cost(
        self, client: Client, project: Project, headers: dict[str, str]
    ) -> None:
        run = done(project, cost="1.25", cost_unknown_calls=2)
        before = _count(project, blind=False)
        delete(client, headers, f"/runs/{run.pk}")
        after = _count(project, blind=False)
        assert float(after.cost) == float(before.cost) == 1.25 and after.cost_unknown_calls == 2
        entry = AuditEntry.objects.get(project=project, action="run.delete")
        assert (entry.data["kind"], entry.data["cost_unknown_calls"]) == ("duel", 2)
        assert AuditEntry.objects.get(project=project, action="run.deleted").data["rows"]["runs.Run"] == 1

    def test_answers_as_deleted_at_once(self, client: Client, project: Project, headers: dict[str, str]) -> None:
        run = done(project)
        client.delete(f"{V1}/runs/{run.pk}", headers=headers)
        assert client.get(f"{V1}/runs/{run.pk}", headers=headers).status_code == 404
        assert client.get(f"{V1}/projects/acme/runs", headers=headers).json()["data"] == []
        assert client.delete(f"{V1}/runs/{run.pk}", headers=headers).status_code == 404


class TestImports:
    def test_takes_back_the_rows_that_only_it_added(
        self, client: Client, project: Project, headers: dict[str, str]
    ) -> None:
        first = bring(project, "turns", [chat(1), chat(2)], name="a.jsonl")
        second = bring(project, "turns", [chat(2), chat(3)], name="b.jsonl")
        assert Prompt.objects.count() == 3
        stored = first.params["upload"]
        assert default_storage.exists(stored)
        assert delete(client, headers, f"/runs/{first.pk}").status_code == 202
        assert Prompt.objects.count() == 2 and Prompt.objects.filter(run=second).count() == 1
        assert not default_storage.exists(stored)
        assert AuditEntry.objects.filter(action="import.delete").exists()

    def test_its_undecided_answers_go_too_and_decided_ones_keep_it(
        self, client: Client, project: Project, headers: dict[str, str]
    ) -> None:
        found = bring(project, "turns", [chat(1)])
        run = done(project)
        duel = duel_of(run)
        Prompt.objects.filter(pk=duel.prompt_id).update(run=found)
        decide(duel)
        said = refusal(client, headers, f"/runs/{found.pk}")
        assert "1 sample comes from this import, 1 of them decided or revised." in said
        Decision.objects.all().delete()
        assert delete(client, headers, f"/runs/{found.pk}").status_code == 202
        assert not Prompt.objects.exists() and not Duel.objects.exists() and not Sample.objects.exists()
        assert Run.objects.filter(pk=run.pk).exists()

    def test_records_and_scenarios(self, client: Client, project: Project, headers: dict[str, str]) -> None:
        rows = [{"instance_id": f"acme__billing-{n}", "issue": "Wrong totals", "patch": ""} for n in range(2)]
        first = bring(project, "pr_records", rows)
        bring(project, "pr_records", rows[:1])
        assert delete(client, headers, f"/runs/{first.pk}").status_code == 202
        assert [row.instance_id for row in PullRequest.objects.all()] == ["acme__billing-0"]

    def test_records_that_challengers_saw_stay(self, client: Client, project: Project, headers: dict[str, str]) -> None:
        found = bring(project, "pr_records", [{"instance_id": "acme__x-1", "issue": "Wrong"}])
        make_duel(project, instance_id="acme__x-1")
        assert "are written with its pull-request records: 1." in refusal(client, headers, f"/runs/{found.pk}")


class TestExports:
    @pytest.fixture
    def export(self, project: Project) -> Export:
        export = Export.objects.create(project=project, run=done(project, "export"), recipe={}, ready=True)
        stored = default_storage.save(f"exports/{export.pk}/a/manifest.json", ContentFile(b'{"rows": 7}'))
        ExportFile.objects.create(export=export, name="manifest.json", stored_as=stored, bytes=11, sha256="a" * 64)
        return export

    def test_goes_with_its_files_and_leaves_its_manifest_in_the_log(
        self, client: Client, project: Project, headers: dict[str, str], export: Export
    ) -> None:
        stored = export.files.get().stored_as
        assert delete(client, headers, f"/exports/{export.pk}").status_code == 202
        assert not default_storage.exists(stored) and not Export.objects.exists()
        entry = AuditEntry.objects.get(action="export.delete")
        assert (entry.subject, entry.data["manifest"]) == (f"export {export.pk}", {"rows": 7})

    def test_keeps_the_runs_of_its_rows(
        self, client: Client, project: Project, headers: dict[str, str], export: Export
    ) -> None:
        run = done(project)
        duel_of(run)
        FrozenRow.objects.create(export=export, sample_id=Sample.objects.get().pk, version=1)
        assert "1 export contains its rows" in refusal(client, headers, f"/runs/{run.pk}")
        delete(client, headers, f"/exports/{export.pk}")
        assert delete(client, headers, f"/runs/{run.pk}").status_code == 202


class TestEvaluations:
    def test_a_baseline_and_a_used_split_stay(self, client: Client, project: Project, headers: dict[str, str]) -> None:
        brought = done(project, "import")
        split = Split.objects.create(project=project, run=brought, name="val", rows_count=1)
        SplitRow.objects.create(split=split, number=0)
        evaluation = Evaluation.objects.create(project=project, run=done(project, "evaluate"), split=split)
        by = EvaluatedModel.objects.create(evaluation=evaluation, place=0, name="m")
        Split.objects.update(baseline=by)
        assert "1 evaluation uses it" in refusal(client, headers, f"/splits/{split.pk}")
        assert "Split val: 1 evaluation uses it" in refusal(client, headers, f"/runs/{brought.pk}")
        assert "it has the baseline" in refusal(client, headers, f"/evaluations/{evaluation.pk}")
        Split.objects.update(baseline=None)
        assert delete(client, headers, f"/evaluations/{evaluation.pk}").status_code == 202
        assert delete(client, headers, f"/splits/{split.pk}").status_code == 202
        assert not Split.objects.exists() and not SplitRow.objects.exists()
        assert {"evaluation.delete", "split.delete"} <= set(AuditEntry.objects.values_list("action", flat=True))

    @pytest.mark.django_db(transaction=True)
    def test_a_split_waits_for_the_deletion_of_its_evaluation(
        self, client: Client, project: Project, headers: dict[str, str]
    ) -> None:
        split = Split.objects.create(project=project, name="val")
        evaluation = Evaluation.objects.create(project=project, run=done(project, "evaluate"), split=split)
        first, second = (
            client.delete(f"{V1}{path}", headers=headers).json()["id"]
            for path in (f"/evaluations/{evaluation.pk}", f"/splits/{split.pk}")
        )
        carry_out(int(second))
        shown = client.get(f"{V1}/deletions/{second}", headers=headers).json()
        assert (shown["state"], shown["error"]) == ("deleting", "Other rows still reference these rows.")
        assert Evaluation.objects.get().split == split
        carry_out(int(first))
        carry_out(int(second))
        assert not Evaluation.objects.exists() and not Split.objects.exists()

    def test_a_contamination_check_keeps_the_split_that_it_compares_with(
        self, client: Client, project: Project, headers: dict[str, str]
    ) -> None:
        train, val = (Split.objects.create(project=project, name=name) for name in ("train", "val"))
        check = done(project, "contamination", params={"split": str(val.pk), "training_split": str(train.pk)})
        ContaminationCheck.objects.create(split=val, run=check, against="split train", ready=True)
        assert "1 contamination check compares another split with it" in refusal(client, headers, f"/splits/{train.pk}")
        assert delete(client, headers, f"/splits/{val.pk}").status_code == 202


def rows_of_each_noun(project: Project) -> dict[str, str]:
    """REST path of one row of each noun, and its list."""
    export = Export.objects.create(project=project, run=done(project, "export"), recipe={})
    evaluation = Evaluation.objects.create(project=project, run=done(project, "evaluate"))
    split = Split.objects.create(project=project, name="val")
    return {
        f"/runs/{done(project).pk}": "runs",
        f"/exports/{export.pk}": "exports",
        f"/evaluations/{evaluation.pk}": "evaluations",
        f"/splits/{split.pk}": "splits",
    }


class TestEveryNoun:
    def test_is_hidden_while_archived(self, client: Client, project: Project, headers: dict[str, str]) -> None:
        for path, noun in rows_of_each_noun(project).items():
            listing, pk = f"{V1}/projects/acme/{noun}", path.rsplit("/", 1)[1]

            def ids(query: str = "", listing: str = listing) -> set[str]:
                return {row["id"] for row in client.get(listing + query, headers=headers).json()["data"]}

            assert client.patch(f"{V1}{path}", {"archived": True}, JSON, headers=headers).status_code == 200, path
            assert pk not in ids() and ids("?archived=true") == {pk}
            again = client.patch(f"{V1}{path}", {"archived": True}, JSON, headers=headers)
            assert (again.status_code, again.json()["code"]) == (409, "wrong_state")
            assert client.get(f"{V1}{path}", headers=headers).status_code == 200
            assert client.patch(f"{V1}{path}", {"archived": False}, JSON, headers=headers).status_code == 200
            assert pk in ids()
        actions = set(AuditEntry.objects.values_list("action", flat=True))
        assert {f"{noun}.archive" for noun in ("run", "export", "evaluation", "split")} <= actions

    def test_has_a_menu_on_its_page(self, client: Client, project: Project) -> None:
        client.force_login(project.members.get().user)
        for path in rows_of_each_noun(project):
            noun, pk = path.strip("/").split("/")
            noun = noun.rstrip("s")
            shown = client.get(f"/p/acme/{'evaluations/splits' if noun == 'split' else noun + 's'}/{pk}/")
            assert f"/p/acme/delete/{noun}/{pk}/" in shown.content.decode(), path
            assert client.post(f"/p/acme/archive/{noun}/{pk}/").status_code == 302
            asked = client.get(f"/p/acme/delete/{noun}/{pk}/").content.decode()
            assert f"Delete {noun} {pk}?" in asked
            answer = client.post(f"/p/acme/delete/{noun}/{pk}/")
            assert answer["Location"].startswith("/deletions/"), path

    def test_the_page_says_what_keeps_it(self, client: Client, project: Project) -> None:
        client.force_login(project.members.get().user)
        run = done(project)
        decide(duel_of(run))
        page = client.get(f"/p/acme/delete/run/{run.pk}/").content.decode()
        assert "1 sample comes from this run, 1 of them decided" in page and 'class="btn btn--bad"' not in page
        assert "1 sample comes" in client.post(f"/p/acme/delete/run/{run.pk}/", follow=True).content.decode()
        assert not Deletion.objects.exists()

    def test_leases_and_items_go_too(self, client: Client, project: Project, headers: dict[str, str]) -> None:
        run = done(project)
        duel = duel_of(run)
        Item.objects.create(run=run, stage="king", key="a", state="done")
        assert duel.sample is not None
        Lease.objects.create(sample=duel.sample, reviewer=make_user(), swapped=False, until="2020-01-01T00:00Z")
        assert delete(client, headers, f"/runs/{run.pk}").status_code == 202
        assert not Lease.objects.exists() and not Item.objects.exists()
