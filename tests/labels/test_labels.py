"""Questions of a project, and the labels that answer them: by REST, on the page, in filters, counts and exports."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from curation.labels.models import Label, LabelValue, Question
from curation.projects.access import Access
from curation.projects.models import AuditEntry, Project, Role
from curation.review.models import Pick
from curation.review.queue.seats import shown_seats
from curation.samples.models import Sample
from tests.factories import make_bearer, make_duel, make_member, make_trajectory
from tests.review import conftest
from tests.review.rows import judged, reviewer_of, show_all

pytestmark = pytest.mark.django_db
project, me = conftest.project, conftest.me
JSON = "application/json"
CHALLENGER = "THOUGHT: I léok 👀 first.\n\n```bash\nls -la\n```"


class Caller:
    """REST calls of one person."""

    def __init__(self, project: Project, role: str = Role.REVIEWER, user: User | None = None) -> None:
        self.user = user or make_member(project, role=role)
        self.slug, self.headers = project.slug, make_bearer(self.user)

    def get(self, path: str, **query: Any) -> Any:
        return Client().get(f"/api/v1{path}", query, headers=self.headers).json()

    def send(self, path: str, body: object, *, method: str = "POST", status: int = 201) -> Any:
        answer = Client().generic(method, f"/api/v1{path}", json.dumps(body), JSON, headers=self.headers)
        assert answer.status_code == status, answer.content
        return answer.json() if answer.content else None

    def label(self, sample: Sample, status: int = 201, **labels: Any) -> Any:
        return self.send(f"/samples/{sample.pk}/labels", {"labels": labels}, status=status)

    def approve(self, sample: Sample, status: int = 201) -> Any:
        return self.send(f"/samples/{sample.pk}/decisions", {"action": "approve"}, status=status)

    def listed(self, label: str) -> list[str]:
        return [row["id"] for row in self.get(f"/projects/{self.slug}/samples", label=label)["data"]]


@pytest.fixture
def ask(project: Project) -> Any:
    """Adds a question as an admin, by REST."""
    admin = Caller(project, Role.ADMIN)

    def add(name: str, kind: str, *choices: object, **values: object) -> Any:
        body = {"name": name, "title": name.replace("_", " ").capitalize(), "kind": kind, "choices": choices, **values}
        return admin.send(f"/projects/{project.slug}/questions", body)

    add.admin = admin  # type: ignore[attr-defined]
    return add


def test_each_kind_of_answer_is_kept_as_given_and_a_wrong_one_is_refused_by_name(project: Project, ask: Any) -> None:
    ask("error", "label", "wrong file", "no test")
    ask("also", "multi_label", "slow", "unsafe", "long")
    ask("severity", "rating", 1, 2, 3)
    ask("where", "span", "wrong")
    ask("why", "text")
    show_all(project)
    sample, ann = judged(project, challenger=CHALLENGER), Caller(project)
    span = {"field": "challenger", "start": 11, "end": 17, "label": "wrong"}

    given: Any = {"error": "no test", "also": ["long", "slow"], "severity": 3, "where": [span], "why": " It guesses. "}
    ann.label(sample, **given)

    found = {row["question"]: row["value"] for row in ann.get(f"/samples/{sample.pk}/labels")["data"]}
    assert found == {
        "error": "no test", "also": ["slow", "long"], "severity": 3, "why": "It guesses.",
        "where": [{**span, "revision": None}],
    }  # fmt: skip
    assert CHALLENGER[11:17] == "léok 👀"
    wrong = {
        "error": "other", "also": [], "severity": 4, "why": " ", "nosuch": 1,
        "where": [{**span, "end": len(CHALLENGER) + 1}],
    }  # fmt: skip
    refused = ann.label(sample, status=422, **wrong)
    assert {error["path"] for error in refused["errors"]} == {f"labels.{name}" for name in wrong}
    for bad in (
        {"field": "nowhere"},
        {"field": ["king"]},
        {"start": 17},
        {"label": "right"},
        {"revision": "999"},
        {"start": -1},
    ):
        ann.label(sample, status=422, where=[{**span, **bad}])
    assert {row["question"]: row["value"] for row in ann.get(f"/samples/{sample.pk}/labels")["data"]} == found


def test_a_span_names_the_text_that_was_read_and_outlives_a_revision(project: Project, ask: Any) -> None:
    ask("where", "span", "wrong")
    show_all(project)
    sample, ann = judged(project, challenger=CHALLENGER), Caller(project)
    span = {"field": "challenger", "start": 0, "end": len(CHALLENGER), "label": "wrong"}
    ann.label(sample, where=[span])
    short = "THOUGHT: Short.\n\n```bash\nls\n```"
    revision = ann.send(f"/samples/{sample.pk}/revisions", {"text": short})["id"]

    ann.label(sample, status=422, where=[span])
    ann.label(sample, where=[{**span, "revision": None}, {**span, "end": len(short)}])

    spans = ann.get(f"/samples/{sample.pk}/labels")["data"][0]["value"]
    assert [(row["revision"], row["end"]) for row in spans] == [(None, len(CHALLENGER)), (revision, len(short))]
    turns = make_trajectory(project)
    assert turns.sample is not None
    ann.label(turns.sample, where=[{"field": "turn:0", "start": 0, "end": 1, "label": "wrong"}])
    ann.label(turns.sample, status=422, where=[{"field": "turn:999", "start": 0, "end": 1, "label": "wrong"}])


def test_labels_are_only_added_and_the_log_names_who_answered_what(project: Project, ask: Any) -> None:
    ask("error", "label", "wrong file", "no test")
    sample, ann = judged(project), Caller(project)

    for value in ("no test", "no test", "wrong file", None):
        ann.label(sample, error=value)

    rows = ann.get(f"/projects/{project.slug}/labels", sort="id", count="true")
    assert [(row["value"], row["current"], row["version"]) for row in rows["data"]] == [
        ("no test", False, 1), ("wrong file", False, 1), (None, True, 1),
    ]  # fmt: skip
    assert rows["total"] == 3 and ann.get(f"/samples/{sample.pk}/labels")["data"] == []
    entries = AuditEntry.objects.filter(action="sample.label", subject=str(sample.pk))
    assert [entry.data["questions"] for entry in entries.order_by("id")] == [["error"]] * 3
    stale = {"labels": {"error": "no test"}, "version": 7}
    assert ann.send(f"/samples/{sample.pk}/labels", stale, status=412)["current"]["version"] == 1


def test_nobody_sees_anothers_answer_before_the_sample_is_decided(project: Project, ask: Any) -> None:
    ask("error", "label", "wrong file", "no test")
    sample, ann = judged(project), Caller(project)
    ann.label(sample, error="no test")
    others = [Caller(project, role) for role in (Role.REVIEWER, Role.VIEWER, Role.CURATOR, Role.ADMIN)]

    def seen_by(caller: Caller) -> tuple[int, int, list[str], int]:
        counts = caller.get(f"/projects/{project.slug}/questions")["data"][0]["counts"]
        return (
            len(caller.get(f"/samples/{sample.pk}/labels")["data"]),
            len(caller.get(f"/projects/{project.slug}/labels")["data"]),
            caller.listed("error=no test"),
            counts["no test"],
        )

    assert [seen_by(caller) for caller in others] == [(0, 0, [], 0)] * 4
    assert seen_by(ann) == (1, 1, [], 0)
    ann.approve(sample)
    assert [seen_by(caller) for caller in (ann, *others)] == [(1, 1, [str(sample.pk)], 1)] * 5


def test_a_blind_reviewer_marks_left_and_right_and_is_not_told_which_is_which(project: Project, ask: Any) -> None:
    ask("where", "span", "wrong")
    sample = judged(project, challenger=CHALLENGER)
    access = reviewer_of(project)
    ann = Caller(project, user=access.user)
    span = {"field": "left", "start": 0, "end": 4, "label": "wrong"}

    for side in ("challenger", "king"):
        refused = ann.label(sample, status=422, where=[{**span, "field": side}])
        assert "left or right" in refused["detail"]
    shown = ann.label(sample, where=[span])["data"][0]["value"]

    assert [row["field"] for row in shown] == ["left"]
    left = shown_seats(access, sample, None).left
    assert (Label.objects.get().value or [{}])[0]["field"] == ("king" if left == Pick.KING else "challenger")


def test_a_required_question_is_answered_before_approving(client: Client, project: Project, ask: Any) -> None:
    ask("error", "label", "none", "wrong file", required=True)
    ask("only_sessions", "label", "a", "b", required=True, about="trajectory")
    show_all(project)
    one, two, three = (judged(project) for _ in range(3))
    ann, bob = Caller(project), Caller(project)
    bob.label(one, error="none")

    refused = ann.approve(one, status=422)

    assert (refused["code"], refused["errors"][0]["path"]) == ("labels_missing", "labels.error")
    assert "Error" in refused["detail"] and Sample.objects.get(pk=one.pk).status == "pending"
    ann.label(one, error="none")
    ann.approve(one)
    ann.label(two, error="wrong file")
    bulk = ann.send("/samples/bulk", {"action": "approve", "ids": [str(two.pk), str(three.pk)]}, status=200)
    assert [row["ok"] for row in bulk["data"]] == [True, False] and "Error" in bulk["data"][1]["error"]
    ann.send(f"/samples/{three.pk}/decisions", {"action": "reject"})


def test_a_question_with_answers_is_archived_and_never_changed(project: Project, ask: Any) -> None:
    asked = ask("error", "label", "wrong file", "no test")
    address = f"/projects/{project.slug}/questions/{asked['id']}"
    admin, ann, sample = ask.admin, Caller(project), judged(project)
    admin.send(address, {"choices": ["wrong file", "no test", "slow"]}, method="PATCH", status=200)
    ann.label(sample, error="slow")

    for change in (
        {"choices": ["slow", "no test"]},
        {"title": "Other"},
        {"kind": "text", "choices": []},
        {"about": "turn"},
    ):
        assert admin.send(address, change, method="PATCH", status=409)["code"] == "has_answers"
    assert admin.send(address, None, method="DELETE", status=409)["code"] == "has_answers"
    admin.send(address, {"archived": True}, method="PATCH", status=200)

    ann.label(sample, status=422, error="no test")
    ann.approve(sample)
    assert ann.listed("error=slow") == [str(sample.pk)] and Question.objects.get().archived_at is not None
    unasked = ask("unasked", "text")
    admin.send(f"/projects/{project.slug}/questions/{unasked['id']}", None, method="DELETE", status=204)
    assert ask("other", "rating", 3, 1)["choices"] == [1, 3]
    curator = Caller(project, Role.CURATOR)
    curator.send(f"/projects/{project.slug}/questions", {"name": "x", "title": "X", "kind": "text"}, status=403)


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        ({"name": "Error type"}, "name"),
        ({"title": " "}, "title"),
        ({"kind": "stars"}, "kind"),
        ({"choices": ["a"]}, "choices"),
        ({"choices": ["a", "a"]}, "choices"),
        ({"choices": ["a", "*"]}, "choices"),
        ({"kind": "rating", "choices": ["1", "2"]}, "choices"),
        ({"kind": "text", "choices": ["a", "b"]}, "choices"),
        ({"about": "duel"}, "about"),
    ],
)
def test_a_wrong_question_is_refused_at_its_field(project: Project, ask: Any, wrong: Any, path: str) -> None:
    body = {"name": "error", "title": "Error", "kind": "label", "choices": ["a", "b"], **wrong}
    refused = ask.admin.send(f"/projects/{project.slug}/questions", body, status=422)
    assert [error["path"] for error in refused["errors"]] == [path] and not Question.objects.exists()


def test_every_count_opens_as_many_samples_as_it_says(client: Client, project: Project, ask: Any) -> None:
    ask("error", "multi_label", "wrong file, or path", "no test")
    ask("why", "text")
    show_all(project)
    ann, bob = Caller(project), Caller(project)
    for place, values in enumerate((["no test"], ["no test", "wrong file, or path"], None)):
        sample = judged(project)
        ann.label(sample, error=values, why="It guesses." if place else None)
        bob.label(sample, error=["no test"])
        ann.approve(sample)
    ann.label(Sample.objects.latest("id"), error=["wrong file, or path"])

    client.force_login(ann.user)
    page = client.get(reverse("question-list", args=[project.slug]))

    links = [link for _, links in page.context["rows"] for link in links]
    assert [(word, count) for word, count, _ in links] == [
        ("wrong file, or path", 2),
        ("no test", 3),
        ("any answer", 2),
    ]
    for _, count, url in links:
        assert len(client.get(url).context["page"]["rows"]) == count
    assert LabelValue.objects.filter(label__current=False).count() == 0


def test_the_page_asks_and_saves_with_keys_of_its_own(client: Client, project: Project, me: Access, ask: Any) -> None:
    ask("error", "label", "wrong file", "no test", required=True)
    ask("severity", "rating", 1, 2)
    ask("where", "span", "wrong")
    ask("why", "text")
    sample = judged(project, challenger=CHALLENGER, king="THOUGHT: ls and ls.\n\n```bash\nls\n```")
    page = client.post(reverse("sample-page", args=[project.slug, sample.pk])).content.decode()
    address = reverse("sample-labels", args=[project.slug, sample.pk])
    shown = {f"label-{name}-shown": "" for name in ("error", "severity", "where", "why")}
    left = shown_seats(me, sample, sample.leases.get()).left
    sides = ("right", "left") if left == Pick.KING else ("left", "right")  # challenger, king
    sent = {**shown, "version": 1, "label-error": "no test", "label-severity": "2", "label-why": "It guesses."}
    htmx = {"HX-Request": "true"}

    assert 'data-missing="Error"' in page
    many = client.post(address, {**sent, "label-where": "wrong", "quote": "ls", "quote_in": sides[1]}, headers=htmx)
    assert many.status_code == 422 and "3 times" in many.content.decode() and many["HX-Retarget"] == "#labels-error"
    assert not Label.objects.exists()
    quoted = {"label-where": "wrong", "quote": "léok 👀", "quote_in": sides[0]}
    saved = client.post(address, {**sent, **quoted}, headers=htmx).content.decode()
    assert "data-missing" not in saved and "léok 👀" in saved and "challenger" not in saved

    values = dict(Label.objects.values_list("question__name", "value"))
    assert (values["error"], values["severity"], values["why"]) == ("no test", 2, "It guesses.")
    assert [CHALLENGER[span["start"] : span["end"]] for span in values["where"] or ()] == ["léok 👀"]
    again = client.post(address, {**sent, **quoted}, headers=htmx)
    assert again.status_code == 422 and "another window" in again.content.decode()
    pk = Label.objects.get(question__name="where").pk
    client.post(address, {**sent, "label-where-shown": pk, "label-error": "wrong file"}, headers=htmx)
    current = dict(Label.objects.filter(current=True).values_list("question__name", "value"))
    assert (current["error"], current["where"]) == ("wrong file", None)


def test_a_settings_admin_adds_requires_and_archives_on_the_page(client: Client, project: Project) -> None:
    client.force_login(make_member(project, role=Role.ADMIN))
    url = reverse("question-list", args=[project.slug])
    form = {"title": "How bad?", "name": "severity", "kind": "rating", "choices": "1\n2\n3", "required": "on"}

    assert client.post(url, {**form, "choices": "1\nbad"}).status_code == 422
    assert client.post(url, form).status_code == 302
    question = Question.objects.get()
    assert (question.choices, question.required) == ([1, 2, 3], True)
    change = reverse("question-change", args=[project.slug, question.pk])
    client.post(change, {"do": "unrequire"})
    client.post(change, {"do": "archive"})
    question.refresh_from_db()
    assert question.archived_at is not None and not question.required
    client.post(change, {"do": "delete"})
    assert not Question.objects.exists()
    client.force_login(make_member(project))
    assert client.post(url, form).status_code == 403


def test_a_page_without_questions_reads_no_labels(client: Client, project: Project, me: Access) -> None:
    make_duel(project)
    page = client.post(reverse("queue", args=[project.slug]), follow=True)
    assert b'id="labels"' not in page.content
