"""A parameter that a list does not have: the list stays, without it, and says so. A wrong value on samples,
trajectories or scenarios is shown in their form."""

import pytest
from django.test import Client

from tests.factories import make_member, make_project, make_run

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("path", ["runs/", "duels/", "prompts/", "samples/", "trajectories/", "scenarios/"])
def test_the_list_is_shown_without_it_and_names_it(client: Client, path: str) -> None:
    project = make_project("acme")
    client.force_login(make_member(project))
    make_run(project)
    answer = client.get(f"/p/acme/{path}?colour=red&sort=id", follow=True)
    assert answer.status_code == 200 and answer.redirect_chain[0][0] == f"/p/acme/{path}?sort=id"
    assert "The list is shown without colour." in answer.content.decode()


def test_rest_refuses_it_still(client: Client) -> None:
    client.force_login(make_member(make_project("acme")))
    assert client.get("/api/v1/projects/acme/runs?colour=red").status_code == 400
