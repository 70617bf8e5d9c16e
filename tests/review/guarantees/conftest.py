import pytest
from django.test import Client

from curation.projects.models import Project, Role
from tests.factories import make_duel
from tests.review.guarantees.auditing import SAMPLES, Caller


@pytest.fixture
def audited(db: None, project: Project) -> Project:
    """A project with pending duels of scores 50 to 89.5."""
    for number in range(SAMPLES):
        make_duel(project, score=50.0 + number, repo=f"acme/repo-{number % 20}")
    return project


@pytest.fixture
def curator(client: Client, audited: Project) -> Caller:
    return Caller(client, audited, Role.CURATOR)


@pytest.fixture
def reviewer(client: Client, audited: Project) -> Caller:
    return Caller(client, audited)
