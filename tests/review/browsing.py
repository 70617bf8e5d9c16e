"""Shared by the tests of review's pages: addresses, the text of a response, the values of a form."""

import re
from typing import Protocol

from django.test import Client
from django.urls import reverse

from curation.projects.access import access_of
from curation.review.models import Lease
from curation.review.queue.lease import seats_of, side_token
from curation.samples.models import Sample

HTMX = {"HX-Request": "true"}


def url(name: str, *args: object) -> str:
    return reverse(name, args=["billing", *args])


class Answer(Protocol):
    """A response of the test client."""

    status_code: int
    content: bytes


def body(response: Answer) -> str:
    return response.content.decode()


def first(pattern: str, text: str) -> str:
    """The first group of the first match."""
    found = re.search(pattern, text)
    assert found is not None, pattern
    return found.group(1)


def form(sample: Sample, **values: object) -> dict[str, object]:
    """The fields that the page of this sample would send."""
    lease = Lease.objects.filter(sample=sample).first()
    return {"version": Sample.objects.get(pk=sample.pk).version, "left": left_of(lease) if lease else "", **values}


def left_of(lease: Lease) -> str:
    """The value for the answer on the left of a page made with this lease."""
    access = access_of(lease.reviewer, lease.sample.project)
    assert access is not None
    return side_token(access, lease.sample, seats_of(lease).left)


def open_queue(client: Client, query: str = "") -> Answer:
    response = client.post(url("queue") + query, follow=True)
    assert response.status_code == 200
    return response
