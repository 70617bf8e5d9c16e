"""A project with the three models of a duel, whose admin is signed in."""

import pytest
from django.test import Client

from curation.projects.models import Project
from tests.factories import make_endpoint, make_project, make_user


@pytest.fixture
def project(client: Client) -> Project:
    user = make_user("ada")
    client.force_login(user)
    project = make_project("acme", user=user)
    for name in ("king", "challenger", "judge"):
        make_endpoint(project, name, model=f"scripted/{name}")
    return project
