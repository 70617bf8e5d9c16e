import json
from typing import Any

import pytest
from django.test import Client

from curation.projects.models import Project, Role
from curation.review.models import Decision, Lease, Revision
from curation.samples.models import Sample
from tests.factories import CHALLENGER, KING, make_bearer, make_duel, make_member, make_project, make_sample, make_user
from tests.review.rows import judged, show_all

pytestmark = pytest.mark.django_db
JSON = "application/json"


class Caller:
    """A member of the project who calls by token."""

    def __init__(self, client: Client, project: Project, role: str = Role.REVIEWER, *scopes: str) -> None:
        self.user = make_member(project, role=role)
        self.client, self.headers = client, make_bearer(self.user, *scopes)

    def __call__(self, method: str, path: str, body: object = None, **headers: str) -> Any:
        sent = b"" if body is None else json.dumps(body).encode()
        return self.client.generic(method, f"/api/v1{path}", sent, JSON, headers={**self.headers, **headers})


@pytest.fixture
def call(client: Client, project: Project) -> Caller:
    return Caller(client, project)


def test_queue_next_gives_a_lease_and_the_sample_with_both_answers(call: Caller, project: Project) -> None:
    show_all(project)
    duel = make_duel(project)
    answer = call("POST", "/projects/billing/queue/next", {"order": "borderline"})
    assert answer.status_code == 200
    lease, sample = answer.json()["lease"], answer.json()["sample"]
    row = Lease.objects.get()
    assert (lease["id"], lease["sample"]) == (str(row.pk), str(duel.sample_id))
    assert lease["seats"]["left"] == ("challenger" if row.swapped else "king")
    assert sample["id"] == str(duel.sample_id) and sample["duel"] == str(duel.pk)
    assert sample["answers"]["king"]["text"] == KING and sample["answers"]["challenger"]["text"] == CHALLENGER
    assert sample["answers"]["challenger"]["facts"]["blocks"] == 1
    assert sample["in_review_by"] == call.user.username


def test_an_empty_queue_answers_204(call: Caller) -> None:
    answer = call("POST", "/projects/billing/queue/next")
    assert (answer.status_code, answer.content) == (204, b"")


def test_queue_next_twice_gives_two_samples_and_resume_gives_the_first_again(call: Caller, project: Project) -> None:
    for _ in range(2):
        make_duel(project)
    first, second = (call("POST", "/projects/billing/queue/next").json()["sample"]["id"] for _ in range(2))
    assert first != second
    resumed = call("POST", "/projects/billing/queue/next", {"resume": True}).json()["sample"]["id"]
    assert resumed == second


@pytest.mark.parametrize("body", [{"order": "best"}, {"ordre": "newest"}, {"filter": {"colour": "red"}}])
def test_queue_next_refuses_what_it_does_not_know(call: Caller, project: Project, body: dict[str, Any]) -> None:
    make_duel(project)
    answer = call("POST", "/projects/billing/queue/next", body)
    assert answer.status_code == 422 and answer["Content-Type"] == "application/problem+json"
    assert not Lease.objects.exists()


def test_heartbeat_and_release(call: Caller, project: Project, client: Client) -> None:
    make_duel(project)
    lease = call("POST", "/projects/billing/queue/next").json()["lease"]
    assert call("POST", f"/leases/{lease['id']}/heartbeat").json()["until"] >= lease["until"]

    other = Caller(client, project)
    assert other("POST", f"/leases/{lease['id']}/heartbeat").status_code == 409
    held = other("POST", f"/samples/{lease['sample']}/decisions", {"action": "approve"})
    assert held.status_code == 409 and call.user.username in held.json()["detail"]
    assert other("DELETE", f"/leases/{lease['id']}").status_code == 204
    assert Lease.objects.exists(), "another's lease stays"
    stranger = Caller(client, make_project())
    assert stranger("DELETE", f"/leases/{lease['id']}").status_code == 404

    assert call("DELETE", f"/leases/{lease['id']}").status_code == 204
    assert not Lease.objects.exists()
    assert call("POST", f"/leases/{lease['id']}/heartbeat").status_code == 404


