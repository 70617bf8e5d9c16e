import pytest

from curation.projects.models import Project
from tests.factories import make_project, make_scenario
from tests.sandbox.fake import FakeBackend


@pytest.fixture
def project(rooms: FakeBackend) -> Project:
    """Two scenarios that are served, and a draft."""
    found = make_project("acme")
    make_scenario(found, "greet")
    make_scenario(found, "wave")
    make_scenario(found, "draft", status="draft")
    return found
