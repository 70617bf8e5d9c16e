"""The overview: where a new project begins, and what its trajectories say."""

import pytest
from django.core.cache import cache
from django.test import Client

from curation.exports.models import Export
from curation.projects.models import Project
from tests.factories import make_project, make_run, make_sample, make_trajectory, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def project(client: Client) -> Project:
    user = make_user()
    client.force_login(user)
    return make_project("acme", user=user)


def test_a_new_project_begins_at_its_checklist(client: Client) -> None:
    client.force_login(make_user(is_superuser=True))
    answer = client.post("/projects/new/", {"slug": "fresh", "name": "Fresh"}, follow=True)
    assert answer.request["PATH_INFO"] == "/p/fresh/"
    assert "I have answers to review" in answer.content.decode()


def test_an_empty_export_does_not_bring_the_checklist_back(client: Client, project: Project) -> None:
    make_sample(project)
    assert client.get("/p/acme/").context["checklist"]
    for exported in (3, 0):
        cache.clear()
        run = make_run(project, kind="export")
        Export.objects.create(project=project, run=run, recipe={}, ready=True, counts={"exported": exported})
        assert client.get("/p/acme/").context["checklist"] == []


def test_rollouts_are_counted_by_outcome_and_the_shares_of_endings_sum_to_all(client: Client, project: Project) -> None:
    make_trajectory(project)
    make_trajectory(project, outcome="correct_panic", terminal="panic broken")
    make_trajectory(project, outcome="checker_failed")
    answer = client.get("/p/acme/")
    page = answer.content.decode()
    ends = page[page.index("How rollouts end") : page.index("How kept trajectories end")]
    assert "/p/acme/trajectories/?outcome=checker_failed" in ends and "Admitted" not in ends
    title, endings = answer.context["endings"].tables[0]
    assert title == "Terminal" and sum(line.share for line in endings) == 100
