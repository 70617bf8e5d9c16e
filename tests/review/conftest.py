import pytest
from django.test import Client

from curation.projects.access import Access
from curation.projects.models import Project
from tests.factories import make_member, make_project
from tests.review.rows import access_of


@pytest.fixture
def project(db: None) -> Project:
    return make_project("billing", name="Billing", guidelines="Prefer the **smallest** command that moves on.")


@pytest.fixture
def me(client: Client, project: Project) -> Access:
    """A reviewer of the project, signed in with `client`."""
    user = make_member(project)
    client.force_login(user)
    return access_of(user, project)