def test_a_decision_is_answered_as_the_contract_says_and_logged(call: Caller, project: Project) -> None:
    sample = judged(project)
    body = {"action": "approve", "reason": "", "comment": "fine", "preference": "king", "seconds": 2}
    answer = call("POST", f"/samples/{sample.pk}/decisions", body)
    assert answer.status_code == 201 and answer["ETag"] == '"2"'
    line = answer.json()
    assert {k: line[k] for k in ("action", "comment", "preference", "reviewer", "seconds", "version", "undone")} == {
        "action": "approve",
        "comment": "fine",
        "preference": "king",
        "reviewer": call.user.username,
        "seconds": 2.0,
        "version": 1,
        "undone": False,
    }
    assert line["id"] == str(Decision.objects.get().pk) and line["created_at"].endswith("Z")
    listed = call("GET", f"/samples/{sample.pk}/decisions?count=true").json()
    assert listed["data"] == [line] and listed["total"] == 1 and listed["next_cursor"] is None


def test_a_stale_decision_is_412_and_overwrites_nothing(call: Caller, project: Project) -> None:
    sample = judged(project)
    call("POST", f"/samples/{sample.pk}/decisions", {"action": "approve"})
    answer = call("POST", f"/samples/{sample.pk}/decisions", {"action": "reject", "version": 1})
    assert answer.status_code == 412
    assert answer.json()["current"]["version"] == 2 and answer.json()["current"]["status"] == "approved"
    sample.refresh_from_db()
    assert sample.status == "approved"


@pytest.mark.parametrize("given", ['"1"', '"abc"', '"1", "7"', "abc", "", "*, 1", '"2.0"'])
def test_an_if_match_that_does_not_name_the_version_is_412(call: Caller, project: Project, given: str) -> None:
    show_all(project)
    sample = judged(project)
    call("POST", f"/samples/{sample.pk}/decisions", {"action": "approve"})
    for path, body in (
        ("decisions", {"action": "reject"}),
        ("revisions", {"text": "x"}),
        ("labels", {"labels": {}}),
        ("undo", {}),
    ):
        answer = call("POST", f"/samples/{sample.pk}/{path}", body, **{"If-Match": given})
        assert (answer.status_code, answer.json()["current"]["status"]) == (412, "approved"), path
    sample.refresh_from_db()
    assert sample.status == "approved" and not Revision.objects.exists()


@pytest.mark.parametrize("given", ['"1"', '"7", "1"', 'W/"1"', "*"])
def test_an_if_match_that_names_the_version_is_followed(call: Caller, project: Project, given: str) -> None:
    sample = judged(project)
    answer = call("POST", f"/samples/{sample.pk}/decisions", {"action": "approve"}, **{"If-Match": given})
    assert answer.status_code == 201


def test_a_sample_carries_its_version_as_etag(call: Caller, project: Project) -> None:
    sample = judged(project, version=7)
    answer = call("GET", f"/samples/{sample.pk}")
    assert answer["ETag"].startswith('"7-') and answer.json()["status"] == "pending"
    assert call("GET", "/samples/999999").status_code == 404
    assert call("GET", "/samples/abc").status_code == 404


def test_a_sample_without_a_duel_is_shown_without_answers(call: Caller, project: Project) -> None:
    sample = make_sample(project)
    assert call("GET", f"/samples/{sample.pk}").json()["answers"] is None
    assert call("POST", f"/samples/{sample.pk}/revisions", {"text": "x"}).status_code == 422


def test_undo_answers_the_undone_decision(call: Caller, project: Project) -> None:
    sample = judged(project)
    made = call("POST", f"/samples/{sample.pk}/decisions", {"action": "reject"}).json()
    undone = call("POST", f"/samples/{sample.pk}/undo").json()
    assert undone["id"] == made["id"] and undone["undone"]
    sample.refresh_from_db()
    assert (sample.status, sample.version) == ("pending", 3)
    assert call("POST", f"/samples/{sample.pk}/undo").status_code == 409
    assert [d["action"] for d in call("GET", f"/samples/{sample.pk}/decisions").json()["data"]] == ["reject", "undo"]


