"""Every list shows the conditions of its address as chips, each with a link that removes it."""

import re

import pytest
from django.test import Client

from tests.factories import make_member, make_project

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("path", "chip"),
    [
        ("samples/?repo=acme/mill", "repository <b>acme/mill</b>"),
        ("trajectories/?model=small", "model <b>small</b>"),
        ("trajectories/tasks/?model=small", "model <b>small</b>"),
        ("prompts/?has_record=true", "record <b>With record</b>"),
        ("scenarios/?status=admitted", "status <b>Admitted</b>"),
        ("runs/?kind=import,export", "kind <b>Import or Export</b>"),
        ("calls/?model=small", "model <b>small</b>"),
        ("duels/?bucket=refined", "bucket <b>Refined</b>"),
        ("evaluations/?split=1", "split <b>1</b>"),
        ("settings/audit/?actor=ada", "actor <b>ada</b>"),
    ],
)
def test_a_condition_is_a_chip_that_can_be_removed(client: Client, path: str, chip: str) -> None:
    client.force_login(make_member(make_project("acme"), role="admin"))
    page = client.get(f"/p/acme/{path}").content.decode()
    list_url = f"/p/acme/{path.partition('?')[0]}"
    chips = re.findall(r'<span class="chip">(.*?)<a class="chip__remove" href="([^"]+)"', page)
    assert chips == [(chip, list_url)]
    assert f'<a href="{list_url}">Clear the filter</a>' in page
