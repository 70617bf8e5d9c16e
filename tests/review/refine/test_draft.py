import re
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from curation.duels.models import PullRequest
from curation.projects.models import AuditEntry, Role
from curation.review.models import Draft, Revision, Suggestion
from curation.runs.models import Call, Run
from curation.samples.models import Sample, SampleStatus
from tests.driving import (
    end,
    storage,  # noqa: F401 - a fixture of every test here
)
from tests.duels.conftest import models  # noqa: F401 - a fixture
from tests.duels.running import CHALLENGER, KING, Models
from tests.factories import (
    make_bearer,
    make_duel,
    make_endpoint,
    make_member,
    make_project,
    make_pull_request,
)

pytestmark = pytest.mark.django_db(transaction=True)
JSON = "application/json"
NOTE = "Read the first 80 lines only."
BETTER = "THOUGHT: I read what fails first.\n\n```bash\nsed -n '1,80p' IMPROVED\n```"


class Bench:
    """A project with one judged duel, a reviewer, and a model that improves answers."""

    def __init__(self, models: Models) -> None:  # noqa: F811
        self.models, self.client, self.project = models, Client(), make_project()
        self.user = make_member(self.project)
        make_endpoint(self.project, "teacher", model="fake/teacher", price_in="2.0", price_out="4.0")
        models.says["teacher"] = lambda request: BETTER
        run = Run.objects.create(project=self.project, kind="duel", state="succeeded", params={"show_reference": False})
        duel = make_duel(self.project, king=KING, challenger=CHALLENGER, run=run)
        make_pull_request(
            self.project, duel.prompt.instance_id, title="Round half to even", patch="+    quantise(total)"
        )

    def get(self, path: str, user: User | None = None) -> Any:
        return self.client.get(f"/api/v1{path}", headers=make_bearer(user or self.user)).json()


@pytest.fixture
def bench(models: Models) -> Bench:  # noqa: F811
    return Bench(models)


def ask(bench: Bench, sample: Sample, **body: Any) -> Any:
    path = f"/api/v1/samples/{sample.pk}/suggestions"
    return bench.client.post(path, {"model": "teacher", **body}, JSON, headers=make_bearer(bench.user))


def written(bench: Bench, sample: Sample, **body: Any) -> Any:
    """Ask for a suggestion, let a worker write it, and return it."""
    answer = ask(bench, sample, **body)
    assert answer.status_code == 202, answer.content
    end(Run.objects.latest("pk"))
    return bench.get(answer["Location"].removeprefix("/api/v1"))


def save(bench: Bench, sample: Sample, text: str, suggestion: str, **body: Any) -> Any:
    path = f"/api/v1/samples/{sample.pk}/revisions"
    return bench.client.post(
        path, {"text": text, "suggestion": suggestion, **body}, JSON, headers=make_bearer(bench.user)
    )


def decided() -> Sample:
    """A sample that is to be refined, which is not blind any more."""
    sample = Sample.objects.order_by("pk")[0]
    Sample.objects.filter(pk=sample.pk).update(status=SampleStatus.NEEDS_REFINE)
    return sample


def test_the_model_gets_the_answer_the_reasons_and_the_note(bench: Bench) -> None:
    found = written(bench, decided(), note=NOTE)

    sent = bench.models.text_sent("teacher")
    assert "CHALLENGER" in sent and "It was answer 2: correctness better" in sent and "The second reads" in sent
    assert re.search(rf'<note key="(\w+)">\n{re.escape(NOTE)}\n</note key="\1">', sent)
    for hidden in ("Round half to even", "quantise", "KING"):
        assert hidden not in sent, hidden
    assert (found["text"], found["outcome"], found["state"]) == (BETTER, "draft", "succeeded")
    assert (found["of"], found["asked_by"], found["note"]) == ("candidate", bench.user.username, NOTE)
    call = Call.objects.get(endpoint_name="teacher")
    assert (found["call"], Decimal(found["cost"])) == (str(call.pk), Run.objects.latest("pk").cost)


