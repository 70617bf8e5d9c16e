"""Texts of old runs' calls go to a file, and their counts, costs and figures stay as they were."""

import gzip
import json
from datetime import timedelta

import pytest
from django.core.files.storage import default_storage
from django.test import Client
from django.utils import timezone

from curation.projects.models import Project, Role
from curation.projects.removal.carry_out import carry_out
from curation.runs.calls.move_texts import move_old_texts
from curation.runs.models import Call, CallText, Run, RunEvent
from curation.runs.removal import begin_deletion
from curation.runs.tasks import move_texts
from tests.factories import make_member
from tests.model_server import ModelServer
from tests.runs.asking import asked, make_asked

pytestmark = pytest.mark.django_db(transaction=True)


def make_old(project: Project, days: int = 40) -> Run:
    run = asked(project, n=3)
    Run.objects.filter(pk=run.pk).update(finished_at=timezone.now() - timedelta(days=days))
    run.refresh_from_db()
    return run


@pytest.fixture
def project(server: ModelServer) -> Project:
    project = make_asked(server)
    project.settings_json = {"runs": {"keep_texts_days": 30}}
    project.save()
    return project


def figures(client: Client, run: Run) -> list[object]:
    usage = client.get(f"/api/v1/projects/{run.project.slug}/models/judge-a/usage").json()
    calls = client.get(f"/api/v1/runs/{run.pk}/calls").json()
    known = client.get(f"/api/v1/runs/{run.pk}").json()
    return [usage, calls, {name: known[name] for name in ("calls", "tokens_in", "tokens_out", "cost", "items")}]


def test_the_texts_are_in_the_file_and_all_figures_stay(project: Project) -> None:
    run = make_old(project)
    client = Client()
    client.force_login(make_member(project, role=Role.ADMIN))
    CallText.objects.update(tokens={"completion_token_ids": [7, 9]})
    before, texts = figures(client, run), list(CallText.objects.order_by("call_id").values_list("call_id", "text"))
    assert client.get(f"/api/v1/runs/{run.pk}/texts").status_code == 404

    move_texts()

    assert not CallText.objects.exists() and Call.objects.filter(run=run).count() == 3
    assert figures(client, run) == before
    assert client.get(f"/api/v1/runs/{run.pk}").json()["texts_moved_at"]
    body = b"".join(client.get(f"/api/v1/runs/{run.pk}/texts"))
    lines = [json.loads(line) for line in gzip.decompress(body).splitlines()]
    assert [(int(line["call"]), line["text"]) for line in lines] == texts
    assert {(line["stage"], line["model"]) for line in lines} == {("ask", "judge-a")}
    assert {tuple(line["tokens"]["completion_token_ids"]) for line in lines} == {(7, 9)}
    page = client.get(f"/p/{project.slug}/runs/{run.pk}/calls/").content.decode()
    assert "were moved to a file" in page and f"/api/v1/runs/{run.pk}/texts" in page
    assert "3 calls were moved" in RunEvent.objects.filter(run=run).latest("id").message


def test_a_request_whose_text_was_moved_is_sent_again_and_then_recorded(project: Project) -> None:
    old = make_old(project)
    move_old_texts()
    again, third = asked(project, n=3), asked(project, n=3)

    assert (old.calls, again.calls, third.calls) == (3, 3, 0)
    assert [run.state for run in (again, third)] == ["succeeded", "succeeded"]


def test_young_runs_and_projects_without_the_setting_keep_their_texts(project: Project) -> None:
    make_old(project, days=20)
    assert move_old_texts() == 0

    make_old(project, days=40)
    project.settings_json = {}
    project.save()
    assert move_old_texts() == 0
    assert CallText.objects.count() == 3


def test_nothing_is_moved_twice_and_a_run_that_went_on_gets_a_second_file(project: Project) -> None:
    run = make_old(project)
    assert [move_old_texts(), move_old_texts()] == [3, 0]

    call = Call.objects.filter(run=run).latest("id")
    CallText.objects.create(call=call, text="after it was resumed")
    later = timezone.now() - timedelta(days=31)
    Run.objects.filter(pk=run.pk).update(finished_at=later, texts_moved_at=later - timedelta(days=1))
    assert move_old_texts() == 1

    run.refresh_from_db()
    assert len(run.text_files) == 2
    client = Client()
    client.force_login(make_member(project, role=Role.ADMIN))
    body = b"".join(client.get(f"/api/v1/runs/{run.pk}/texts"))
    assert len(gzip.decompress(body).splitlines()) == 4


def test_the_files_are_deleted_with_their_run(project: Project) -> None:
    run = make_old(project)
    move_old_texts()
    run.refresh_from_db()
    (name,) = run.text_files
    assert default_storage.exists(name)

    carry_out(begin_deletion(row=run, label=run.label, actor=None, because="The test says so.").pk)
    assert not default_storage.exists(name)
