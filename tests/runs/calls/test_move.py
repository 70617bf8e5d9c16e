"""Old rows of runs go to files: texts of calls, then items and calls. Counts, costs and figures stay as they were."""

import gzip
import json
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.test import Client
from django.utils import timezone

from curation.dashboard.overview.stats import _count
from curation.projects.models import Project, Role
from curation.projects.removal.carry_out import carry_out
from curation.runs.calls import move
from curation.runs.calls.move import move_old_rows
from curation.runs.models import Call, CallText, Item, Run, RunEvent, RunQuerySet
from curation.runs.pages.progress import progress_of
from curation.runs.removal import begin_deletion
from curation.runs.tasks import move_rows
from tests.factories import make_answer, make_member, make_prompt
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


def lines_of(client: Client, run: Run) -> list[dict[str, Any]]:
    body = b"".join(client.get(f"/api/v1/runs/{run.pk}/moved"))
    return [json.loads(line) for line in gzip.decompress(body).splitlines()]


def test_the_texts_are_in_the_file_and_all_figures_stay(project: Project) -> None:
    run = make_old(project)
    client = Client()
    client.force_login(make_member(project, role=Role.ADMIN))
    CallText.objects.update(tokens={"completion_token_ids": [7, 9]})
    before, texts = figures(client, run), list(CallText.objects.order_by("call_id").values_list("call_id", "text"))
    assert client.get(f"/api/v1/runs/{run.pk}/moved").status_code == 404

    move_rows()

    assert not CallText.objects.exists() and Call.objects.filter(run=run).count() == 3
    assert figures(client, run) == before
    assert client.get(f"/api/v1/runs/{run.pk}").json()["texts_moved_at"]
    lines = lines_of(client, run)
    assert [(int(line["call_id"]), line["text"]) for line in lines] == texts
    assert {(line["stage"], line["model"]) for line in lines} == {("ask", "judge-a")}
    assert {tuple(line["tokens"]["completion_token_ids"]) for line in lines} == {(7, 9)}
    page = client.get(f"/p/{project.slug}/runs/{run.pk}/calls/").content.decode()
    assert "were moved to a file" in page and f"/api/v1/runs/{run.pk}/moved" in page
    assert "3 calls were moved" in RunEvent.objects.filter(run=run).latest("id").message


def test_a_request_whose_text_was_moved_is_sent_again_and_then_recorded(project: Project) -> None:
    old = make_old(project)
    move_old_rows()
    again, third = asked(project, n=3), asked(project, n=3)

    assert (old.calls, again.calls, third.calls) == (3, 3, 0)
    assert [run.state for run in (again, third)] == ["succeeded", "succeeded"]


def test_young_runs_and_projects_without_the_setting_keep_their_texts(project: Project) -> None:
    make_old(project, days=20)
    assert move_old_rows() == 0

    make_old(project, days=40)
    project.settings_json = {}
    project.save()
    assert move_old_rows() == 0
    assert CallText.objects.count() == 3


def test_nothing_is_moved_twice_and_a_run_that_went_on_gets_a_second_file(project: Project) -> None:
    run = make_old(project)
    assert [move_old_rows(), move_old_rows()] == [3, 0]

    call = Call.objects.filter(run=run).latest("id")
    CallText.objects.create(call=call, text="after it was resumed")
    later = timezone.now() - timedelta(days=31)
    Run.objects.filter(pk=run.pk).update(finished_at=later, texts_moved_at=later - timedelta(days=1))
    assert move_old_rows() == 1

    run.refresh_from_db()
    assert len(run.text_files) == 2
    client = Client()
    client.force_login(make_member(project, role=Role.ADMIN))
    assert len(lines_of(client, run)) == 4


def test_the_files_are_deleted_with_their_run(project: Project) -> None:
    run = make_old(project)
    move_old_rows()
    run.refresh_from_db()
    elsewhere = default_storage.save(f"calls/{run.project_id}/{run.pk}-1.jsonl.gz", ContentFile(b"of earlier versions"))
    names = [*run.text_files, elsewhere]
    Run.objects.filter(pk=run.pk).update(text_files=names)
    assert all(map(default_storage.exists, names))

    carry_out(begin_deletion(row=run, label=run.label, actor=None, because="The test says so.").pk)
    assert not any(map(default_storage.exists, names))


def make_silent(project: Project, days: int = 100, **params: object) -> Run:
    """A run whose texts were moved two days ago."""
    run = asked(project, n=3, **params)
    now = timezone.now()
    Run.objects.filter(pk=run.pk).update(finished_at=now - timedelta(days=days), texts_moved_at=now - timedelta(days=2))
    CallText.objects.filter(call__run=run).delete()
    run.refresh_from_db()
    return run


