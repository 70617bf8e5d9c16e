"""A new project: the ways to begin, their steps and sample rows, and what an import says of the kind of data."""

import pytest
from django.core.cache import cache
from django.test import Client

from curation.projects.models import AuditEntry, Project
from curation.runs.engine.worker import drive
from curation.runs.models import Run
from tests.factories import make_bearer, make_project, make_user

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def project(client: Client, settings: object, tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> Project:
    settings.MEDIA_ROOT = tmp_path  # type: ignore[attr-defined]
    monkeypatch.setattr("curation.runs.engine.dispatch.send_work", lambda *args: None)
    user = make_user("ada")
    client.force_login(user)
    return make_project("acme", user=user)


def page_of(client: Client, query: str = "") -> str:
    cache.clear()
    return client.get(f"/p/acme/{query}").content.decode()


def test_a_new_project_forks_and_each_way_has_its_steps(client: Client, project: Project) -> None:
    page = page_of(client)
    for title in ("I have answers to review", "I have agents&#x27; runs", "I have prompts, models", "I make tasks"):
        assert title in page
    assert "checklist" not in page
    assert "Import answers" in page_of(client, "?start=answers") and "Add a model" not in page_of(
        client, "?start=answers"
    )
    assert "Import runs" in page_of(client, "?start=runs")
    assert "Add a model" in page_of(client, "?start=prompts") and "New scenario" in page_of(client, "?start=tasks")


@pytest.mark.parametrize(
    ("start", "kind", "said"),
    [
        ("answers", "preferences", "Imported answers"),
        ("runs", "trajectories", "Runs of agents"),
        ("prompts", "turns", "Launch a duel"),
        ("tasks", "trajectories", "Launch a gate"),
    ],
)
def test_sample_rows_start_a_project_of_their_kind(
    client: Client, project: Project, start: str, kind: str, said: str
) -> None:
    assert client.post(f"/p/acme/start/{start}/").status_code == 302
    drive(Run.objects.get().pk)
    assert Run.objects.get().state == "succeeded"
    project.refresh_from_db()
    assert project.settings.data.kind == kind
    page = page_of(client)
    assert said in page and "How do you begin?" not in page
    if start == "answers":
        shown = page[page.index("<main") : page.index("</main>")].lower()
        assert not [word for word in ("duel", "king", "opponent", "challenger") if word in shown]


def test_the_kind_of_data_is_recognised_once_and_can_be_changed(client: Client, project: Project) -> None:
    client.post("/p/acme/start/answers/")
    drive(Run.objects.get().pk)
    entry = AuditEntry.objects.get(action="project.update")
    assert entry.data["settings"] == {"data.kind": ["", "preferences"]}
    patch = {"settings": {"data": {"kind": "chat"}}}
    headers = make_bearer(project.members.get().user)
    answer = client.patch("/api/v1/projects/acme", patch, content_type="application/json", headers=headers)
    assert answer.json()["settings"]["data"]["kind"] == "chat"
    client.post("/p/acme/start/runs/")
    drive(Run.objects.order_by("-pk")[0].pk)
    project.refresh_from_db()
    assert project.settings.data.kind == "chat"
    assert 'value="chat" selected' in client.get("/p/acme/settings/rules/").content.decode()