def test_a_suggestion_is_no_revision_before_the_person_saves_it(bench: Bench) -> None:
    sample = decided()
    found = written(bench, sample)
    before = (Sample.objects.values().get(pk=sample.pk), Revision.objects.count(), Draft.objects.count())
    assert before[1:] == (0, 0) and before[0]["version"] == 1

    answer = save(bench, sample, BETTER, found["id"])

    assert answer.status_code == 201, answer.content
    revision = Revision.objects.get()
    assert (revision.author, revision.model) == (bench.user, "")
    source = answer.json()["suggestion"]
    assert source == {"id": found["id"], "model": "teacher", "call": found["call"], "edited": False}
    entry = AuditEntry.objects.get(action="sample.revise")
    assert (entry.data["call"], entry.data["model"]) == (int(found["call"]), "teacher")
    assert bench.get(f"/suggestions/{found['id']}")["outcome"] == "saved"
    again = save(bench, sample, BETTER + " ", found["id"])
    assert again.status_code == 422 and "saved as a revision already" in again.json()["detail"]


def test_an_edited_suggestion_says_so(bench: Bench) -> None:
    sample = decided()
    found = written(bench, sample)
    assert save(bench, sample, BETTER + "\n# by hand", found["id"]).json()["suggestion"]["edited"] is True


@pytest.mark.parametrize("of", ["challenger", "king"])
def test_a_blind_sample_gives_neither_seat_nor_verdict(bench: Bench, of: str) -> None:
    sample = Sample.objects.order_by("pk")[0]
    seats = bench.client.post(
        f"/api/v1/projects/{bench.project.slug}/queue/next", {}, JSON, headers=make_bearer(bench.user)
    ).json()
    sample = Sample.objects.get(pk=seats["sample"]["id"])
    mark = of.upper()
    place = "left" if mark in seats["sample"]["left"]["text"] else "right"
    PullRequest.objects.update(files=["billing/hidden_rounding.py"])
    said = "THOUGHT: I open it.\n\n```bash\nsed -n 1,80p billing/hidden_rounding.py # a.lee@acme-pay.com\n```"
    bench.models.says["teacher"] = lambda request: said

    found = written(bench, sample, of=place)

    sent = bench.models.text_sent("teacher")
    assert mark in sent and "No reasons are known." in sent
    for told in ("correctness better", "correctness worse", "The second reads", "It was answer", "judge-a"):
        assert told not in sent, told
    assert (found["of"], found["reasons"], found["leak"]) == (place, False, {"score": None, "spans": []})
    assert found["flags"] == ["pii"]
    run = Run.objects.latest("pk")
    for path in (f"/runs/{run.pk}", f"/runs/{run.pk}/items", f"/runs/{run.pk}/calls", f"/runs/{run.pk}/events"):
        shown = str(bench.get(path)).lower()
        for told in ("candidate", "opponent", "challenger", "king", "leak"):
            assert told not in shown.replace("suggesting", ""), (path, told)
    assert Suggestion.objects.get().leak_flag, "the lint has read it"
    answer = save(bench, sample, said, found["id"], of=place)
    assert answer.status_code == 201 and answer.json()["suggestion"] is None
    assert Revision.objects.get().leak_flag and "leak" in Sample.objects.get(pk=sample.pk).shown_flags(hidden=False)


def test_the_note_of_a_blind_reviewer_stays_with_the_suggestion(bench: Bench) -> None:
    sample = Sample.objects.order_by("pk")[0]
    found = written(bench, sample, of="left", note="left is better")
    run = Run.objects.latest("pk")
    other = make_member(bench.project)
    assert "left is better" not in str(bench.get(f"/runs/{run.pk}", other))
    assert bench.get(f"/suggestions/{found['id']}", other)["status"] == 404


def test_what_cannot_be_asked(bench: Bench) -> None:
    sample = decided()
    assert "no model nobody" in ask(bench, sample, model="nobody").json()["detail"]
    assert ask(bench, sample, of="draw").status_code == 422
    assert ask(bench, sample).status_code == 202
    waiting = ask(bench, sample)
    assert (waiting.status_code, waiting.json()["code"]) == (409, "suggestion_waiting")
    reviewer, bench.user = bench.user, make_member(bench.project, role=Role.VIEWER)
    stranger = save(bench, sample, BETTER, str(Suggestion.objects.get().pk))
    assert stranger.status_code == 403
    bench.user = reviewer
    assert "no suggestion" in save(bench, sample, BETTER, str(Suggestion.objects.get().pk)).json()["detail"], "no text"


