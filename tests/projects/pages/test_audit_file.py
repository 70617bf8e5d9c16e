"""The audit log as a file: every entry that matches, exactly, for admins."""

import csv
import io
import json
from typing import Any

import pytest
from django.test import Client

from curation.projects.audit_words import details, said
from curation.projects.models import AuditEntry
from tests.factories import make_bearer, make_member, make_project, make_user

pytestmark = pytest.mark.django_db
EXPORT = "/api/v1/projects/acme/audit/export"


def text_of(client: Client, path: str, headers: dict[str, str] | None = None) -> str:
    answer: Any = client.get(path, headers=headers)
    assert answer.status_code == 200 and answer.streaming
    return b"".join(answer.streaming_content).decode()


def test_the_file_has_every_entry_that_matches_oldest_first(client: Client) -> None:
    ada = make_user("ada")
    project, other = make_project("acme", user=ada), make_project("other")
    AuditEntry.objects.bulk_create(
        AuditEntry(project=project, actor=ada, action="model.update", subject=f"m{n}") for n in range(2500)
    )
    AuditEntry.record(
        actor=None, project=project, action="run.finish", subject="=1+1", data={"ü": [1, None], "b": 'a"\n,'}
    )
    AuditEntry.record(actor=ada, project=other, action="run.finish", subject="elsewhere")
    headers = make_bearer(ada)
    lines = [json.loads(line) for line in text_of(client, EXPORT, headers).splitlines()]
    assert [line["subject"] for line in lines] == [*(f"m{n}" for n in range(2500)), "=1+1"]
    last = client.get("/api/v1/projects/acme/audit?limit=1", headers=headers).json()["data"][0]
    assert lines[-1] == last

    rows = list(csv.DictReader(io.StringIO(text_of(client, f"{EXPORT}?format=csv&action=run.finish", headers))))
    assert [(row["subject"], row["actor"], json.loads(row["data"])) for row in rows] == [("'=1+1", "", last["data"])]
    empty = text_of(client, f"{EXPORT}?format=csv&action=none.such", headers)
    assert empty == "id,created_at,actor,action,subject,data\r\n"
    assert client.get(f"{EXPORT}?format=xml", headers=headers).status_code in {400, 422}


def test_only_admins_export_a_project_and_superusers_the_server(client: Client) -> None:
    curator, admin = make_user(), make_user()
    project = make_project("acme", user=curator, role="curator")
    make_member(project, admin, "admin")
    refused = ((make_bearer(curator), 403), (make_bearer(make_user()), 404), (make_bearer(admin, "read"), 403))
    for headers, status in refused:
        assert client.get(EXPORT, headers=headers).status_code == status
    assert client.get("/api/v1/audit/export", headers=make_bearer(admin)).status_code == 403
    root = make_user(is_superuser=True)
    headers = make_bearer(root)
    lines = text_of(client, "/api/v1/audit/export?action=token.create", headers).splitlines()
    assert len(lines) == AuditEntry.objects.filter(project=None, action="token.create").count() > 0
    assert client.get("/api/v1/audit/export", headers=make_bearer(root, "read")).status_code == 403


def test_the_page_links_to_the_file_with_its_filter(client: Client) -> None:
    ada = make_user("ada")
    AuditEntry.record(actor=ada, project=make_project("acme", user=ada), action="a.b", subject="s")
    client.force_login(ada)
    page = client.get("/p/acme/settings/audit/?action=a.b").content.decode()
    link = "/api/v1/projects/acme/audit/export?action=a.b&amp;format=csv"
    assert link in page
    assert text_of(client, link.replace("&amp;", "&")).count("\r\n") == 2


@pytest.mark.parametrize(
    ("action", "words"),
    [
        ("project.update", "changed project"),
        ("sample.bulk_approve", "approved sample, in bulk"),
        ("sample.undo", "undid sample"),
        ("scenario.take_in", "took in scenario"),
        ("pull_request.clear_doubt", "cleared doubt of pull request"),
        ("run.deleted", "run was deleted"),
        ("run.succeeded", "run succeeded"),
        ("sample.look", "looked at sample"),
    ],
)
def test_an_action_is_a_sentence(action: str, words: str) -> None:
    assert said(action) == words


def test_a_change_has_its_value_before_and_after() -> None:
    data = {"fields": ["name", "guidelines"], "settings": {"panel.swap": [True, False]}, "moved": []}
    assert details("project.update", data) == ["fields: name, guidelines", "panel.swap: yes → no"]
    assert details("sample.reject", {"reason": "leaks", "comment": ""}) == ["reason: leaks"]
