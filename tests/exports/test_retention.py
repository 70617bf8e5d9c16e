"""Retention: old exports are deleted by the system, with an entry in the audit log, unless they are kept or used."""

from datetime import timedelta

import pytest
from django.core.files.storage import default_storage
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from curation.evaluations.models import Experiment
from curation.exports.models import Export
from curation.exports.recipes.recipe import Recipe
from curation.exports.retention import delete_old_exports
from curation.exports.tasks import delete_old
from curation.projects.models import AuditEntry, Deletion, Project, Role
from curation.projects.removal.carry_out import carry_out
from curation.runs.launch import launch
from curation.runs.models import Run
from tests.exports.exporting import make_approved, run_export
from tests.factories import make_member, make_project, make_user

pytestmark = pytest.mark.django_db(transaction=True)
SFT = {"formats": ["sft-messages"]}


def keep_days(project: Project, days: int | None) -> None:
    project.settings_json = {**project.settings_json, "export": {"keep_days": days}}
    project.save()


def make_old(project: Project, days: int = 40) -> Export:
    export = run_export(project, SFT)
    Export.objects.filter(pk=export.pk).update(created_at=timezone.now() - timedelta(days=days))
    return export


def left(project: Project) -> set[int]:
    return set(Export.objects.of(project).values_list("pk", flat=True))


def test_an_old_export_is_deleted_with_its_files_and_the_log_says_why() -> None:
    project = make_project()
    make_approved(project)
    old, young = make_old(project), make_old(project, 20)
    files = [file.stored_as for file in old.files.all()]
    manifest = old.manifest_sha256
    keep_days(project, 30)

    delete_old()

    assert left(project) == {young.pk}
    entry = AuditEntry.objects.get(action="export.delete")
    assert (entry.actor, entry.subject) == (None, f"export {old.pk}")
    assert "older than 30 days" in entry.data["because"]
    assert entry.data["manifest_sha256"] == manifest
    assert entry.data["manifest"]["recipe"]["formats"] == ["sft-messages"]
    carry_out(Deletion.objects.get().pk)
    assert not Export.objects.filter(pk=old.pk).exists()
    assert not any(map(default_storage.exists, files))
    assert delete_old_exports() == 0


def test_without_the_setting_nothing_is_deleted_and_other_projects_are_left_alone() -> None:
    first, second = make_project(), make_project()
    exports = [make_old(project, 4000) for project in (first, second)]
    keep_days(second, 30)

    assert delete_old_exports() == 1
    assert left(first) == {exports[0].pk}


def test_what_a_person_keeps_stays_and_the_log_has_it() -> None:
    user = make_user()
    project = make_project(user=user)
    kept, unkept = make_old(project), make_old(project)
    keep_days(project, 30)
    client = Client()
    client.force_login(user)

    answered = client.patch(f"/api/v1/exports/{kept.pk}", {"kept": True}, "application/json")
    assert (answered.status_code, answered.json()["kept"]) == (200, True)
    page = f"/p/{project.slug}/exports/{unkept.pk}/"
    client.post(f"{page}keep/", {"kept": "1"})
    assert "Kept" in client.get(page).content.decode()
    client.post(f"{page}keep/")
    assert "Deleted after 30 days" in client.get(page).content.decode()
    delete_old_exports()

    assert left(project) == {kept.pk}
    actions = list(AuditEntry.objects.filter(action__contains="keep").order_by("pk").values_list("action", "subject"))
    assert actions == [
        ("export.keep", f"export {kept.pk}"),
        ("export.keep", f"export {unkept.pk}"),
        ("export.unkeep", f"export {unkept.pk}"),
    ]
    client.force_login(make_member(project, role=Role.VIEWER))
    assert client.patch(f"/api/v1/exports/{kept.pk}", {"kept": False}, "application/json").status_code == 403
    assert client.patch(f"/api/v1/exports/{kept.pk}", {}, "application/json").status_code == 422


@pytest.mark.parametrize("use", ["split", "recipe", "export", "experiment", "push"])
def test_what_something_uses_stays(use: str) -> None:
    user = make_user()
    project = make_project(user=user)
    make_approved(project)
    export = make_old(project)
    keep_days(project, 30)
    against = {**SFT, "held_out": [f"export/{export.pk}/train"]}
    if use == "experiment":
        Experiment.objects.create(project=project, name="weekly", export=export)
    elif use == "split":
        launch(project=project, kind="split", params={"export": str(export.pk), "split": "train"}, user=user)
        Run.objects.filter(kind="split").update(state="succeeded")
    elif use == "recipe":
        document = Recipe.model_validate(against).model_dump(mode="json")
        project.recipes.create(name="clean", document=document)
    elif use == "export":
        run_export(project, against)
    else:
        params = {"export": str(export.pk), "repository": "a/b"}
        Run.objects.create(project=project, kind="push", state="running", params=params)

    assert delete_old_exports() == 0
    assert export.pk in left(project)

    project.recipes.all().delete()
    project.experiments.all().delete()
    Run.objects.filter(kind__in=("split", "push")).update(state="failed", deleting_at=timezone.now())
    Run.objects.filter(kind="export").exclude(pk=export.run_id).update(deleting_at=timezone.now())
    assert delete_old_exports() == 1


def test_an_export_in_progress_is_not_deleted() -> None:
    project = make_project()
    launch(project=project, kind="export", params={"recipe": SFT}, user=None)
    Export.objects.update(created_at=timezone.now() - timedelta(days=99))
    keep_days(project, 1)

    assert delete_old_exports() == 0


def test_recipes_are_read_once_for_all_old_exports() -> None:
    project = make_project()
    make_approved(project)
    for _ in range(3):
        make_old(project)
    keep_days(project, 30)
    with CaptureQueriesContext(connection) as queries:
        assert delete_old_exports() == 3
    assert sum('FROM "exports_savedrecipe"' in query["sql"] for query in queries) == 1
