"""A mention tells the mentioned member, and nobody else anything."""

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from curation.notifications.models import Notification
from curation.projects.models import Member, Project
from curation.review.bulk.decide import decide_selected
from curation.review.decisions.decide import decide
from curation.review.decisions.revise import revise
from tests.factories import make_bearer, make_member, make_project, make_user
from tests.review import conftest
from tests.review.browsing import HTMX, form
from tests.review.rows import access_of, judged, reviewer_of

pytestmark = pytest.mark.django_db
project = conftest.project


def told() -> list[tuple[str, str]]:
    return [(row.user.username, row.text) for row in Notification.objects.order_by("id").select_related("user")]


def test_a_comment_a_reason_and_a_note_tell_the_members_whom_they_mention(client: Client, project: Project) -> None:
    ann = access_of(make_member(project, make_user("ann")), project)
    for name in ("bob", "eve.k", "x@y"):
        make_member(project, make_user(name))
    one, two = judged(project), judged(project)

    decide(access=ann, sample_id=one.pk, action="flag", reason="@bob?", comment="See @eve.k. and (@x@y), not a@bob.org")
    revise(access=ann, sample_id=one.pk, text="THOUGHT: x\n\n```bash\nls\n```", note="as @bob said", of="candidate")
    decide_selected(access=ann, action="reject", ids=[str(two.pk)], comment="cc @bob")

    about = f"ann mentioned you on sample {one.pk}"
    bulk = "ann mentioned you on 1 sample decided at once"
    assert sorted(told()) == sorted([("bob", about), ("eve.k", about), ("x@y", about), ("bob", about), ("bob", bulk)])
    told_bob = Notification.objects.select_related("user").get(text=bulk)
    client.force_login(told_bob.user)
    listed = client.get(told_bob.link).content.decode()
    assert f"sample-{two.pk}" in listed and f"sample-{one.pk}" not in listed


def test_a_name_that_exists_and_one_that_does_not_get_the_same_answer(project: Project) -> None:
    ann, stranger = reviewer_of(project), make_user("stranger")
    headers = make_bearer(ann.user)
    answers = []
    for name in (stranger.username, "nobody", ann.user.username):
        body = {"action": "flag", "reason": "look", "comment": f"@{name}"}
        path = f"/api/v1/samples/{judged(project).pk}/decisions"
        answers.append(Client().post(path, body, "application/json", headers=headers))
    differ = ("id", "sample", "created_at", "comment")
    shown = [{k: v for k, v in answer.json().items() if k not in differ} for answer in answers]
    assert [answer.status_code for answer in answers] == [201] * 3 and shown[0] == shown[1] == shown[2]
    said = [text.replace("stranger", "nobody").partition(" on sample")[0] for _, text in told()]
    assert said == ["No member of this project is called @nobody: your mention"] * 2
    assert {name for name, _ in told()} == {ann.user.username}


def test_the_author_of_a_mention_sees_at_once_that_it_tells_nobody(client: Client, project: Project) -> None:
    ann, sample = reviewer_of(project), judged(project)
    client.force_login(ann.user)
    values = form(sample, action="skip", comment="see @sam. and @bo (not @bo)")
    answer = client.post(reverse("sample-decide", args=[project.slug, sample.pk]), values, headers=HTMX)
    assert json.loads(answer["HX-Trigger"])["toast"] == {
        "text": f"No member of this project is called @sam or @bo: your mention on sample {sample.pk} tells nobody.",
        "tone": "attention",
    }
    decide(access=ann, sample_id=sample.pk, action="flag", reason="odd")
    flags = reverse("flags-resolve", args=[project.slug, sample.pk])
    assert "called @sam: your" in client.post(flags, {"note": "ask @sam"}, follow=True).content.decode()


def test_a_notification_quotes_nothing_that_a_blind_reviewer_may_not_see(client: Client, project: Project) -> None:
    ann, bob = reviewer_of(project), reviewer_of(project)
    sample = judged(project)
    decide(access=ann, sample_id=sample.pk, action="skip", comment=f"@{bob.user.username} the king is better")
    client.force_login(bob.user)

    page = client.get(reverse("notification-list")).content.decode()
    call = client.get("/api/v1/notifications", headers=make_bearer(bob.user)).json()["data"]
    log = client.get(f"/api/v1/samples/{sample.pk}/decisions", headers=make_bearer(bob.user)).json()["data"]

    assert f"mentioned you on sample {sample.pk}" in page and log == []
    assert "king" not in page + call[0]["text"] and call[0]["link"] == reverse(
        "sample-page", args=["billing", sample.pk]
    )


def test_the_bell_counts_what_is_unread_and_opening_it_marks_it_read(client: Client, project: Project) -> None:
    bob, other = make_member(project), make_member(make_project("elsewhere"))
    row, second = (
        Notification.objects.create(user=bob, project=project, kind="mention", text=f"t{n}", link=f"/p/billing/?{n}")
        for n in range(2)
    )
    client.force_login(bob)
    overview = reverse("overview", args=[project.slug])
    headers: dict[str, Any] = make_bearer(other)

    assert "Notifications, 2 unread" in client.get(overview).content.decode()
    assert client.post(reverse("notification-open", args=[row.pk]))["Location"] == "/p/billing/?0"
    assert "Notifications, 1 unread" in client.get(overview).content.decode()
    unread = client.get("/api/v1/notifications?unread=true", headers=make_bearer(bob)).json()["data"]
    assert [one["text"] for one in unread] == ["t1"]
    for path in (f"/api/v1/notifications/{second.pk}/read",):
        assert client.post(path, headers=headers).status_code == 404
    client.post(reverse("notification-read-all"))
    assert not Notification.objects.filter(read_at=None).exists()
    assert client.get("/api/v1/notifications", headers=headers).json()["data"] == []
    Member.objects.filter(user=bob).delete()
    assert client.get("/api/v1/notifications", headers=make_bearer(bob)).json()["data"] == []
