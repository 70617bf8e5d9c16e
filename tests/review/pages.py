"""What the tests of review's pages share: addresses, the text of an answer, what a form would send."""

from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from curation.review.models import Lease
from curation.samples.models import Sample

HTMX = {"HX-Request": "true"}


def url(name: str, *args: object) -> str:
    return reverse(name, args=["billing", *args])


def body(response: HttpResponse) -> str:
    return response.content.decode()


def form(sample: Sample, **values: object) -> dict[str, object]:
    """What the page of this sample would send."""
    lease = Lease.objects.filter(sample=sample).first()
    return {"version": Sample.objects.get(pk=sample.pk).version, "lease": lease.pk if lease else "", **values}


def open_queue(client: Client, query: str = "") -> HttpResponse:
    response = client.get(url("queue") + query)
    assert response.status_code == 200
    return response