def test_revisions_with_facts_and_diff(call: Caller, project: Project) -> None:
    show_all(project)
    sample = judged(project)
    made = call("POST", f"/samples/{sample.pk}/revisions", {"text": CHALLENGER + "\nmore", "note": "n"})
    assert made.status_code == 201 and made["ETag"] == '"2"'
    assert made.json()["facts"]["commands"] == 1 and "+more" in made.json()["diff"]
    stale = call("POST", f"/samples/{sample.pk}/revisions", {"text": "x"}, **{"If-Match": '"1"'})
    assert stale.status_code == 412
    king = call("POST", f"/samples/{sample.pk}/revisions", {"text": "y", "of": "king"}).json()
    assert (king["of"], king["number"], king["parent"]) == ("opponent", 2, None)
    assert [r["number"] for r in call("GET", f"/samples/{sample.pk}/revisions").json()["data"]] == [1, 2]
    assert Revision.objects.count() == 2


def test_bulk_answers_per_row_and_is_undone_by_its_batch(call: Caller, project: Project) -> None:
    samples = [make_sample(project) for _ in range(2)]
    foreign = make_sample(make_project())
    ids = [str(sample.pk) for sample in [*samples, foreign]]
    done = call("POST", "/samples/bulk", {"action": "reject", "ids": ids, "reason": "wrong"}).json()
    assert [(row["id"], row["ok"]) for row in done["data"]] == [(ids[0], True), (ids[1], True), (ids[2], False)]
    assert Sample.objects.filter(status="rejected").count() == 2
    undone = call("POST", "/samples/bulk/undo", {"project": "billing", "batch": done["batch"]}).json()
    assert undone == {"restored": 2, "kept": []}
    assert not Sample.objects.filter(status="rejected").exists()


def test_bulk_by_filter_needs_the_count_that_was_seen(call: Caller, project: Project) -> None:
    show_all(project)
    for _ in range(3):
        make_sample(project, bucket="final")
    body = {"action": "approve", "project": "billing", "filter": {"bucket": "final"}}
    assert call("POST", "/samples/bulk", body).status_code == 422
    refused = call("POST", "/samples/bulk", body | {"count": 2})
    assert refused.status_code == 409 and "3 samples match now, not the 2" in refused.json()["detail"]
    assert not Decision.objects.exists()
    assert call("POST", "/samples/bulk", body | {"count": 3}).json()["changed"] == 3
    assert Sample.objects.filter(status="approved").count() == 3


def test_bulk_of_nothing_known_is_refused(call: Caller) -> None:
    assert call("POST", "/samples/bulk", {"action": "approve", "ids": ["1", "x"]}).status_code == 422
    assert call("POST", "/samples/bulk", {"action": "approve", "ids": []}).status_code == 422


def test_a_superuser_reviews_everywhere(client: Client, project: Project) -> None:
    sample = judged(project)
    headers = make_bearer(make_user(is_superuser=True))
    answer = client.post(
        f"/api/v1/samples/{sample.pk}/decisions", {"action": "approve"}, content_type=JSON, headers=headers
    )
    assert answer.status_code == 201


def test_one_call_gives_everybodys_decisions(call: Caller, client: Client, project: Project) -> None:
    mine, theirs, pending = (judged(project) for _ in range(3))
    other, curator = Caller(client, project), Caller(client, project, Role.CURATOR)
    call("POST", f"/samples/{mine.pk}/decisions", {"action": "approve", "preference": "king"})
    other("POST", f"/samples/{theirs.pk}/decisions", {"action": "reject", "reason": "wrong"})
    other("POST", f"/samples/{pending.pk}/decisions", {"action": "flag", "reason": "odd"})

    def listed(by: Caller, query: str = "") -> list[tuple[str, str, str]]:
        rows = by("GET", f"/projects/billing/decisions?{query}").json()["data"]
        return [(row["sample"], row["action"], row["reviewer"]) for row in rows]

    flagged = (str(pending.pk), "flag", other.user.username)
    settled = [(str(theirs.pk), "reject", other.user.username), (str(mine.pk), "approve", call.user.username)]
    assert listed(curator) == [flagged, *settled]
    assert listed(call) == settled, "what others did with a pending sample is hidden from a reviewer"
    assert listed(curator, f"reviewer={call.user.username}") == settled[1:]
    assert listed(curator, "action=flag&undone=false") == [flagged]
    assert listed(curator, "undone=true") == []
