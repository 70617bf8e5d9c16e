"""`GET /projects/{slug}/calls`: every model call of a project, in pages."""

from typing import Any

import pytest
from django.test import Client

from curation.projects.models import Role, Scope
from curation.runs.models import Call
from curation.samples.models import Sample, SampleStatus
from tests.factories import make_bearer, make_member, make_project, make_run, make_sample, make_user

pytestmark = pytest.mark.django_db


def test_calls_of_all_runs_are_listed_and_not_to_those_who_review_blind(client: Client) -> None:
    ada = make_user("ada")
    project, other = make_project("acme", user=ada), make_project("other")
    runs = [make_run(project), make_run(project), make_run(other)]
    for run in runs:
        for model, status in (("king", "ok"), ("judge", "error")):
            Call.objects.create(project=run.project, run=run, endpoint_name=model, status=status, content_hash="0")

    def read(query: str = "", status: int = 200, bearer: dict[str, str] | None = None) -> Any:
        headers = bearer or make_bearer(ada, Scope.READ)
        response = client.get(f"/api/v1/projects/acme/calls?{query}", headers=headers)
        assert response.status_code == status, response.content
        return response.json()

    first = read("limit=3")
    rest = read(f"limit=3&cursor={first['next_cursor']}")
    rows = [*first["data"], *rest["data"]]
    mine = Call.objects.filter(project=project).order_by("-id")
    assert [row["id"] for row in rows] == [str(call.pk) for call in mine] and rest["next_cursor"] is None
    assert [row["run"] for row in rows] == [str(call.run_id) for call in mine]
    found = read(f"run={runs[0].pk}&model=judge&status=error&count=true")
    assert found["total"] == 1 and found["data"][0]["model"] == "judge"
    assert read("created_after=2999-01-01T00:00:00Z")["data"] == []

    make_sample(project, status=SampleStatus.PENDING)
    blind = make_bearer(make_member(project, role=Role.REVIEWER), Scope.READ)
    refused = read("", 403, blind)
    assert refused["code"] == "blind" and "list of all calls" in refused["detail"]
    assert read()["data"]
    Sample.objects.update(status=SampleStatus.APPROVED)
    assert len(read("", 200, blind)["data"]) == 4
