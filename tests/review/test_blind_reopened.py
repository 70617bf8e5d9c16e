"""A sample that a new text reopened is hidden from reviewers without a decision on it. Responses to curators about
their own decisions match the log."""

from typing import Any

import pytest
from django.test import Client

from curation.projects.access import Access
from curation.projects.models import AuditEntry, Role
from curation.review.assignments.second_opinion import ask_second_opinion
from curation.review.decisions.decide import decide
from curation.review.decisions.revise import revise
from curation.samples.models import Sample
from tests.factories import make_bearer, make_project
from tests.review.rows import judged, reviewer_of

pytestmark = pytest.mark.django_db


class Reopened:
    """A curator approved the sample, another one revised it, and a reviewer has done nothing."""

    def __init__(self) -> None:
        self.project = make_project("billing")
        self.curator, self.other = (reviewer_of(self.project, Role.CURATOR) for _ in range(2))
        self.me = reviewer_of(self.project)
        self.sample = judged(self.project, score=71.5, bucket="final")
        decide(access=self.curator, sample_id=self.sample.pk, action="approve", comment="remark-of-the-curator")
        revise(access=self.other, sample_id=self.sample.pk, text="second")
        self.sample = Sample.objects.get()
        assert self.sample.status == "pending"

    def ask(self, access: Access, method: str, path: str, **body: object) -> Any:
        send = getattr(Client(), method)
        return send(f"/api/v1/{path}", body, "application/json", headers=make_bearer(access.user)).json()

    def get(self, access: Access, path: str = "") -> Any:
        return Client().get(f"/api/v1/samples/{self.sample.pk}{path}", headers=make_bearer(access.user)).json()

    def page(self, access: Access) -> str:
        client = Client()
        client.force_login(access.user)
        return client.post(f"/p/billing/samples/{self.sample.pk}/").content.decode()


def assert_hidden(case: Reopened, access: Access) -> None:
    found = case.get(access)
    assert (found["hidden"], found["answers"], found["score"], found["bucket"]) == (True, None, None, None)
    assert case.get(access, "/decisions")["data"] == []
    assert [row["of"] in ("left", "right") for row in case.get(access, "/revisions")["data"]] == [True]
    page = case.page(access)
    assert "remark-of-the-curator" not in page and "71.5" not in page and "reopened it" not in page


def test_it_is_hidden_from_a_reviewer_who_has_not_decided_it() -> None:
    case = Reopened()
    assert_hidden(case, case.me)
    taken = case.ask(case.me, "post", "projects/billing/queue/next", resume=True)
    assert taken["lease"]["seats"] is None and taken["sample"]["hidden"] is True


def test_it_is_hidden_from_a_reviewer_who_is_asked_for_a_second_opinion() -> None:
    case = Reopened()
    ask_second_opinion(access=case.curator, sample_id=case.sample.pk, username=case.me.user.username)
    assert_hidden(case, case.me)
    taken = case.ask(case.me, "post", "projects/billing/queue/next", resume=True)
    assert taken["sample"]["id"] == str(case.sample.pk) and taken["lease"]["seats"] is None


def test_who_has_decided_it_sees_it() -> None:
    case = Reopened()
    decide(access=case.me, sample_id=case.sample.pk, action="approve", version=case.sample.version)
    revise(access=case.other, sample_id=case.sample.pk, text="third")
    assert Sample.objects.get().status == "pending"
    assert case.get(case.me)["hidden"] is False and case.get(case.me)["score"] == 71.5
    assert "remark-of-the-curator" in case.page(case.me)
    assert [row["action"] for row in case.get(case.me, "/decisions?sort=id")["data"]] == [
        "approve",
        "reopen",
        "approve",
        "reopen",
    ]


def test_a_decision_that_waits_changes_nothing_for_anybody() -> None:
    case = Reopened()
    ask_second_opinion(access=case.curator, sample_id=case.sample.pk, username=case.me.user.username)
    decide(access=case.me, sample_id=case.sample.pk, action="reject", version=case.sample.version)
    assert Sample.objects.get().status == "pending"
    assert case.get(case.me)["hidden"] is True
    assert [row["action"] for row in case.get(case.me, "/decisions")["data"]] == ["reject"]
    assert "remark-of-the-curator" in case.page(case.curator)


def test_a_curator_is_answered_what_the_log_has_and_the_audit_log_notes_it() -> None:
    project = make_project("billing", settings_json={"review": {"overlap": 2, "overlap_on": "all"}})
    curator = reviewer_of(project, Role.CURATOR)
    path = f"/api/v1/samples/{judged(project).pk}"
    client, headers = Client(), make_bearer(curator.user)
    body = {"action": "approve", "preference": "king"}
    decided = client.post(f"{path}/decisions", body, "application/json", headers=headers).json()
    assert decided["waits"] is True and decided["pick"] == "opponent" and len(decided["text_sha256"]) == 64
    assert AuditEntry.objects.get(action="sample.look").actor == curator.user
    undone = client.post(f"{path}/undo", headers=headers).json()
    assert (undone["undone"], undone["pick"], undone["text_sha256"]) == (True, "opponent", decided["text_sha256"])
    logged = client.get(f"{path}/decisions?sort=id", headers=headers).json()["data"][0]
    assert logged == undone
