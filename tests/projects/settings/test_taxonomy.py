"""A project's own axes and values: by the settings page, a TOML file and REST, with the same refusals."""

from typing import Any

import pytest
from django.test import Client

from curation.projects.models import Project
from curation.projects.pages.forms import SettingsForm
from tests.factories import make_bearer, make_project, make_user

pytestmark = pytest.mark.django_db

AXES = {"task": ["deploy", "restore"], "shell": ["dash"]}


@pytest.fixture
def project(client: Client) -> Project:
    ada = make_user("ada")
    client.force_login(ada)
    return make_project("shell", user=ada)


def rules(client: Client, project: Project, axes: str) -> Any:
    form = SettingsForm(project, initial={"version": project.version})
    shown = {name: form[name].value() for name in form.fields} | {"taxonomy__axes": axes}
    body = {name: value for name, value in shown.items() if value is not None and value is not False}
    return client.post("/p/shell/settings/rules/", body)


def patch(client: Client, axes: object) -> Any:
    body = {"settings": {"taxonomy": {"axes": axes}}}
    headers = make_bearer(make_user(is_superuser=True))
    return client.patch("/api/v1/projects/shell", body, content_type="application/json", headers=headers)


def stored(project: Project) -> dict[str, list[str]]:
    project.refresh_from_db()
    return project.settings.taxonomy.axes


def test_the_page_takes_a_line_per_axis_and_shows_it_again(client: Client, project: Project) -> None:
    assert rules(client, project, "task = deploy, restore\r\n\r\nshell=dash").status_code == 302
    assert stored(project) == AXES
    assert "task = deploy, restore\nshell = dash" in client.get("/p/shell/settings/rules/").content.decode()
    assert rules(client, project, "").status_code == 302
    assert stored(project) == {}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("task", "axis = value"),
        ("task =", "axis = value"),
        ("task = a\ntask = b", "each axis once"),
        ("Task = a", "pattern"),
        ("task = a=b", "pattern"),
        ("task = a, a", "twice"),
        ("difficulty = 6", "from 1 to 5"),
    ],
)
def test_an_error_is_shown_under_its_field(client: Client, project: Project, line: str, said: str) -> None:
    answer = rules(client, project, line)
    assert answer.status_code == 422
    errors = answer.context["form"].errors
    assert said in str(errors), errors
    assert stored(project) == {}


def test_a_toml_file_has_a_table_for_it(client: Client, project: Project) -> None:
    toml = '[duel]\nfinal = 90\n[taxonomy]\ntask = ["deploy", "restore"]\nshell = ["dash"]\n'
    changes = {c.path: c.after for c in client.post("/p/shell/settings/rules/toml/", {"toml": toml}).context["changes"]}
    assert changes == {"thresholds.final": 90.0, "taxonomy.axes": AXES}
    client.post("/p/shell/settings/rules/toml/", {"toml": toml, "save": "1", "version": "1"})
    assert stored(project) == AXES


@pytest.mark.parametrize(
    "toml", ['taxonomy = "x"', "[taxonomy]\ntask = 3", "[taxonomy]\ntask = [3]", "[colours]\na = 1"]
)
def test_a_wrong_table_is_refused(client: Client, project: Project, toml: str) -> None:
    assert client.post("/p/shell/settings/rules/toml/", {"toml": toml}).status_code == 422


def test_rest_replaces_it_as_a_whole_and_null_resets_it(client: Client, project: Project) -> None:
    assert patch(client, AXES).status_code == 200
    assert patch(client, {"task": ["deploy"]}).status_code == 200
    assert stored(project) == {"task": ["deploy"]}
    assert patch(client, None).status_code == 200
    assert stored(project) == {}


@pytest.mark.parametrize("axes", [{"task": "deploy"}, {"task": []}, {"difficulty": ["6"]}, {"a b": ["x"]}, ["task"]])
def test_rest_names_the_wrong_field(client: Client, project: Project, axes: object) -> None:
    answer = patch(client, axes)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["path"].startswith("settings.taxonomy.axes")
