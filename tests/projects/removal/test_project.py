"""Archive and delete a project: the required right, the refusals meanwhile, and that nothing of it is left."""

import itertools
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import connection
from django.db.models import RESTRICT
from django.test import Client
from django.utils import timezone

from curation.duels.models import Session
from curation.exports.models import Export
from curation.imports.sources.stored import store_upload
from curation.projects.models import AuditEntry, Deletion, Project
from curation.projects.removal import carry_out as engine
from curation.projects.removal import erase as erasing
from curation.projects.removal.carry_out import carry_out, continue_all
from curation.projects.removal.erase import models_from_top
from curation.projects.tasks import continue_deletions
from curation.runs.launch import launch
from curation.runs.models import Item, Run
from curation.samples.models import Sample
from curation.web.problems import Conflict
from curation.webhooks.deliver import _claim
from curation.webhooks.emit import emit
from curation.webhooks.models import Delivery, Webhook, WebhookEvent
from tests.factories import make_bearer, make_duel, make_endpoint, make_project, make_run, make_user
from tests.projects.removal.every_model import fill, models_of_a_project, rows_of

pytestmark = pytest.mark.django_db(transaction=True)
JSON = "application/json"
PATH = "/api/v1/projects/shell"


@pytest.fixture
def project(settings: Any, tmp_path: Any) -> Project:
    settings.MEDIA_ROOT = str(tmp_path)
    return make_project("shell", name="Shell agents", user=make_user("ada"))


@pytest.fixture
def headers(project: Project) -> dict[str, str]:
    return make_bearer(project.members.get().user)


def delete(client: Client, headers: dict[str, str], name: str = "Shell agents") -> Any:
    return client.delete(f"{PATH}?name={name}", headers=headers)


def patch(client: Client, headers: dict[str, str], **body: object) -> Any:
    return client.patch(PATH, body, content_type=JSON, headers=headers)


