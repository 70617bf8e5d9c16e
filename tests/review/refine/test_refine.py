from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from curation.duels.models import Duel, PullRequest
from curation.llm.client.completion import CompletionRequest
from curation.projects.models import AuditEntry, Project, Role
from curation.review.models import Revision, Suggestion, TextScore
from curation.review.queue.lease import lock_sample
from curation.review.refine import settle
from curation.runs.control import clone
from curation.runs.models import Run
from curation.samples.models import Sample, SampleStatus, Unblinding
from tests.driving import (
    end,
    storage,  # noqa: F401 - a fixture of every test here
)
from tests.duels.conftest import models  # noqa: F401 - a fixture
from tests.duels.running import JUDGES, Models, Reply, fair, make_arena, run_to_end, serve, shown, verdict
from tests.factories import make_bearer, make_endpoint, make_member, make_user
from tests.world import world

pytestmark = pytest.mark.django_db(transaction=True)
JSON = "application/json"
BETTER = "THOUGHT: I read what fails first.\n\n```bash\nsed -n '1,80p' IMPROVED\n```"


def likes(*marks: str) -> Reply:
    """A judge that prefers the answer with the earlier one of these marks, in both orders; else a draw."""

    def reply(request: CompletionRequest) -> str:
        ranks = [next((n for n, mark in enumerate(marks) if mark in text), len(marks)) for text in shown(request)]
        pick = 0 if ranks[0] == ranks[1] else 1 if ranks[0] < ranks[1] else 2
        return verdict(*[pick] * 5, reason="it reads the failing part")

    return reply


@world
def arena(patched: pytest.MonkeyPatch) -> Run:
    """Three samples in the bucket `refined`."""
    serve(patched).says |= dict.fromkeys(JUDGES, fair(won=2, reason="answer 1 reads more"))
    run = run_to_end(make_arena(settings={"gate": {"resamples": 200}})[0])
    assert set(Sample.objects.values_list("bucket", flat=True)) == {"refined"}
    return run


class Bench:
    """The arena, an admin of it, and a model that improves answers."""

    def __init__(self, models: Models, run: Run) -> None:  # noqa: F811
        self.models, self.client, self.run, self.project = models, Client(), run, run.project
        self.user = make_user()
        make_member(self.project, self.user, Role.ADMIN)
        make_endpoint(self.project, "teacher", model="fake/teacher")
        models.says["teacher"] = lambda request: BETTER
        models.says |= dict.fromkeys(JUDGES, likes("IMPROVED", "CHALLENGER", "KING"))

    def refine(self, **params: Any) -> Run:
        return run_to_end(self.project, "refine", **{"model": "teacher", **params})

    def get(self, path: str, user: User | None = None) -> Any:
        return self.client.get(f"/api/v1{path}", headers=make_bearer(user or self.user)).json()

    def post(self, path: str, user: User | None = None) -> Any:
        return self.client.post(f"/api/v1{path}", {}, JSON, headers=make_bearer(user or self.user))

    def page(self, address: str) -> str:
        self.client.force_login(self.user)
        return str(self.client.get(f"/p/{self.project.slug}/{address}").content.decode())


@pytest.fixture
def bench(models: Models, arena: Run) -> Bench:  # noqa: F811
    return Bench(models, arena)


def test_what_beats_king_and_parent_is_a_revision_in_the_queue(bench: Bench) -> None:
    run = bench.refine()

    assert (run.state, run.result["better"], run.result["kept"]) == ("succeeded", 3, 0)
    sample = Sample.objects.order_by("pk")[0]
    revision = Revision.objects.get(sample=sample)
    assert (revision.text, revision.model, revision.author, revision.parent) == (BETTER, "teacher", None, None)
    assert "with the judges' reasons" in revision.note and sample.status == SampleStatus.PENDING and sample.version == 2
    rows = bench.get(f"/projects/{bench.project.slug}/suggestions?run={run.pk}")["data"]
    row = next(row for row in rows if row["sample"] == str(sample.pk))
    assert (row["outcome"], row["revision"], row["reason"]) == ("better", str(revision.pk), "")
    assert {score["against"]: score["score"] for score in row["scores"]} == {"king": 100.0, "parent": 100.0}
    assert len(row["scores"][0]["readings"]) == 6
    assert "Of 3 improved answers, 3 got better than the other answer and the text before" in bench.page(
        f"runs/{run.pk}/"
    )
    assert AuditEntry.objects.filter(action="sample.revise").count() == 3


