import pytest
from django.test import Client

from curation.projects.models import Project, Role
from tests.factories import make_duel, make_project
from tests.review.guarantees.auditing import SAMPLES, Caller
from tests.world import world


@world
def audited(patched: pytest.MonkeyPatch) -> Project:
    """A project with pending duels of scores 50 to 89.5."""
    project = make_project("billing")
    for number in range(SAMPLES):
        make_duel(project, score=50.0 + number, repo=f"acme/repo-{number % 20}")
    return project


@pytest.fixture
def project(audited: Project) -> Project:
    return audited


@pytest.fixture
def curator(client: Client, audited: Project) -> Caller:
    return Caller(client, audited, Role.CURATOR)


@pytest.fixture
def reviewer(client: Client, audited: Project) -> Caller:
    return Caller(client, audited)
