"""A curator assigns on the page; the queue shows reviewers their target and assignments."""

import pytest
from django.test import Client
from django.urls import reverse

from curation.assignments.models import Assignment, Target
from curation.projects.models import Project, Role
from curation.review.decisions.decide import decide
from curation.samples.models import Sample
from tests.factories import make_member
from tests.review.rows import access_of, judged

pytestmark = pytest.mark.django_db


@pytest.fixture
def curator(project: Project) -> Client:
    client = Client()
    client.force_login(make_member(project, role=Role.CURATOR))
    return client


def test_the_samples_of_a_list_are_assigned_by_shares_and_withdrawn(project: Project, curator: Client) -> None:
    ana, ben = make_member(project), make_member(project)
    for repo in ("acme/billing", "acme/billing", "acme/web"):
        sample = judged(project)
        Sample.objects.filter(pk=sample.pk).update(repo=repo)
    address = reverse("assignment-list", args=["billing"])
    listed = curator.get(reverse("sample-list", args=["billing"]), {"repo": "acme/billing"}).content.decode()
    assert f"{address}?query=repo%3Dacme/billing" in listed
    shown = curator.get(address, {"query": "repo=acme/billing"})
    assert "2 undecided" in shown.content.decode()
    people = [row.username for row in shown.context["people"]]
    form = {"query": "repo=acme/billing", "per_sample": "1"}
    refused = curator.post(address, form)
    assert refused.status_code == 422 and "Give a share to one person at least." in refused.content.decode()
    shares = {f"share_{people.index(user.username)}": "1" for user in (ana, ben)}
    assert curator.post(address, form | shares).status_code == 302
    page = curator.get(address).content.decode()
    assert all(f"{user.username}: 1 of 1 left" in page for user in (ana, ben))
    again = curator.post(address, form | shares)
    assert again.status_code == 409 and "assigned already" in again.content.decode()
    withdraw = reverse("assignment-withdraw", args=["billing", Assignment.objects.get().pk])
    assert curator.post(withdraw).status_code == 302 and not Assignment.objects.exists()


def test_the_queue_shows_the_target_and_what_is_assigned(project: Project, curator: Client) -> None:
    ana = make_member(project)
    first, _second = judged(project), judged(project)
    address = reverse("assignment-list", args=["billing"])
    people = [row.username for row in curator.get(address).context["people"]]
    curator.post(address, {"query": "", "per_sample": "1", f"share_{people.index(ana.username)}": "1"})
    curator.post(reverse("target-set", args=["billing"]), {"username": ana.username, "per_day": "5", "total": ""})
    assert Target.objects.get().per_day == 5
    decide(access=access_of(ana, project), sample_id=first.pk, action="reject")
    client = Client()
    client.force_login(ana)
    queue = client.post(reverse("queue", args=["billing"]), headers={"HX-Request": "true"}).content.decode()
    assert "1 / 5 today" in queue and "1 assigned to you" in queue


def test_a_second_opinion_is_asked_for_on_the_page_of_a_sample(project: Project, client: Client) -> None:
    ana, ben = make_member(project), make_member(project)
    sample = judged(project)
    decide(access=access_of(ana, project), sample_id=sample.pk, action="reject")
    client.force_login(ana)
    page = client.get(reverse("sample-page", args=["billing", sample.pk])).content.decode()
    ask = reverse("sample-second-opinion", args=["billing", sample.pk])
    assert ask in page and f"<option>{ben.username}</option>" in page
    assert client.post(ask, {"username": ben.username}).status_code == 302
    assert Sample.objects.get().status == "pending"
    eve = Client()
    decide(access=access_of(make_member(project), project), sample_id=(other := judged(project)).pk, action="skip")
    decide(access=access_of(ana, project), sample_id=other.pk, action="reject")
    eve.force_login(ben)
    page = eve.get(reverse("sample-page", args=["billing", other.pk])).content.decode()
    assert reverse("sample-second-opinion", args=["billing", other.pk]) not in page