def test_asking_again_writes_another_text(bench: Bench) -> None:
    sample = decided()
    written(bench, sample)
    bench.models.says["teacher"] = lambda request: BETTER + "\n"
    written(bench, sample)
    assert len(bench.models.requests("teacher")) == 2 and Suggestion.objects.count() == 2


def test_a_failure_is_said_in_words(bench: Bench) -> None:
    bench.models.says["teacher"] = lambda request: ""
    found = written(bench, decided())
    assert (found["state"], found["text"], found["error"]) == ("failed", "", "The answer is empty.")


class TestPage:
    def at(self, bench: Bench, name: str, *args: object) -> str:
        return reverse(name, args=[bench.project.slug, *args])

    def test_from_the_button_to_the_revision(self, bench: Bench) -> None:
        sample, client = decided(), Client()
        client.force_login(bench.user)
        editor = client.get(self.at(bench, "answer-editor", sample.pk), {"preference": "challenger"})
        of = editor.context["of"]
        opened = client.get(self.at(bench, "sample-suggest", sample.pk), {"of": of}).content.decode()
        assert '<option value="teacher"' in opened
        values = {"of": of, "suggest_model": "teacher", "note": NOTE, "preference": "challenger"}

        asked = client.post(self.at(bench, "sample-suggest", sample.pk), values).content.decode()
        row = Suggestion.objects.get()
        state = self.at(bench, "sample-suggestion", sample.pk, row.pk)
        assert "Waiting for a worker" in asked and f'hx-get="{state}"' in asked

        end(Run.objects.latest("pk"))
        shown = client.get(state).content.decode()
        assert "every 1500ms" not in shown and "IMPROVED" in shown and "and your note" in shown
        assert not Draft.objects.exists()

        used = client.post(self.at(bench, "sample-suggestion-use", sample.pk, row.pk), values).content.decode()
        assert Draft.objects.get().text == BETTER and f'name="suggestion" value="{row.pk}"' in used
        reopened = client.get(self.at(bench, "answer-editor", sample.pk), {"preference": "challenger"})
        assert f'name="suggestion" value="{row.pk}"' in reopened.content.decode(), "a draft keeps where it comes from"
        form = {**values, "suggestion": row.pk, "text": BETTER, "version": 1, "then": "stay"}
        assert client.post(self.at(bench, "sample-revise", sample.pk), form).status_code == 200
        assert Revision.objects.get().suggestion == row
        row.refresh_from_db()
        page = client.get(self.at(bench, "sample-page", sample.pk)).content.decode()
        assert f"{row.model}'s suggestion" in page
        assert f"/calls/{row.call_id}/" in page and NOTE in page

    def test_a_failure_and_an_unknown_model(self, bench: Bench) -> None:
        sample, client = decided(), Client()
        client.force_login(bench.user)
        of = client.get(self.at(bench, "answer-editor", sample.pk), {"preference": "challenger"}).context["of"]
        path = self.at(bench, "sample-suggest", sample.pk)
        refused = client.post(path, {"of": of, "suggest_model": "nobody"}).content.decode()
        assert "There is no model nobody" in refused
        bench.models.says["teacher"] = lambda request: ""
        client.post(path, {"of": of, "suggest_model": "teacher"})
        end(Run.objects.latest("pk"))
        shown = client.get(path, {"of": of}).content.decode()
        assert "teacher wrote no suggestion. The answer is empty." in shown and "ask again" in shown

    def test_the_diff_of_the_text_in_the_editor(self, bench: Bench) -> None:
        sample, client = decided(), Client()
        client.force_login(bench.user)
        of = client.get(self.at(bench, "answer-editor", sample.pk), {"preference": "challenger"}).context["of"]
        path = self.at(bench, "answer-editor-diff", sample.pk)
        text = {"of": of, "text": BETTER}
        parent = client.post(path, {**text, "diff_against": "parent"}).content.decode()
        assert "<del>CHALLENGER</del>" in parent and "<ins>IMPROVED</ins>" in parent
        other = client.post(path, {**text, "diff_against": "other"}).content.decode()
        assert "KING" in other and "CHALLENGER" not in other
        assert client.post(path, text).content == b""
