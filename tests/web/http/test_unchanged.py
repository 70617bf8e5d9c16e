"""`If-None-Match`: an answer that has not changed is 304, and one that says more than its `ETag` never is."""

import pytest
from django.test import Client

from curation.projects.models import Project
from tests.factories import make_bearer, make_project, make_run, make_sample, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    return make_project("acme", user=make_user("ada"))


@pytest.fixture
def bearer(project: Project) -> dict[str, str]:
    return make_bearer(project.members.get().user, "read")


@pytest.mark.parametrize("path", ["/runs/{run}", "/projects/acme/runs"])
def test_the_same_answer_is_304_until_it_changes(
    client: Client, project: Project, bearer: dict[str, str], path: str
) -> None:
    run = make_run(project)
    address = f"/api/v1{path.format(run=run.pk)}"
    etag = client.get(address, headers=bearer)["ETag"]

    for known in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        again = client.get(address, headers={**bearer, "If-None-Match": known})
        assert (again.status_code, again.content, again["ETag"]) == (304, b"", etag)
        assert again["RateLimit-Limit"]

    run.items_total = 5
    run.save()
    changed = client.get(address, headers={**bearer, "If-None-Match": etag})
    assert changed.status_code == 200 and changed["ETag"] != etag


def test_a_sample_whose_score_changed_under_its_version_is_sent(
    client: Client, project: Project, bearer: dict[str, str]
) -> None:
    sample = make_sample(project, score=70.0)
    address = f"/api/v1/samples/{sample.pk}"
    etag = client.get(address, headers=bearer)["ETag"]
    sample.score = 40.0
    sample.save()

    again = client.get(address, headers={**bearer, "If-None-Match": etag})

    assert (again.status_code, again["ETag"], again.json()["score"]) == (200, etag, 40.0)


def test_a_refusal_has_no_etag(client: Client, bearer: dict[str, str]) -> None:
    refused = client.get("/api/v1/runs/999999", headers={**bearer, "If-None-Match": "*"})
    assert refused.status_code == 404 and not refused.has_header("ETag")