def test_the_model_reads_neither_record_nor_reference_nor_king(bench: Bench) -> None:
    bench.refine()
    sent = bench.models.text_sent("teacher")
    for hidden in ("Round totals half to even", "quantise", "billing/totals.py", "KING"):
        assert hidden not in sent, hidden
    assert "CHALLENGER" in sent and "It was answer 2: correctness better" in sent and "answer 1 reads more" in sent


def test_reasons_of_judges_who_saw_the_reference_are_left_out(bench: Bench) -> None:
    Run.objects.filter(pk=bench.run.pk).update(params={**bench.run.params, "show_reference": True})
    bench.refine()
    sent = bench.models.text_sent("teacher")
    assert "correctness better" in sent and "answer 1 reads more" not in sent


def test_what_is_not_better_is_kept_with_its_reason(bench: Bench) -> None:
    bench.models.says |= dict.fromkeys(JUDGES, likes("CHALLENGER", "IMPROVED", "KING"))
    run = bench.refine()

    assert (run.result["better"], run.result["kept"]) == (0, 3)
    assert not Revision.objects.exists() and set(Sample.objects.values_list("version", flat=True)) == {1}
    (row, *_) = bench.get(f"/projects/{bench.project.slug}/suggestions?outcome=kept")["data"]
    assert row["reason"] == "It does not beat the text before (0.0, 50 is equal)."
    assert "It does not beat the text before" in bench.page(f"samples/suggestions/?run={run.pk}")


def test_a_lower_score_against_the_king_than_the_parents_is_not_better(bench: Bench) -> None:
    def reply(request: CompletionRequest) -> str:
        one, two = shown(request)
        pick = 1 if "IMPROVED" in one else 2
        return verdict(pick, *[0] * 4) if "KING" in one + two else verdict(*[pick] * 5)

    bench.models.says |= dict.fromkeys(JUDGES, reply)
    bench.refine()
    assert set(Suggestion.objects.values_list("reason", flat=True)) == {
        "Against the other answer it has 60.0, the text before 70.0 by the same panel."
    }


def test_too_few_verdicts_are_no_score(bench: Bench) -> None:
    bench.models.says["judge-b"] = lambda request: "Both are fine."
    run = bench.refine(attempts=1)
    assert (run.result["unjudged"], run.result["better"]) == (3, 0)
    assert "Too few judges" in Suggestion.objects.all()[0].reason
    assert set(TextScore.objects.values_list("score", flat=True)) == {None}


def test_a_leak_in_a_suggestion_is_flagged(bench: Bench) -> None:
    PullRequest.objects.update(files=["billing/hidden_rounding.py"])
    said = "THOUGHT: I open it.\n\n```bash\nsed -n 1,80p billing/hidden_rounding.py # IMPROVED a.lee@acme-pay.com\n```"
    bench.models.says["teacher"] = lambda request: said
    bench.refine()
    row = bench.get(f"/projects/{bench.project.slug}/suggestions")["data"][0]
    assert row["flags"] == ["leak", "pii"] and row["leak"]["spans"]
    assert {"leak", "pii"} <= set(Sample.objects.all()[0].shown_flags(hidden=False)), "the queue shows them"


def test_decided_samples_and_refused_texts(bench: Bench) -> None:
    first, second, third = Sample.objects.order_by("pk")
    Sample.objects.filter(pk=first.pk).update(status=SampleStatus.APPROVED)
    Sample.objects.filter(pk=second.pk).update(status=SampleStatus.NEEDS_REFINE)
    empty = Duel.objects.get(sample=third).prompt.text.history[-1]["content"]
    bench.models.says["teacher"] = lambda request: "" if empty in str(request.messages[-1]["content"]) else BETTER
    run = bench.refine(attempts=2)

    assert run.result["skipped"]["refine"] == {"decided already": 1, "The answer is empty.": 1}
    second.refresh_from_db()
    assert (run.result["better"], second.status) == (1, SampleStatus.PENDING)


