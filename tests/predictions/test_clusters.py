"""Clusters: failures in groups that are named and can be listed, and pending samples unlike anything reviewed."""

from typing import Any

import pytest
from django.test import Client

from curation.predictions.models import Cluster
from curation.projects.models import Project, Role
from curation.review.models import Decision
from curation.runs.launch import launch
from curation.samples.models import Sample, SampleStatus
from curation.web.problems import Problem
from tests.duels.running import run_to_end
from tests.factories import make_bearer, make_imported, make_member, make_project, make_sample
from tests.judging.learning.test_approval import text

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def project() -> Project:
    """12 rejected timeouts, 9 failed imports of Python, and 30 approved samples about other things."""
    project = make_project("acme")
    for number in range(12):
        make_sample(project, body=text("timeout", number), status=SampleStatus.REJECTED)
    for number in range(9):
        failed = make_imported(project, outcome="failed", task=f"task {number}")
        assert failed.sample is not None
        failed.sample.text.body = text("import", number)
        failed.sample.text.save()
    for number in range(30):
        make_sample(project, body=text("timeout", 50 + number), status=SampleStatus.APPROVED)
    return project


def rest(client: Client, project: Project, path: str, role: str = Role.CURATOR) -> Any:
    return client.get(f"/api/v1/projects/acme/{path}", headers=make_bearer(make_member(project, role=role))).json()


def test_failures_are_grouped_named_and_listed_by_their_group(client: Client, project: Project) -> None:
    run = run_to_end(project, "cluster")
    assert run.state == "succeeded", run.error
    assert run.result["samples"] == 21
    groups = rest(client, project, "clusters?of=failures")["data"]
    assert [group["size"] for group in groups] == [12, 9]
    assert set(groups[0]["words"]) & {"timeout", "hangs", "socket", "network", "waits", "reply"}
    listed = rest(client, project, f"samples?cluster={groups[1]['id']}&count=true")
    assert listed["total"] == 9 and {row["kind"] for row in listed["data"]} == {"trajectory"}
    assert set(groups[1]["examples"]) <= {row["id"] for row in listed["data"]}
    client.force_login(make_member(project, role=Role.CURATOR))
    html = client.get("/p/acme/samples/clusters/").content.decode()
    assert groups[0]["name"] in html and f"?cluster={groups[0]['id']}" in html and 'class="chart' in html
    page = client.get(f"/p/acme/samples/?cluster={groups[0]['id']}").content.decode()
    assert page.count('id="sample-') == 12


def test_pending_samples_of_a_new_topic_are_found(client: Client, project: Project) -> None:
    new = {str(make_sample(project, body=text("permission", number)).pk) for number in range(8)}
    for number in range(8):
        make_sample(project, body=text("timeout", 200 + number))
    run = run_to_end(project, "cluster", of="new")
    assert run.state == "succeeded", run.error
    found = {str(pk) for pk in Sample.objects.filter(clusters__of="new").values_list("pk", flat=True)}
    assert new <= found and len(found) <= 12 + 9
    assert not Cluster.objects.filter(of="failures").exists()


def test_the_next_run_replaces_the_groups_of_its_kind(project: Project) -> None:
    run_to_end(project, "cluster")
    before = set(Cluster.objects.values_list("pk", flat=True))
    Sample.objects.filter(status=SampleStatus.REJECTED).delete()
    run_to_end(project, "cluster")
    after = set(Cluster.objects.values_list("pk", flat=True))
    assert after and not after & before
    assert sum(Cluster.objects.values_list("size", flat=True)) == 9


def test_the_words_of_reviewers_count(project: Project) -> None:
    reviewer = make_member(project)
    for sample in Sample.objects.filter(status=SampleStatus.REJECTED):
        Decision.objects.create(
            sample=sample, reviewer=reviewer, action="reject", reason="invented", comment="hallucinated", version=1
        )
    run_to_end(project, "cluster")
    assert "hallucinated" in Cluster.objects.order_by("-size")[0].words


def test_nothing_to_group_is_refused(project: Project) -> None:
    with pytest.raises(Problem, match="no sample is pending"):
        Sample.objects.filter(status=SampleStatus.PENDING).update(status=SampleStatus.REJECTED)
        launch(project=project, kind="cluster", params={"of": "new"}, user=None)
    Sample.objects.filter(status=SampleStatus.APPROVED).delete()
    Sample.objects.all().update(status=SampleStatus.PENDING)
    with pytest.raises(Problem, match="Reviewed so far: 0"):
        launch(project=project, kind="cluster", params={"of": "new"}, user=None)
    empty = make_project("empty")
    with pytest.raises(Problem, match="no sample is rejected or to be refined"):
        launch(project=empty, kind="cluster", params={}, user=None)