class TestDelete:
    def test_no_model_is_left_with_rows(self, client: Client, project: Project, headers: dict[str, str]) -> None:
        other = make_project("other")
        fill(other)
        fill(project)
        before = rows_of(other.pk)
        assert min(rows_of(project.pk).values()) >= 1, "each model must have a row to delete"
        Run.objects.filter(project=project).update(state="succeeded")

        answer = delete(client, headers)
        carry_out(int(answer.json()["id"]))

        assert {label: number for label, number in rows_of(project.pk).items() if number} == {}
        assert rows_of(other.pk) == before
        assert Deletion.objects.get(noun="project").rows >= len(models_of_a_project())

    def test_files_and_search_rows_go(self, client: Client, project: Project, headers: dict[str, str]) -> None:
        make_duel(project)
        upload = store_upload(project=project, file=ContentFile(b"{}", "a.jsonl"), name="a.jsonl")
        export = Export.objects.create(project=project, run=make_run(project, state="succeeded"), recipe={})
        stored = default_storage.save(f"exports/{export.pk}/x/train.jsonl", ContentFile(b"{}"))

        carry_out(int(delete(client, headers).json()["id"]))

        assert not default_storage.exists(upload) and not default_storage.exists(stored)
        if connection.vendor == "sqlite":
            with connection.cursor() as cursor:
                cursor.execute("SELECT count(*) FROM sample_search WHERE sample_search MATCH 'rounding'")
                assert cursor.fetchone()[0] == 0

    def test_answers_as_deleted_at_once_and_shows_its_progress(
        self, client: Client, project: Project, headers: dict[str, str]
    ) -> None:
        answer = delete(client, headers)
        deletion = answer.json()["id"]
        assert (answer.status_code, answer["Location"]) == (202, f"/api/v1/deletions/{deletion}")
        assert client.get(PATH, headers=headers).status_code == 410
        assert client.get(f"{PATH}/samples", headers=headers).json()["code"] == "project_deleted"
        assert client.get("/api/v1/projects", headers=headers).json()["data"] == []
        assert client.get(PATH, headers=make_bearer(make_user())).status_code == 404
        client.force_login(make_user("root", is_superuser=True))
        assert client.get("/p/shell/").status_code == 410
        client.force_login(project.members.get().user)
        assert "is being deleted" in client.get("/").content.decode()
        assert "Being deleted" in client.get(f"/deletions/{deletion}/").content.decode()
        carry_out(int(deletion))
        assert client.get(PATH, headers=headers).status_code == 404
        shown = client.get(f"/api/v1/deletions/{deletion}", headers=headers).json()
        assert (shown["state"], shown["rows"] > 0) == ("deleted", True)

    def test_the_slug_is_free_again_and_the_log_keeps_what_went(
        self, client: Client, project: Project, headers: dict[str, str]
    ) -> None:
        make_duel(project)
        carry_out(int(delete(client, headers).json()["id"]))
        make_project("shell")
        root = make_bearer(make_user("root", is_superuser=True))
        rows = client.get("/api/v1/audit?action=project.delete,project.deleted", headers=root).json()["data"]
        assert [(row["action"], row["actor"]) for row in rows] == [
            ("project.deleted", "ada"),
            ("project.delete", "ada"),
        ]
        assert rows[0]["data"]["rows"]["samples.Sample"] == 1
        assert client.get("/api/v1/audit", headers=headers).status_code == 403

    def test_needs_the_typed_name(self, client: Client, project: Project, headers: dict[str, str]) -> None:
        for name in ("", "shell", "Shell%20agentz"):
            answer = delete(client, headers, name)
            assert (answer.status_code, answer.json()["code"]) == (422, "wrong_name")
        client.force_login(project.members.get().user)
        client.post("/p/shell/settings/delete/", {"name": "no"})
        assert not Deletion.objects.exists()
        assert client.post("/p/shell/settings/delete/", {"name": "Shell agents"})["Location"].startswith("/deletions/")

    def test_the_reaper_goes_on_where_a_killed_worker_stopped(
        self, client: Client, project: Project, headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Killed after every single batch, it still ends, and counts each row once."""
        for _ in range(5):
            make_duel(project)
        monkeypatch.setattr(erasing, "BATCH", 2)
        deletion = int(delete(client, headers).json()["id"])
        real, left = engine._extend, itertools.count()

        class Killed(BaseException):
            pass

        def dies(row: Deletion) -> None:
            real(row)
            if next(left) % 2:
                raise Killed

        monkeypatch.setattr(engine, "_extend", dies)
        for _ in range(200):
            Deletion.objects.filter(finished_at=None).update(lease_until=timezone.now() - timedelta(seconds=1))
            try:
                continue_deletions()
                break
            except Killed:
                pass
        row = Deletion.objects.get(pk=deletion)
        assert row.finished_at is not None
        assert row.counts["samples.Sample"] == 5 and row.counts["duels.Verdict"] == 30
        assert not Project.objects.filter(slug="shell").exists()

    def test_two_workers_do_not_work_on_it_at_once(
        self, client: Client, project: Project, headers: dict[str, str]
    ) -> None:
        deletion = int(delete(client, headers).json()["id"])
        Deletion.objects.filter(pk=deletion).update(owner="other", lease_until=timezone.now() + timedelta(seconds=30))
        carry_out(deletion)
        continue_all()
        assert Project.objects.filter(slug="shell").exists()

    def test_runs_are_cancelled_and_waited_for(self, client: Client, project: Project, headers: dict[str, str]) -> None:
        run = make_run(project, kind="test", state="running", params={"model": "m"})
        item = Item.objects.create(
            run=run, stage="call", key="a", state="claimed", lease_owner="w",
            lease_until=timezone.now() + timedelta(seconds=15),
        )  # fmt: skip
        deletion = int(delete(client, headers).json()["id"])
        carry_out(deletion)
        run.refresh_from_db()
        assert run.state == "cancelled"
        assert "when the project's runs have stopped" in Deletion.objects.get(pk=deletion).error
        Item.objects.filter(pk=item.pk).update(state="pending", lease_owner="", lease_until=None)
        continue_all()
        assert not Project.objects.filter(slug="shell").exists()

    def test_no_transaction_is_longer_than_a_batch(
        self, client: Client, project: Project, headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        Sample.objects.bulk_create(Sample(project=project) for _ in range(25))
        monkeypatch.setattr(erasing, "BATCH", 10)
        sizes: list[int] = []
        real = engine._extend

        def watch(row: Deletion) -> None:
            sizes.append(sum(row.counts.values()) - sum(sizes))
            real(row)

        monkeypatch.setattr(engine, "_extend", watch)
        carry_out(int(delete(client, headers).json()["id"]))
        assert max(sizes) == 10


class TestModels:
    """Declarations that the deletion of a run or a split reads."""

    def test_rows_are_deleted_before_the_rows_that_they_reference(self) -> None:
        order = models_from_top()
        for model in models_of_a_project():
            for key in erasing.references_to(model):
                if key.remote_field.on_delete is RESTRICT:
                    assert order.index(key.model) < order.index(model), key

    def test_a_model_with_a_key_that_restricts_says_what_keeps_the_row(self) -> None:
        for model in models_of_a_project():
            for key in erasing.references_to(model):
                if key.remote_field.on_delete is RESTRICT:
                    own = "blockers_of" in vars(key.model)
                    # Sessions with prompts are no rows to delete.
                    assert own or "blockers" in vars(model) or model is Session, key


class TestArchive:
    def test_can_be_read_and_not_changed(self, client: Client, project: Project, headers: dict[str, str]) -> None:
        duel = make_duel(project)
        make_endpoint(project, "judge-a")
        assert patch(client, headers, archived=True).json()["archived_at"]
        assert client.get(f"{PATH}/samples", headers=headers).status_code == 200
        client.force_login(project.members.get().user)
        page = client.get("/p/shell/samples/")
        assert page.status_code == 200 and "This project is archived" in page.content.decode()
        calls = [
            ("post", f"{PATH}/runs", {"kind": "king", "params": {"model": "judge-a"}}),
            ("post", f"{PATH}/imports", {"kind": "turns", "source": "https://example.org/a.jsonl"}),
            ("post", f"{PATH}/exports", {"recipe": {"formats": ["dpo"]}}),
            ("post", f"{PATH}/queue/next", {}),
            ("post", f"/api/v1/samples/{duel.sample_id}/decisions", {"action": "approve"}),
            ("post", f"{PATH}/models", {"name": "x", "model": "scripted/king"}),
            ("patch", PATH, {"name": "Other"}),
        ]
        for method, path, body in calls:
            answer = getattr(client, method)(path, body, content_type=JSON, headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (409, "project_archived"), path
        assert client.post("/p/shell/runs/new/", {}).status_code == 409
        with pytest.raises(Conflict, match="archived"):
            launch(project=Project.objects.get(), kind="test", params={"model": "judge-a"}, user=None)

    def test_is_out_of_lists_until_unarchived(self, client: Client, project: Project, headers: dict[str, str]) -> None:
        client.force_login(project.members.get().user)
        client.post("/p/shell/settings/archive/")
        assert client.get("/api/v1/projects", headers=headers).json()["data"] == []
        listed = client.get("/api/v1/projects?archived=true", headers=headers).json()["data"]
        assert [row["slug"] for row in listed] == ["shell"]
        home = client.get("/").content.decode()
        assert "Show archived projects" in home and "Shell agents" not in home
        assert "Shell agents" in client.get("/?archived=true").content.decode()
        assert patch(client, headers, archived=False, name="New").json()["name"] == "New"
        assert client.get("/api/v1/projects", headers=headers).json()["data"]
        actions = AuditEntry.objects.filter(project=project, action__startswith="project.").order_by("id")
        assert [row.action for row in actions] == ["project.archive", "project.unarchive", "project.update"]

    def test_waits_for_runs(self, client: Client, project: Project, headers: dict[str, str]) -> None:
        make_run(project, state="running")
        answer = patch(client, headers, archived=True)
        assert (answer.status_code, answer.json()["code"]) == (409, "in_progress")
        assert "1 run is in progress" in answer.json()["detail"]

    def test_webhooks_are_silent(self, client: Client, project: Project, headers: dict[str, str]) -> None:
        hook = Webhook.objects.create(project=project, url="https://a.example/", events=["run.finished"], nonce="n")
        Delivery.objects.create(webhook=hook, event="run.finished", body={}, due_at=timezone.now())
        assert len(_claim(5, {})) == 1
        Delivery.objects.update(due_at=timezone.now())
        patch(client, headers, archived=True)
        assert _claim(5, {}) == []
        assert emit(Project.objects.get(), WebhookEvent.RUN_FINISHED, {}) == 0
        assert client.post(f"{PATH}/webhooks/{hook.pk}/test", headers=headers).status_code == 409

    def test_an_archived_project_can_be_deleted(
        self, client: Client, project: Project, headers: dict[str, str]
    ) -> None:
        patch(client, headers, archived=True)
        assert delete(client, headers).status_code == 202