@pytest.mark.parametrize(("status", "text"), [("approved", ""), ("pending", "by a person")])
def test_what_people_did_meanwhile_is_not_replaced(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, status: str, text: str
) -> None:
    def lock_after_a_person(project: Project, pk: int) -> Sample:
        Sample.objects.filter(pk=pk).update(status=status)
        if text:
            Revision.objects.create(sample_id=pk, number=1, author=bench.user, text=text)
        return lock_sample(project, pk)

    monkeypatch.setattr(settle, "lock_sample", lock_after_a_person)
    run = bench.refine()

    assert (run.result["better"], run.result["kept"]) == (0, 3)
    assert "meanwhile" in Suggestion.objects.all()[0].reason
    assert set(Revision.objects.values_list("text", flat=True)) == ({text} if text else set())


def test_an_equal_suggestion_costs_nothing_and_replaces_nothing(bench: Bench) -> None:
    run = bench.refine()
    asked = len(bench.models.asked)
    again = end(clone(run=run, user=bench.user))
    assert again.state == "failed" and "repeated the answer unchanged" in again.error
    assert Revision.objects.count() == 3 and len(bench.models.asked) > asked


class TestJudgeAgain:
    def saved(self, bench: Bench) -> Revision:
        sample = Sample.objects.order_by("pk")[0]
        body = {"text": BETTER, "version": sample.version}
        answer = bench.client.post(
            f"/api/v1/samples/{sample.pk}/revisions", body, JSON, headers=make_bearer(bench.user)
        )
        return Revision.objects.get(pk=answer.json()["id"])

    def test_a_saved_revision_gets_two_scores_beside_the_old(self, bench: Bench) -> None:
        revision = self.saved(bench)
        before = Sample.objects.values_list("score", "bucket").get(pk=revision.sample_id)

        answer = bench.post(f"/revisions/{revision.pk}/rejudge")

        assert answer.status_code == 202 and answer["Location"] == f"/api/v1/runs/{answer.json()['id']}"
        run = end(Run.objects.get(pk=answer.json()["id"]))
        assert run.state == "succeeded" and "score" not in str(run.result), "a blind reviewer may see the run"
        scores = {row.against: row.score for row in revision.text_scores.all()}
        assert scores == {"king": 100.0, "parent": 100.0}
        assert Sample.objects.values_list("score", "bucket").get(pk=revision.sample_id) == before
        assert f"/samples/{revision.sample_id}/" in bench.page(f"runs/{run.pk}/")

    def test_the_scores_are_hidden_from_the_blind(self, bench: Bench) -> None:
        revision = self.saved(bench)
        end(Run.objects.get(pk=bench.post(f"/revisions/{revision.pk}/rejudge").json()["id"]))
        path = f"/samples/{revision.sample_id}/revisions"
        assert bench.get(path, make_member(bench.project))["data"][0]["scores"] == []
        items = f"/runs/{Run.objects.latest('pk').pk}/items"
        assert "correctness" not in str(bench.get(items, make_member(bench.project))), "nor by the run's items"
        assert "correctness" in str(bench.get(items)), "an admin reads them"
        AuditEntry.objects.filter(action="sample.look").delete()
        Unblinding.objects.all().delete()
        assert {row["score"] for row in bench.get(path)["data"][0]["scores"]} == {100.0}, "so does the list"
        assert AuditEntry.objects.get(action="sample.look").actor == bench.user
        Project.objects.update(settings_json={**bench.project.settings_json, "review": {"blind": False}})
        assert len(bench.get(path)["data"][0]["scores"]) == 2
        page = bench.page(f"samples/{revision.sample_id}/panel/")
        assert "Against the king" in page and "Judge again" in page
        assert 'its parent had <b class="num">70.0</b> by the same panel' in page, "the new beside the old"
        names = ", ".join(name for name, _ in TextScore.objects.latest("pk").panel["judges"])
        assert f">{names}</span>" in page, "judges by name"

    def test_what_cannot(self, bench: Bench) -> None:
        revision = self.saved(bench)
        path = f"/revisions/{revision.pk}/rejudge"
        assert bench.post(path, make_member(bench.project)).status_code == 202
        Revision.objects.update(of="opponent")
        assert "of the other answer" in bench.post(path).json()["detail"]
