import pytest
from django.test import Client

from curation.projects.access import Access
from curation.projects.models import Project
from curation.samples.models import Sample
from tests.factories import make_sample
from tests.review.browsing import HTMX, first, url
from tests.review.rows import show_all

pytestmark = pytest.mark.django_db


def test_bulk_from_the_list_gives_a_toast_with_one_undo(client: Client, me: Access, project: Project) -> None:
    samples = [make_sample(project) for _ in range(2)]
    values = {"action": "approve", "ids": [sample.pk for sample in samples]}
    response = client.post(url("sample-bulk"), values, headers=HTMX)
    assert response.status_code == 204 and "2 approved." in response["HX-Trigger"]
    undo_url = first(r'"url": "([^"]+)"', response["HX-Trigger"])
    response = client.post(undo_url, headers=HTMX)
    assert "Restored 2 samples." in response["HX-Trigger"]
    assert not Sample.objects.exclude(status="pending").exists()


def test_bulk_over_all_that_match_returns_to_the_list(client: Client, me: Access, project: Project) -> None:
    show_all(project)
    for _ in range(3):
        make_sample(project, bucket="final")
    make_sample(project, bucket="defeat")
    values = {"action": "reject", "all": "1", "query": "bucket=final&sort=-score", "count": "3"}
    response = client.post(
        url("sample-bulk"), values, headers={"Referer": "http://testserver/p/billing/samples/?bucket=final"}
    )
    assert response.status_code == 302 and response["Location"] == "/p/billing/samples/?bucket=final"
    assert Sample.objects.filter(status="rejected").count() == 3
    refused = client.post(url("sample-bulk"), {**values, "count": "9"}, headers=HTMX)
    assert refused.status_code == 409