def items_of(run: Run, stage: str = "ask") -> set[str]:
    return set(Item.objects.filter(run=run, stage=stage).values_list("key", flat=True))


def test_items_and_calls_are_in_the_file_and_all_figures_stay(project: Project) -> None:
    run, young = make_silent(project), make_silent(project, days=80)
    client = Client()
    client.force_login(make_member(project, role=Role.ADMIN))
    items = list(Item.objects.filter(run=run, stage="ask").order_by("pk").values_list("pk", "key", "result"))
    calls = list(Call.objects.filter(run=run).order_by("pk").values_list("pk", "tokens_in", "cost"))

    def figures() -> list[object]:
        stats = _count(project, blind=False)
        known = client.get(f"/api/v1/runs/{run.pk}").json()
        del known["rows_moved_at"]
        run.refresh_from_db()
        return [stats.cost, stats.cost_by_model, known, progress_of(run), run.audit_data()]

    before = figures()
    assert move_old_rows() == 3
    assert figures() == before
    assert items_of(run) == set() and not Call.objects.filter(run=run).exists()
    assert len(items_of(run, "count")) == len(items_of(young)) == 3
    lines = lines_of(client, run)
    assert [(line["id"], line["key"], line["result"]) for line in lines if line["row"] == "item"] == items
    told = [(line["id"], line["tokens_in"], line["cost"]) for line in lines if line["row"] == "call"]
    assert told == [(pk, tokens, str(cost)) for pk, tokens, cost in calls]
    assert client.get(f"/api/v1/runs/{run.pk}").json()["rows_moved_at"]
    for page in ("", "items/", "calls/"):
        assert "moved to a file" in client.get(f"/p/{project.slug}/runs/{run.pk}/{page}").content.decode()
    assert move_old_rows() == 0


def test_rows_that_others_name_stay(project: Project) -> None:
    """An answer names a call, the record answered an item with one, and one still has its text."""
    run = make_silent(project)
    answered, reused, plain = Call.objects.filter(run=run).order_by("pk").select_related("item")
    make_answer(make_prompt(project), call=answered)
    other = asked(project, n=1, fresh=True)
    Item.objects.filter(run=other, stage="ask").update(result={"reused_calls": [reused.pk]})

    assert move_old_rows() == 1
    assert items_of(run) == {item.key for item in (answered.item, reused.item) if item}
    assert set(Call.objects.filter(run=run).values_list("pk", flat=True)) == {answered.pk, reused.pk}
    assert plain.item is not None


@pytest.mark.parametrize(
    "changed",
    [{"state": "cancelled"}, {"items_failed": 1}, {"texts_moved_at": None}],
    ids=["can be resumed", "can be retried", "answers requests"],
)
def test_rows_that_a_run_may_need_stay(project: Project, changed: dict[str, object]) -> None:
    run = make_silent(project)
    Run.objects.filter(pk=run.pk).update(**changed)
    move_old_rows()
    assert len(items_of(run)) == Call.objects.filter(run=run).count() == 3


def test_a_worker_that_is_killed_loses_nothing_and_moves_nothing_twice(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_silent(project)
    client = Client()
    client.force_login(make_member(project, role=Role.ADMIN))
    monkeypatch.setattr(move, "PART", 1)
    hold, held = RunQuerySet.hold, count(1)

    def killed(rows: RunQuerySet, run_id: int) -> None:
        if next(held) == 2:
            raise SystemExit
        hold(rows, run_id)

    before = _count(project, blind=False).cost_by_model
    monkeypatch.setattr(RunQuerySet, "hold", killed)
    with pytest.raises(SystemExit):  # after its second file was written
        move_old_rows()
    assert len(items_of(run)) == 2 and _count(project, blind=False).cost_by_model == before
    stale = Run.objects.get(pk=run.pk)

    assert move_old_rows() == 2
    assert not move._move(stale, [b"{}"], lambda: None)  # another worker that had begun before
    lines = lines_of(client, run)
    assert {line["key"] for line in lines if line["row"] == "item"} == {"0", "1", "2"}
    assert len(lines) == 6 and items_of(run) == set()
    assert _count(project, blind=False).cost_by_model == before

    folder = f"calls/{project.pk}/{run.pk}"
    assert default_storage.listdir(folder)[1]
    carry_out(begin_deletion(row=run, label=run.label, actor=None, because="The test says so.").pk)
    assert not default_storage.listdir(folder)[1]
