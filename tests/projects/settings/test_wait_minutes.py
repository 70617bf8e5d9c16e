"""How long items wait for an endpoint that is down, on the page, in REST and in the TOML file."""

import pytest
from django.test import Client

from curation.projects.models import Project
from tests.factories import make_member, make_project, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def project(client: Client) -> Project:
    project = make_project("calm")
    client.force_login(make_member(project, make_user(), "admin"))
    return project


def minutes(project: Project) -> float:
    return Project.objects.get(pk=project.pk).settings.runs.wait_minutes


def patch(client: Client, value: object) -> int:
    body = {"settings": {"runs": {"wait_minutes": value}}}
    status: int = client.patch("/api/v1/projects/calm", body, content_type="application/json").status_code
    return status


def test_the_default_is_half_an_hour_and_the_page_has_the_field(client: Client, project: Project) -> None:
    assert minutes(project) == 30.0
    page = client.get("/p/calm/settings/rules/").content.decode()
    assert 'name="runs__wait_minutes"' in page
    assert "Wait for an endpoint" in page


@pytest.mark.parametrize(("value", "status"), [(90, 200), (0, 200), (0.5, 200), (-1, 422), (20_000, 422), ("x", 422)])
def test_rest_sets_it(client: Client, project: Project, value: object, status: int) -> None:
    assert patch(client, value) == status
    assert minutes(project) == (value if status == 200 else 30.0)


def test_the_toml_file_sets_it(client: Client, project: Project) -> None:
    toml = {"toml": "[runs]\nwait_minutes = 45\n", "save": "1", "version": "1"}
    client.post("/p/calm/settings/rules/toml/", toml)
    assert minutes(project) == 45.0


@pytest.mark.parametrize(
    "toml", ["runs = 3", "[runs]\nwait = 3", '[runs]\nwait_minutes = "x"', "[runs]\nwait_minutes = inf"]
)
def test_a_wrong_table_is_refused(client: Client, project: Project, toml: str) -> None:
    assert client.post("/p/calm/settings/rules/toml/", {"toml": toml}).status_code == 422
